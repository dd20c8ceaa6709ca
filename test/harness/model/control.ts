// What a request can ask the simulated upstream to do: with the headers `x-demo-fault`, `x-demo-pace` (ms) and
// `x-demo-words`, or with the model's name if headers do not pass: `demo-fault-stall`, `demo-words-500_pace-20`.

import { gunzipSync, zstdDecompressSync } from "node:zlib";
import { parseJson } from "../../../src/lib/json/json.ts";
import type { Answer } from "./answers/answer.ts";
import { answerError } from "./answers/errors.ts";
import { decodeName, pickText } from "./json.ts";
import { cutHalf, type Step, type Timing, type WirePlan } from "./script.ts";

/** A fault changes the answer before it is framed, or the steps on the wire. */
export interface Fault {
  readonly alter?: (answer: Answer) => Answer;
  readonly cut?: (plan: WirePlan) => Iterable<Step>;
}

export interface Change extends Fault, Timing {
  /** The number of words in the answer, one event each. */
  readonly words?: number;
}

interface ControlledRequest {
  field(name: string): string | undefined;
  readonly json: unknown;
}

export function readControl(request: ControlledRequest, path: string): Change {
  const [, inPath = ""] = /\/models\/(.+):[a-zA-Z]+$/.exec(path) ?? [];
  const model = pickText(request.json, "model") || decodeName(inPath);
  const settings = new Map(
    model.startsWith("demo-") ? model.slice("demo-".length).split("_").map(splitSetting) : [],
  );
  const read = (name: string): string => request.field(`x-demo-${name}`) ?? settings.get(name) ?? "";
  const [pace, words] = [readCount(read("pace")), readCount(read("words"))];
  return {
    ...readFault(read("fault")),
    ...(pace === null ? {} : { paceMs: pace }),
    ...(words === null ? {} : { words }),
  };
}

/** `stall` or `status-529`. */
export function readFault(name: string): Fault | null {
  if (name === "stall") return { cut: ({ head, body }) => [head, ...cutHalf(body), "stall"] };
  const [, status] = /^status-([1-9]\d\d)$/.exec(name) ?? [];
  return status === undefined ? null : { alter: ({ family }) => answerError(family, Number(status)) };
}

/** At most a million, so that no request uses up the memory of a demo. */
function readCount(text: string): number | null {
  return /^\d{1,6}$/.test(text) ? Number(text) : null;
}

function splitSetting(setting: string): [string, string] {
  const dash = setting.indexOf("-");
  return [setting.slice(0, dash), setting.slice(dash + 1)];
}

/** An empty body reads as null, an invalid one as undefined. */
export function readBody(body: Uint8Array, encoding: string | undefined): unknown {
  if (body.length === 0) return null;
  try {
    return parseJson(new TextDecoder().decode(decompress(body, encoding)));
  } catch {
    return undefined;
  }
}

function decompress(body: Uint8Array, encoding: string | undefined): Uint8Array {
  if (encoding === "gzip") return gunzipSync(body);
  return encoding === "zstd" ? zstdDecompressSync(body) : body;
}
