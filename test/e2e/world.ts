// The parts that all end-to-end tests share: the simulated upstream, the real gateway in front of it,
// and one request followed through both to its ledger line.

import { onTestFinished } from "bun:test";
import {
  startDemoUpstream,
  type DemoUpstreamOptions,
  type DemoUpstream,
  type ReceivedRequest,
} from "../harness/upstreams/demo-upstream.ts";
import { DIALECT_NAMES, type DialectName } from "../../src/dialects/dialect.ts";
import type { RequestRecord } from "../../src/gateway/observe/observer.ts";
import {
  CREDENTIAL,
  type InsideGateway,
  keyOf,
  makeConfig,
  type Platform,
  startGatewayHere,
} from "../harness/gateway.ts";
import {
  type Exchanged,
  openRaw,
  type RawConnection,
  rawRequest,
  type RequestLines,
  writeRequest,
} from "../harness/raw.ts";

export type Line = Record<string, unknown>;
type Section = Record<string, unknown>;

/** A request from all sides, once it has ended. */
export interface Trace {
  readonly answer: Exchanged;
  /** The request as the upstream got it; undefined if it never arrived. */
  readonly received: ReceivedRequest | undefined;
  readonly record: RequestRecord;
  /** The ledger lines with the request's id: one, or none. */
  readonly lines: readonly Line[];
}

/** A running request: its client is a bare connection. */
export interface Running {
  readonly client: RawConnection;
  readonly received: Promise<ReceivedRequest>;
  /** Resolves when the gateway has closed the request's bill. */
  readonly over: () => Promise<Pick<Trace, "record" | "lines">>;
}

export interface World {
  readonly upstream: DemoUpstream;
  readonly gateway: InsideGateway;
  ask(request: RequestLines): Promise<Exchanged>;
  trace(request: RequestLines): Promise<Trace>;
  begin(request: RequestLines): Promise<Running>;
  stop(): Promise<void>;
}

export function openWorld(
  change: (url: string) => Section = () => ({}),
  options: DemoUpstreamOptions = {},
): World {
  const upstream = startDemoUpstream({ credential: CREDENTIAL, ...options });
  const gateway = startGatewayHere({ config: makeConfig(upstream, change(upstream.url)) });
  /** Waits for the request that ends as number `count`. Resolves with its record and its lines. */
  const settle = async (count: number): Promise<Pick<Trace, "record" | "lines">> => {
    const record = (await gateway.recorded(count + 1))[count]!;
    await flushLedger();
    return { record, lines: gateway.ledger(`"id":"${record.id}"`) };
  };
  return {
    upstream,
    gateway,
    ask: (request) => rawRequest(gateway.port, request),
    trace: async (request) => {
      const [sent, count] = [upstream.requests.length, gateway.records.length];
      const answer = await rawRequest(gateway.port, request);
      const settled = await settle(count);
      return { answer, received: upstream.requests[sent], ...settled };
    },
    begin: async (request) => {
      const [sent, count] = [upstream.requests.length, gateway.records.length];
      const client = await openRaw(gateway.port);
      client.send(writeRequest(request));
      return { client, received: upstream.received(sent), over: () => settle(count) };
    },
    stop: async () => {
      await gateway.stop();
      upstream.stop();
    },
  };
}

/** Waits for the ledger: it writes a line one turn of the event loop after the request's end. */
export async function flushLedger(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
}

export { DIALECT_NAMES as DIALECTS };
export type { DialectName };

export const bearer = (platform: Platform): Record<string, string> => ({
  authorization: `Bearer ${keyOf(platform)}`,
});

const USER = [{ role: "user", content: "Hello" }];
export const CONTENTS = { contents: [{ role: "user", parts: [{ text: "Hello" }] }] };
export const MESSAGE = { model: "claude-haiku-4-5", max_tokens: 50, messages: USER };

/** Makes a request in a dialect, streamed or not, with a key that fits. */
export function makeRequest(dialect: DialectName, stream = false, more: Section = {}): RequestLines {
  switch (dialect) {
    case "messages":
      return { target: "/v1/messages", fields: bearer("messages"), body: { ...MESSAGE, stream, ...more } };
    case "responses":
      return {
        target: "/v1/responses",
        fields: bearer("responses"),
        body: { model: "gpt-5.4", input: "Hello", stream, ...more },
      };
    case "chat":
      return {
        target: "/v1/chat/completions",
        fields: bearer("responses"),
        body: { model: "gpt-5.4", messages: USER, stream, ...more },
      };
    case "content": {
      const verb = stream ? "streamGenerateContent?alt=sse" : "generateContent";
      return {
        target: `/v1beta/models/gemini-2.5-pro:${verb}`,
        fields: bearer("content"),
        body: { ...CONTENTS, ...more },
      };
    }
  }
}

/** Opens a world for one test. Its channels remember nothing of other tests. */
export function openOwnWorld(...options: Parameters<typeof openWorld>): World {
  const world = openWorld(...options);
  onTestFinished(() => world.stop());
  return world;
}

/** Resolves when the number has not changed for half a second, in which a fast sender would send many megabytes. */
export async function waitUntilStill(read: () => number): Promise<void> {
  for (let last = -1, now = read(); last !== now; now = read()) {
    last = now;
    await Bun.sleep(500);
  }
}
