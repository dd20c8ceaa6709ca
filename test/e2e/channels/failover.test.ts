// Failover in each dialect, on real sockets. Before an answer has begun, another channel answers, and the client does not
// notice. After that, nothing is sent twice. test/gateway/attempt/failover.test.ts has every fault and status.

import { afterEach, describe, expect, test } from "bun:test";
import type { FaultName } from "../../harness/upstreams/faults.ts";
import { type Pair, openPair, type PairOptions } from "../pair.ts";
import { type DialectName, DIALECTS, makeRequest } from "../world.ts";

const platformOf = (dialect: DialectName) => (dialect === "chat" ? "responses" : dialect);

let pair: Pair;
afterEach(() => pair.stop());
const open = (options?: PairOptions): Pair => (pair = openPair(options));

/** Removes what differs between two equal runs: times. */
const settle = (text: string): string =>
  text.replaceAll(/"(created|created_at|completed_at)":\d+/g, '"$1":0');

/** What a client gets when nothing fails. */
const wellAnswered = new Map<string, Promise<string>>();
function answerWell(dialect: DialectName, stream: boolean): Promise<string> {
  const name = `${dialect} ${stream}`;
  const found = wellAnswered.get(name) ?? askHealthy(dialect, stream);
  wellAnswered.set(name, found);
  return found;
}

async function askHealthy(dialect: DialectName, stream: boolean): Promise<string> {
  const well = openPair();
  const { answer } = await well.ask(makeRequest(dialect, stream));
  await well.stop();
  expect(answer.status).toBe(200);
  return settle(answer.text);
}

interface Before {
  readonly fault: FaultName | "refuse";
  /** As the ledger line names the first attempt. */
  readonly attempt: Record<string, unknown>;
  readonly state: string;
  /** The first channel received the request, and may have worked on it: two channels may have to be paid. */
  readonly twice?: true;
}

const BEFORE: readonly Before[] = [
  { fault: "refuse", attempt: { error: "connect" }, state: "unavailable" },
  { fault: "never-answer", attempt: { error: "first_byte_timeout" }, state: "resting", twice: true },
  { fault: "reset-before-head", attempt: { error: "reset" }, state: "degraded", twice: true },
  { fault: "status-401", attempt: { status: 401 }, state: "unavailable" },
  { fault: "status-529", attempt: { status: 529 }, state: "resting" },
];

/** For an upstream that never answers: nothing else can happen first, however busy the machine is. */
const NO_ANSWER = { timeouts: { first_byte: "60ms" } };

describe.each(DIALECTS)("before an answer has begun, failover uses the second channel: %s", (dialect) => {
  for (const stream of [false, true]) {
    test.each(BEFORE)(`${stream ? "stream, " : ""}$fault`, async ({ fault, attempt, state, twice }) => {
      const well = await answerWell(dialect, stream);
      const { a, ask, view } = open(fault === "never-answer" ? { a: NO_ANSWER } : {});
      if (fault === "refuse") a.refuse();
      else a.next(fault);
      const { answer, record, line, sent } = await ask(makeRequest(dialect, stream));
      expect(answer.status).toBe(200);
      expect(settle(answer.text)).toBe(well);
      expect(sent).toEqual([fault === "refuse" ? 0 : 1, 1]);
      const platform = platformOf(dialect);
      expect(line).toMatchObject({
        channel: `${platform}-b`,
        outcome: "complete",
        basis: "exact",
        attempts: [
          { channel: `${platform}-a`, ...attempt },
          { channel: `${platform}-b`, status: 200 },
        ],
      });
      const suspect = `the request may have been paid twice: by "${platform}-a", "${platform}-b"`;
      expect(line?.["suspect"]).toBe(twice ? suspect : undefined);
      expect(record).toMatchObject({ status: 200, channel: `${platform}-b` });
      expect(view(`${platform}-a`)).toMatchObject({ state, requests_hour: 1, errors_hour: 1 });
      expect(view(`${platform}-b`)).toMatchObject({ state: "available", requests_hour: 1, errors_hour: 0 });
    });
  }
});

test("a channel whose TLS handshake fails is left for the next", async () => {
  // A plain server where TLS is expected.
  const plain = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: { data: (socket) => void socket.end("no") },
  });
  const { ask, view } = open({ a: { base_url: `https://127.0.0.1:${plain.port}` } });
  const { answer, line } = await ask(makeRequest("messages"));
  plain.stop(true);
  expect(answer.status).toBe(200);
  expect(line).toMatchObject({ attempts: [{ error: "tls" }, { status: 200 }] });
  expect(view("messages-a")).toMatchObject({ state: "unavailable" });
});
