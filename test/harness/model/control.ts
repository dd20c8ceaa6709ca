// Reads a request's body for the simulated upstream, and turns the name of a fault into the fault.

import { gunzipSync, zstdDecompressSync } from "node:zlib";
import { parseJson } from "../../../src/lib/json/json.ts";
import type { Answer } from "./answers/answer.ts";
import { answerError } from "./answers/errors.ts";
import { cutHalf, type Step, type WirePlan } from "./script.ts";

/** A fault changes the answer before it is framed, or the steps on the wire. */
export interface Fault {
  readonly alter?: (answer: Answer) => Answer;
  readonly cut?: (plan: WirePlan) => Iterable<Step>;
}

/** Finds the fault of a name such as `stall` or `status-529`. Returns null for other names. */
export function readFault(name: string): Fault | null {
  if (name === "stall") return { cut: ({ head, body }) => [head, ...cutHalf(body), "stall"] };
  const [, status] = /^status-([1-9]\d\d)$/.exec(name) ?? [];
  return status === undefined ? null : { alter: ({ family }) => answerError(family, Number(status)) };
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
