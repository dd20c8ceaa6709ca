// Makes each kind of fault happen. A fault says whether the upstream has the request.

import { expect, test } from "bun:test";
import type { Socket } from "node:net";
import {
  type FaultKind,
  FAULTS,
  type Sent,
  type SentRequest,
  UpstreamFault,
} from "../../../src/lib/http/upstream.ts";
import { openClient, outbound, readAll, startUpstream } from "./peers.ts";

type Script = (socket: Socket) => void;
type Meddle = (sending: SentRequest, asked: Promise<void>) => unknown;

const silent: Script = () => {};
const say =
  (text: string): Script =>
  (socket) =>
    void socket.write(text);
const sayAndEnd =
  (text: string): Script =>
  (socket) =>
    void socket.end(text);

interface Case {
  readonly kind: FaultKind;
  readonly sent: Sent;
  readonly script: Script;
  readonly tls?: boolean;
  /** Whether no upstream listens. */
  readonly isGone?: boolean;
  /** The limit that is to run out: only this one is short. */
  readonly short?: "connectMs" | "firstByteMs" | "idleMs";
  readonly meddle?: Meddle;
}

const cancelOnceAsked: Meddle = (sending, asked) => asked.then(() => sending.cancel());
const HEAD = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n";

const CASES: readonly Case[] = [
  { kind: "connect", sent: "no", script: silent, isGone: true },
  { kind: "connect_timeout", sent: "no", script: silent, tls: true, short: "connectMs" },
  { kind: "tls", sent: "no", script: silent, tls: true, meddle: (_, asked) => asked },
  { kind: "withdrawn", sent: "no", script: silent, meddle: (sending) => sending.cancel() },
  { kind: "cancelled", sent: "perhaps", script: silent, meddle: cancelOnceAsked },
  { kind: "first_byte_timeout", sent: "perhaps", script: silent, short: "firstByteMs" },
  { kind: "first_byte_timeout", sent: "perhaps", script: say("HTTP/1.1 2"), short: "firstByteMs" },
  { kind: "reset", sent: "perhaps", script: sayAndEnd("") },
  { kind: "reset", sent: "perhaps", script: sayAndEnd("HTTP/1.1 2") },
  { kind: "malformed", sent: "yes", script: say("SSH-2.0-OpenSSH\r\n\r\n") },
  { kind: "malformed", sent: "yes", script: say(`HTTP/1.1 200 OK\r\n${"x: y\r\n".repeat(257)}\r\n`) },
  { kind: "cut", sent: "yes", script: sayAndEnd(`${HEAD}some`) },
  { kind: "idle_timeout", sent: "yes", script: say(`${HEAD}some`), short: "idleMs" },
];

test.each(CASES)("after the fault $kind, the upstream has the request: $sent", async (row) => {
  const asked = Promise.withResolvers<void>();
  const upstream = await startUpstream(
    (socket) => {
      row.script(socket);
      asked.resolve();
    },
    (socket) => {
      // A peer that closes its connection at the first bytes counts as one that does not speak TLS.
      if (row.kind === "tls") socket.once("data", () => socket.destroy());
    },
  );
  if (row.isGone === true) await upstream.stop();
  const client = openClient();
  const limits = { connectMs: 10_000, firstByteMs: 10_000, idleMs: 10_000 };
  const deadlines = row.short === undefined ? limits : { ...limits, [row.short]: 50 };
  const sending = client.send(
    outbound({ ...upstream.origin, tls: row.tls === true }, { method: "POST", deadlines }),
  );
  void row.meddle?.(sending, asked.promise);
  const fault: unknown = await sending.answer.then(readAll).catch((error: unknown) => error);
  expect(fault).toBeInstanceOf(UpstreamFault);
  expect(fault).toMatchObject({ kind: row.kind, sent: row.sent });
});

test("every kind of fault is made to happen here, except `shortage`, which client.test.ts has", () => {
  const made = new Set<string>([...CASES.map(({ kind }) => kind), "shortage"]);
  expect(Object.keys(FAULTS).filter((kind) => !made.has(kind))).toEqual([]);
});
