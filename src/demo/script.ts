// Turns an answer into steps on the wire: framed, with pauses and gates.

import { STATUS_CODES } from "node:http";
import type { Field } from "../lib/http1/types.ts";
import { encode, type Answer } from "./answers/answer.ts";

/** Stops a stream at one place until a test opens it. */
export interface Gate {
  /** Resolves when the stream has arrived at the gate. */
  readonly reached: Promise<void>;
  open(): void;
  /** Called on the wire. Marks the gate as reached and resolves when it is open. */
  pass(): Promise<void>;
}

/** Bytes are written. `stall` waits until the peer leaves. `fin` cuts the connection, and `close` ends it as announced. */
export type Step = Uint8Array | Gate | { readonly waitMs: number } | "stall" | "reset" | "fin" | "close";

export interface Timing {
  /** Pause before the head. */
  readonly firstByteMs?: number;
  /** Pause between two pieces. */
  readonly paceMs?: number;
  /** The gate before the piece of this number. 0 is after the head, -1 is before the head. */
  readonly gates?: Readonly<Record<number, Gate>>;
}

/** An answer that is ready to be sent. Faults rearrange its parts. */
export interface WirePlan {
  readonly answer: Answer;
  readonly before: readonly Step[];
  readonly head: Uint8Array;
  /** Framed pieces with their pauses and gates. */
  readonly body: readonly Step[];
  /** The regular end of the body. */
  readonly tail: readonly Step[];
}

export function makeGate(): Gate {
  const reached = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();
  return {
    reached: reached.promise,
    open: () => opened.resolve(),
    pass: () => {
      reached.resolve();
      return opened.promise;
    },
  };
}

export function planSteps(answer: Answer, tempo: Timing): WirePlan {
  const body = answer.pieces.flatMap((piece, index): Step[] => {
    const gate = tempo.gates?.[index];
    const wait = index > 0 && tempo.paceMs !== undefined ? [{ waitMs: tempo.paceMs }] : [];
    return [...wait, ...(gate === undefined ? [] : [gate]), frame(answer, piece)];
  });
  const lastGate = tempo.gates?.[answer.pieces.length];
  const first = tempo.gates?.[-1];
  return {
    answer,
    before: [
      ...(tempo.firstByteMs === undefined ? [] : [{ waitMs: tempo.firstByteMs }]),
      ...(first === undefined ? [] : [first]),
    ],
    head: writeHead(answer),
    body,
    tail: [...(lastGate === undefined ? [] : [lastGate]), ...endBody(answer)],
  };
}

export function listSteps({ before, head, body, tail }: WirePlan): Step[] {
  return [...before, head, ...body, ...tail];
}

export function writeHead(answer: Answer, changes: readonly Field[] = frameFields(answer)): Uint8Array {
  const { status, fields } = answer;
  const lines = [...fields, ...changes].map(([name, value]) => `${name}: ${value}\r\n`);
  return encode(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Unnamed"}\r\n${lines.join("")}\r\n`);
}

export function countBytes(answer: Answer): number {
  return answer.pieces.reduce((sum, piece) => sum + piece.length, 0);
}

function frameFields(answer: Answer): readonly Field[] {
  if (answer.framing === "length") return [["content-length", String(countBytes(answer))]];
  return answer.framing === "chunked" ? [["transfer-encoding", "chunked"]] : [["connection", "close"]];
}

function frame({ framing }: Answer, piece: Uint8Array): Uint8Array {
  if (framing !== "chunked") return piece;
  return Buffer.concat([encode(`${piece.length.toString(16)}\r\n`), piece, encode("\r\n")]);
}

function endBody({ framing }: Answer): readonly Step[] {
  if (framing === "chunked") return [encode("0\r\n\r\n")];
  return framing === "close" ? ["close"] : [];
}
