// Turns an answer into steps on the wire: framed, with pauses.

import { STATUS_CODES } from "node:http";
import type { Field } from "../../../src/lib/http/fields.ts";
import { encode, type Answer } from "./answers/answer.ts";

/** `stall` waits until the peer leaves. `fin` breaks the answer off, and `close` is its regular end. */
export type Step = Uint8Array | Pause | "stall" | "reset" | "fin" | "close";

export interface Pause {
  /** Resolves when the next step may follow. */
  pass(): Promise<void>;
}

export interface Timing {
  /** Pause before the head. */
  readonly firstByteMs?: number;
  /** Pause between two pieces. */
  readonly paceMs?: number;
}

/** An answer that is ready to be sent. Faults rearrange its parts. */
export interface WirePlan {
  readonly answer: Answer;
  readonly before: readonly Step[];
  readonly head: Uint8Array;
  /** Framed pieces with their pauses. */
  readonly body: readonly Step[];
  /** The regular end of the body. */
  readonly tail: readonly Step[];
}

export function planSteps(answer: Answer, { firstByteMs, paceMs }: Timing): WirePlan {
  return {
    answer,
    before: listPauses(firstByteMs),
    head: writeHead(answer),
    body: answer.pieces.flatMap((piece, index) => [
      ...(index > 0 ? listPauses(paceMs) : []),
      frame(answer, piece),
    ]),
    tail: endBody(answer),
  };
}

function listPauses(ms: number | undefined): Pause[] {
  return ms === undefined ? [] : [{ pass: () => Bun.sleep(ms) }];
}

export function listSteps({ before, head, body, tail }: WirePlan): Step[] {
  return [...before, head, ...body, ...tail];
}

/** The first half of the steps. Of a single piece, the first half of its bytes. */
export function cutHalf(steps: readonly Step[]): readonly Step[] {
  const [only] = steps;
  if (steps.length === 1 && only instanceof Uint8Array) return [only.subarray(0, only.length >> 1)];
  return steps.slice(0, Math.ceil(steps.length / 2));
}

export function writeHead(answer: Answer, changes: readonly Field[] = frameFields(answer)): Uint8Array {
  const { status, fields } = answer;
  const lines = [...fields, ...changes].map(([name, value]) => `${name}: ${value}\r\n`);
  return encode(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Unnamed"}\r\n${lines.join("")}\r\n`);
}

function frameFields({ framing, pieces }: Answer): readonly Field[] {
  const size = pieces.reduce((sum, piece) => sum + piece.length, 0);
  if (framing === "length") return [["content-length", String(size)]];
  return framing === "chunked" ? [["transfer-encoding", "chunked"]] : [["connection", "close"]];
}

function frame({ framing }: Answer, piece: Uint8Array): Uint8Array {
  if (framing !== "chunked") return piece;
  return Buffer.concat([encode(`${piece.length.toString(16)}\r\n`), piece, encode("\r\n")]);
}

function endBody({ framing }: Answer): readonly Step[] {
  if (framing === "chunked") return [encode("0\r\n\r\n")];
  return framing === "close" ? ["close"] : [];
}
