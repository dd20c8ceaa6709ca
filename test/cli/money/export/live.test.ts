// Spans on their way to a receiver: in batches, again after it was away, and never more than ten thousand.

import { afterEach, describe, expect, test } from "bun:test";

import { createLiveExport } from "../../../../src/cli/money/export/live.ts";
import { draftOf } from "../../../billing/ledger/ledger-samples.ts";

interface Arrived {
  readonly path: string;
  readonly headers: Headers;
  readonly ids: readonly string[];
}

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

/** Answers one status after the other; the last one again and again. */
function receive(statuses: readonly number[], location = "") {
  const arrived: Arrived[] = [];
  let wanted = 0;
  let all = Promise.withResolvers<void>();
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { resourceSpans } = JSON.parse(await request.text());
      const spans: { spanId: string }[] = resourceSpans[0].scopeSpans[0].spans;
      const ids = spans.map(({ spanId }) => spanId);
      arrived.push({ path: new URL(request.url).pathname, headers: request.headers, ids });
      if (arrived.length >= wanted) all.resolve();
      const status = statuses[arrived.length - 1] ?? statuses.at(-1) ?? 200;
      return Response.json({}, { status, ...(location !== "" && { headers: { location } }) });
    },
  });
  const waitFor = (count: number): Promise<void> => {
    wanted = count;
    all = Promise.withResolvers();
    if (arrived.length >= count) all.resolve();
    return all.promise;
  };
  const stop = (): Promise<void> => server.stop(true);
  stops.push(stop);
  return { arrived, waitFor, url: new URL(`http://127.0.0.1:${server.port}/v1/traces`), stop };
}

function open(url: URL, headers: Record<string, string> = {}) {
  const warnings: string[] = [];
  const live = createLiveExport({
    catalog: () => ({ otlp: { url, headers }, channels: new Map() }),
    warn: (text) => warnings.push(text),
  });
  return { live, warnings };
}

const lines = (count: number) => Array.from({ length: count }, (_, index) => draftOf(`req_${index}`));

describe("a receiver of spans", () => {
  test("gets each line once, in batches, with the headers of the config", async () => {
    const receiver = receive([200]);
    const { live, warnings } = open(receiver.url, { "x-token": "abc" });
    for (const line of lines(120)) live.add(line);
    await receiver.waitFor(3);
    await live.close();
    expect(receiver.arrived.map(({ ids }) => ids.length)).toEqual([50, 50, 20]);
    expect(new Set(receiver.arrived.flatMap(({ ids }) => ids)).size).toBe(120);
    expect(receiver.arrived[0]).toMatchObject({ path: "/v1/traces" });
    expect(receiver.arrived[0]?.headers.get("x-token")).toBe("abc");
    expect(warnings).toEqual([]);
  });

  test("that was busy gets the same spans again, and the owner hears of both", async () => {
    const receiver = receive([503, 200]);
    const { live, warnings } = open(receiver.url);
    for (const line of lines(3)) live.add(line);
    await receiver.waitFor(2);
    await live.close();
    expect(receiver.arrived[1]?.ids).toEqual(receiver.arrived[0]?.ids ?? []);
    expect(warnings).toEqual([
      "otlp: the receiver is away (it answers 503): 3 spans wait",
      "otlp: the receiver answers again",
    ]);
  });

  test("that sends elsewhere is not followed", async () => {
    const elsewhere = receive([200]);
    const receiver = receive([307], elsewhere.url.href);
    const { live, warnings } = open(receiver.url, { authorization: "Bearer secret" });
    live.add(draftOf("req_1"));
    await receiver.waitFor(1);
    await live.close();
    expect(elsewhere.arrived).toEqual([]);
    expect(warnings).toEqual(["otlp: 1 spans were refused: it answers 307"]);
  });

  test("that is not there costs at most the oldest spans, and their number is in the log", async () => {
    const gone = receive([200]);
    await gone.stop();
    const { live, warnings } = open(gone.url);
    for (const line of lines(10_005)) live.add(line);
    await live.close();
    expect(warnings[0]).toMatch(
      /^otlp: the receiver is away \(.*\): 10000 spans wait; 5 older ones were dropped$/,
    );
    expect(warnings.at(-1)).toBe("otlp: 10000 spans were not sent");
  });
});
