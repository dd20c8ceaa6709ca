// A thread that checks a long config, so that no stream of the gateway waits for it. check.ts starts it and sends it one
// text.

import { isObject, getList } from "../../lib/json/json.ts";
import { checkText } from "../file/load.ts";
import type { CheckAnswer, CheckQuestion } from "./check.ts";

/** How many keys the gateway's thread reads before it serves others again. */
const KEYS_PER_PART = 250;

function check({ text, file, env }: CheckQuestion): CheckAnswer {
  const { tree, around, warnings } = checkText(text, file, env);
  const { keys, ...rest } = isObject(tree) ? tree : {};
  const parts: string[] = [];
  const all = getList(keys);
  for (let at = 0; at < all.length; at += KEYS_PER_PART)
    parts.push(JSON.stringify(all.slice(at, at + KEYS_PER_PART)));
  return { kind: "checked", rest: JSON.stringify(rest), keys: parts, around, warnings };
}

globalThis.addEventListener("message", ({ data }: MessageEvent<CheckQuestion>) => {
  try {
    globalThis.postMessage(check(data));
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    globalThis.postMessage({ kind: "refused", message } satisfies CheckAnswer);
  }
});
