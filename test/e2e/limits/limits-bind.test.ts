// A limit in USD also works when clients leave, when upstreams report no usage and when they fail, and refuses no
// session that fits into it. The upstream does a fixed amount of work for each request.

import { describe, expect, test } from "bun:test";
import { keyOf, makeConfig, startGatewayHere } from "../../harness/gateway.ts";
import { openRaw, rawRequest, writeRequest } from "../../harness/raw.ts";
import { makeTempFolder } from "../../harness/temp.ts";

type Section = Record<string, unknown>;

/** USD per million tokens. */
const PRICES = { "some-model": { input: "3", output: "15" } };

interface Upstream {
  readonly url: string;
  /** The bodies of the requests that the upstream worked on. */
  readonly bodies: Section[];
  /** Resolves when this many requests have come. */
  readonly reached: (count: number) => Promise<void>;
  readonly stop: () => void;
}

interface Work {
  /** The output tokens of each response; "none": there is no response. */
  readonly output: number | "none";
  readonly input?: number;
  /** The text of each response. With a text, the response's usage does not report the output. */
  readonly text?: string;
  /** Each response is a stream that ends with an error. With `usage`, its first event reports the prompt. */
  readonly error?: "usage" | "no usage";
}

/** Starts an upstream that does a fixed amount of work, whatever the request says. */
function startUpstream({ output, ...work }: Work): Upstream {
  const bodies: Section[] = [];
  const waiting: (() => void)[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      if (request.method === "GET") return Response.json(describeStored(pathname.split("/").at(-1) ?? ""));
      const text = await request.text();
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the test's own body
      const body = JSON.parse(text) as Section;
      bodies.push(body);
      for (const wake of waiting.splice(0)) wake();
      if (output === "none") return new Promise<Response>(() => {});
      if (body["background"] === true)
        return Response.json({
          id: `resp_${bodies.length}`,
          object: "response",
          status: "queued",
          usage: null,
        });
      return answer(body["model"], { output, ...work });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    bodies,
    reached: async (count) => {
      while (bodies.length < count) await new Promise<void>((resolve) => waiting.push(resolve));
    },
    stop: () => void server.stop(true),
  };
}

function answer(model: unknown, { output, input = 10, text, error }: Work): Response {
  if (error !== undefined) return streamFailure(text ?? "x", error === "usage" ? input : null);
  return Response.json({
    id: "msg_1",
    type: "message",
    role: "assistant",
    model,
    content: [{ type: "text", text: text ?? "x" }],
    stop_reason: "end_turn",
    usage: { input_tokens: input, output_tokens: text === undefined ? output : null },
  });
}

function streamFailure(text: string, input: number | null): Response {
  const usage = input === null ? {} : { usage: { input_tokens: input, output_tokens: 1 } };
  const events = [
    { type: "message_start", message: { id: "msg_1", model: "some-model", ...usage } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    ...(text.match(/.{1,40}/g) ?? []).map((piece) => ({
      type: "content_block_delta",
      index: 0,
      delta: { type: "text_delta", text: piece },
    })),
    { type: "error", error: { type: "overloaded_error", message: "Overloaded" } },
  ];
  const lines = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  return new Response(lines.join(""), { headers: { "content-type": "text/event-stream" } });
}

function describeStored(id: string): Section {
  const usage = { input_tokens: 10, output_tokens: 20, total_tokens: 30 };
  const content = [{ type: "output_text", text: "done" }];
  const output = [{ type: "message", role: "assistant", content }];
  return { id, object: "response", status: "completed", model: "some-model", output, usage };
}

function configure(upstream: Upstream, limits: Section): Section {
  const config = makeConfig(upstream);
  return { ...config, prices: PRICES, keys: config.keys.map((key) => ({ ...key, limits })) };
}

async function withGateway(
  limits: Section,
  work: Work,
  use: (gateway: ReturnType<typeof startGatewayHere>, upstream: Upstream) => Promise<void>,
): Promise<void> {
  const upstream = startUpstream(work);
  const gateway = startGatewayHere({ config: configure(upstream, limits) });
  try {
    await use(gateway, upstream);
  } finally {
    await gateway.stop();
    upstream.stop();
  }
}

const message = (body: Section | string, target = "/v1/messages") => ({
  method: "POST",
  target,
  fields: { "x-api-key": keyOf("messages"), "content-type": "application/json" },
  body: typeof body === "string" ? body : JSON.stringify({ model: "some-model", messages: [], ...body }),
});

const countOf = (statuses: readonly number[], status: number) =>
  statuses.filter((each) => each === status).length;

describe("P118: a limit in USD counts what clients and upstreams hide", () => {
  test("a limit in USD counts the prompts of clients that leave, also after restarts", async () => {
    using folder = makeTempFolder();
    const upstream = startUpstream({ output: "none" });
    // By its size, this body has 5,000 tokens, which cost $0.015.
    const body = { max_tokens: 5, messages: [{ role: "user", content: "x".repeat(20_000) }] };
    let sent = 0;
    for (let start = 0; start < 2; start += 1) {
      const config = configure(upstream, { usd_per_day: "0.05" });
      const gateway = startGatewayHere({ config, folder });
      for (let index = 0; index < 2; index += 1) {
        const client = await openRaw(gateway.port);
        client.send(writeRequest(message(body)));
        sent += 1;
        await upstream.reached(sent);
        client.close();
        await gateway.recorded(index + 1);
      }
      await gateway.stop();
    }
    const gateway = startGatewayHere({ config: configure(upstream, { usd_per_day: "0.05" }), folder });
    const refused = await rawRequest(gateway.port, message(body));
    expect(refused.status).toBe(429);
    expect(refused.text).toMatch(/has spent \$0 and \$0\.06\d* estimated for requests without known usage/);
    expect(gateway.ledger().map(({ basis }) => basis)).toEqual(["unknown", "unknown", "unknown", "unknown"]);
    await gateway.stop();
    upstream.stop();
  });

  test("if the upstream reports no output, a limit in USD counts the output that was seen", async () => {
    await withGateway(
      { usd_per_day: "0.1" },
      { output: 2_000, text: "y".repeat(8_000) },
      async (gateway, upstream) => {
        const ask = async () => (await rawRequest(gateway.port, message({ max_tokens: 2_000 }))).status;
        const statuses = [];
        for (let index = 0; index < 10; index += 1) statuses.push(await ask());
        expect(countOf(statuses, 200)).toBe(4);
        expect(upstream.bodies).toHaveLength(4);
        const [line] = gateway.ledger();
        expect(line).toMatchObject({ basis: "exact", charge_usd: "0.00003" });
        expect(line?.["suspect"]).toContain("output_tokens is missing");
        // The limit counts the prompt, and a token for every four bytes of the text.
        expect(Number(line?.["limit_usd"])).toBeCloseTo(0.03, 2);
      },
    );
  });

  test.each(["usage", "no usage"] as const)(
    "a limit in USD counts what an upstream sent before its error event, with %s",
    async (error) => {
      const work = { output: 2_000, text: "y".repeat(8_000), error };
      await withGateway({ usd_per_day: "0.1" }, work, async (gateway, upstream) => {
        const statuses = [];
        for (let index = 0; index < 10; index += 1)
          statuses.push(
            (await rawRequest(gateway.port, message({ max_tokens: 2_000, stream: true }))).status,
          );
        expect(countOf(statuses, 200)).toBe(4);
        expect(upstream.bodies).toHaveLength(4);
        const [line] = gateway.ledger();
        expect(line).toMatchObject(
          error === "usage"
            ? { basis: "partial", charge_usd: "0.000045" }
            : { basis: "exact", charge_usd: "0", suspect: expect.stringContaining("before its error") },
        );
        expect(Number(line?.["limit_usd"])).toBeCloseTo(0.03, 2);
      });
    },
  );

  test("a session that costs less than a limit in USD gets every answer, although each request has max_tokens 128,000", async () => {
    // 100 requests of $0.015: first one at a time, then with three subagents.
    await withGateway({ usd_per_day: "2" }, { output: 998 }, async (gateway, upstream) => {
      const ask = async () => (await rawRequest(gateway.port, message({ max_tokens: 128_000 }))).status;
      for (let index = 0; index < 40; index += 1) expect(await ask()).toBe(200);
      for (let index = 0; index < 20; index += 1)
        expect(await Promise.all([ask(), ask(), ask()])).toEqual([200, 200, 200]);
      expect(upstream.bodies).toHaveLength(100);
    });
  });
});
