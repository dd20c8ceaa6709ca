// The usage of a chat answer.

import type { Reading } from "../../billing/usage.ts";
import { getField, isObject, getList, getName } from "../../lib/json/json.ts";
import { CalledTools } from "../prompt/calls.ts";
import { listNeedles, meterOf, sizeOf, type UsageReader, type UsageReport } from "./meter.ts";
import { CountReader, Reports } from "../../billing/counts.ts";
import { readOpenaiUsage } from "./openai.ts";

// `_tokens` finds the usage, because any chunk may have `usage` as null.
// `name` finds a call's first chunk.
// `base64` finds pictures, which must not count as text.
const NEEDLES = listNeedles(
  '_tokens"',
  "[DONE]",
  '"error"',
  '"finish_reason":"',
  '"finish_reason": "',
  '"name":',
  ";base64,",
);

class ChatReader implements UsageReader {
  readonly needles = NEEDLES;

  #model: string | null = null;
  #tier: string | undefined;
  readonly #reports = new Reports();
  #finished = false;
  /** The answer ended without usage. */
  #awaitsUsage = false;
  #end: Reading["end"] = "open";
  readonly #called = new CalledTools();

  learn(chunk: unknown): void {
    this.#model = getName(getField(chunk, "model")) ?? this.#model;
    this.#tier = getName(getField(chunk, "service_tier")) ?? this.#tier;
    const hasUsage = this.#reports.add(findUsage(chunk), { isLate: this.#end !== "open" });
    this.#awaitsUsage &&= !hasUsage;
    for (const choice of getList(getField(chunk, "choices"))) {
      for (const name of SAID) {
        const said = getField(choice, name);
        for (const part of [said, ...getList(getField(said, "tool_calls"))]) this.#called.add(part);
      }
      if (getName(getField(choice, "finish_reason")) === undefined) continue;
      this.#finished = true;
      this.#awaitsUsage = !hasUsage;
    }
    if (isObject(getField(chunk, "error"))) this.#end = "error";
  }

  learnWord(word: string): void {
    if (word === "[DONE]" && this.#end === "open") this.#end = "complete";
  }

  measureText(chunk: unknown): number {
    let bytes = 0;
    for (const choice of getList(getField(chunk, "choices")))
      bytes += measureSaid(getField(choice, SAID[0])) || measureSaid(getField(choice, SAID[1]));
    return bytes;
  }

  report(): UsageReport {
    const counts = new CountReader();
    const usage = readOpenaiUsage(this.#reports.read(counts), "chat", counts);
    if (usage !== null && this.#awaitsUsage) counts.note("usage_early", "usage");
    const done = this.#end === "complete" || (this.#finished && usage !== null);
    return {
      model: this.#model,
      parts: usage === null ? [] : [{ model: null, pass: "message", usage }],
      faults: counts.faults,
      rawUsage: this.#reports.last,
      tariff: this.#tier === undefined ? {} : { service_tier: this.#tier },
      end: this.#end === "error" ? "error" : done ? "complete" : "open",
      final: usage !== null && done,
      mayLackUsage: true,
      isFinished: this.#finished,
      called: this.#called.list(),
    };
  }
}

export const openChatMeter = meterOf(() => new ChatReader());

/** Perplexity sends an empty `delta` in a whole answer, too. */
const SAID = ["delta", "message"] as const;
const TEXTS = ["content", "refusal", "reasoning_content", "reasoning"] as const;

function measureSaid(said: unknown): number {
  if (!isObject(said)) return 0;
  let bytes = 0;
  for (const name of TEXTS) bytes += sizeOf(said[name]);
  for (const part of getList(said["content"])) bytes += sizeOf(getField(part, "text"));
  for (const call of listCalls(said))
    for (const name of ["name", "arguments", "input"]) bytes += sizeOf(getField(call, name));
  return bytes;
}

function listCalls(said: unknown): readonly unknown[] {
  const calls = getList(getField(said, "tool_calls"));
  const legacy = getField(said, "function_call");
  if (calls.length === 0 && legacy === undefined) return calls;
  return [...calls.map((call) => getField(call, "function") ?? getField(call, "custom")), legacy];
}

/** Moonshot puts the usage into the last choice (earendil-works/pi#2017),
 *  Groq into `x_groq` (vercel/ai#1651). */
function findUsage(chunk: unknown): unknown {
  const choices = getList(getField(chunk, "choices"));
  const holders = [chunk, ...choices, getField(chunk, "x_groq")];
  return holders.map((holder) => getField(holder, "usage")).find(isObject);
}
