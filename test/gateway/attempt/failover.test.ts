// Which channels are tried, and what the client gets if none of them succeeds.

import { afterEach, describe, expect, test } from "bun:test";
import { type FaultKind, UpstreamFault } from "../../../src/lib/http/upstream.ts";
import { openScripted, type Scripted, type ScriptedOptions, type Step } from "../scripted.ts";

let scripted: Scripted;
afterEach(() => scripted.stop());

const OK: Step = { chunks: ['{"type":"message","model":"m","usage":{"input_tokens":5,"output_tokens":7}}'] };
const bodyOf = (status: number): string =>
  JSON.stringify({
    type: "error",
    error: { type: `type_${status}`, code: `code_${status}`, message: "Sorry" },
  });
const TEXT: Step = {
  fields: [["content-type", "text/plain"]],
  chunks: ["e", "rror code: 1020"],
};
const refuse = (status: number, more: readonly (readonly [string, string])[] = []): Step => ({
  status,
  fields: [["content-type", "application/json"], ...more],
  chunks: [bodyOf(status)],
});
const fail = (kind: FaultKind, answered = false): Step => new UpstreamFault(kind, "said", answered);

const SSE = [["content-type", "text/event-stream"]] as const;
const HTML = [["content-type", "text/html"]] as const;
const COUNT: Step = { chunks: ['{"input_tokens":5}'] };
const OVERLOADED = {
  fields: SSE,
  chunks: [
    'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
  ],
};

async function run(channels: ScriptedOptions["channels"], more: Partial<ScriptedOptions> = {}) {
  scripted = await openScripted({ channels, ...more });
  const error = await scripted.run();
  return { error, exchange: scripted.exchange, called: scripted.called.join(" ") };
}

describe("the next channel is tried", () => {
  test.each([
    ["a refused connection", fail("connect")],
    ["a connection that is not accepted in time", fail("connect_timeout")],
    ["a failed TLS handshake", fail("tls")],
    ["no response in time", fail("first_byte_timeout")],
    ["a connection that closes without a response", fail("reset")],
    ["a redirect", refuse(302)],
    ["a refused credential", refuse(401)],
    ["an account out of credit", refuse(402)],
    ["a proxy that wants a password", refuse(407)],
    ["a time-out", refuse(408)],
    ["a rate limit", refuse(429)],
    ["a server error", refuse(500)],
    ["an overloaded server", refuse(529)],
    ["a 404, because another channel may have the model", refuse(404)],
    ["a 400 that says so", { status: 400, chunks: ['{"error":{"code":"model_not_found"}}'] }],
    ["an HTML page with 200", { fields: HTML, chunks: ["<!DOCTYPE html><html>"] }],
    ["an HTML page that says it is JSON", { chunks: ["\r\n <html>"] }],
    ["a plain text with 200", TEXT],
    ["an empty body with 200", { chunks: [] }],
    ["a blank body with 200", { chunks: [" ", "\n"] }],
  ])("after %s", async (_name, step) => {
    const { error, exchange, called } = await run({ a: [step], b: [OK] });
    expect([error, exchange.status, called]).toEqual([null, 200, "a b"]);
    expect(scripted.request.attempts).toHaveLength(2);
  });

  test.each<[string, Step]>([
    ["an HTML page", { fields: HTML, chunks: ["<html>"] }],
    ["an HTML page that says it is a stream", { fields: SSE, chunks: ["<html>"] }],
    ["an empty stream", { fields: SSE, chunks: [] }],
  ])("after %s instead of a stream", async (_name, step) => {
    const event = 'event: message_stop\ndata: {"type":"message_stop"}\n\n';
    const { exchange, called } = await run(
      { a: [step], b: [{ fields: SSE, chunks: [event] }] },
      { stream: true },
    );
    expect([exchange.status, exchange.text, called]).toEqual([200, event, "a b"]);
  });

  test("at most as often as `failover.attempts` says", async () => {
    const channels = { a: [refuse(500)], b: [refuse(503)], c: [OK] };
    const { exchange, called } = await run(channels, { more: { failover: { attempts: 2 } } });
    expect([exchange.status, called]).toEqual([503, "a b"]);
  });

  test("but the last stream that may be tried passes as it came, also if it begins with an error", async () => {
    const channels = { a: [OVERLOADED], b: [OK] };
    const { error, exchange, called } = await run(channels, {
      stream: true,
      more: { failover: { attempts: 1 } },
    });
    expect([error, exchange.status, exchange.text, called]).toEqual([
      null,
      200,
      OVERLOADED.chunks.join(""),
      "a",
    ]);
  });

  test.each<[string, Step, boolean]>([
    ["a stream that begins with an error", OVERLOADED, true],
    ["an HTML page instead of a stream", { fields: SSE, chunks: ["<html>"] }, true],
    ["an HTML page", { fields: HTML, chunks: ["<html>"] }, false],
  ])("and the connection of %s is closed", async (_name, step, stream) => {
    await run({ a: [step], b: [refuse(400)] }, { stream });
    expect(scripted.responses.map(({ cancelled }) => cancelled)).toEqual([true, false]);
  });

  test("for no longer than `failover.total` says", async () => {
    await run({ a: [OK] }, { more: { failover: { total: "7s" } } });
    const { connectMs, firstByteMs } = scripted.requests[0]!.deadlines;
    expect([connectMs, firstByteMs].map((ms) => ms <= 7000)).toEqual([true, true]);
  });

  test("and what an error in a stream quotes of the credential is shown nowhere", async () => {
    const error = { type: "overloaded_error", message: "no capacity for credential-of-the-channel" };
    const chunks = [`event: error\ndata: ${JSON.stringify({ type: "error", error })}\n\n`];
    await run({ a: [{ fields: SSE, chunks }], b: [refuse(400)] }, { stream: true });
    const { gateway } = scripted;
    const shown = JSON.stringify(gateway.channels.view(gateway.catalog, gateway.now()));
    expect(shown).toContain("no capacity for [credential removed]");
    expect(shown).not.toContain("credential-of-the-channel");
  });
});

describe("what is known of the channels", () => {
  test("a request that costs nothing does not move the conversation", async () => {
    const target = "/v1/messages/count_tokens";
    const channels = { a: [refuse(500), OK], b: [COUNT] };
    const { called } = await run(channels, { target });
    await scripted.again({ target: "/v1/messages" });
    expect([called, scripted.called.join(" ")]).toEqual(["a b", "a b a"]);
  });

  test("a request that costs nothing is no trial of a channel in cooldown", async () => {
    await run({ a: [refuse(529), COUNT, OK] });
    await scripted.again({ target: "/v1/messages/count_tokens" });
    const third = await scripted.again();
    expect([third.error, third.exchange.status]).toEqual([null, 200]);
  });

  test("a trial ends with the client that leaves before its request is sent", async () => {
    await run({ a: [refuse(529), OK] });
    const second = await scripted.again({ leaves: true });
    const third = await scripted.again();
    expect([second.error?.code, third.error, third.exchange.status]).toEqual(["client_gone", null, 200]);
    expect(scripted.called).toEqual(["a", "a"]);
  });

  test("the gateway's own shortage is no failure of a channel", async () => {
    const { error } = await run({ a: [fail("shortage"), OK] });
    const { channels, catalog, now } = scripted.gateway;
    expect(channels.view(catalog, now())).toMatchObject([{ state: "unknown", errors_hour: 0 }]);
    const second = await scripted.again();
    expect([error?.code, second.exchange.status]).toEqual(["unavailable", 200]);
  });

  test("a failed request is one error of its channel", async () => {
    await run({ a: [refuse(500)] });
    const { channels, catalog, now } = scripted.gateway;
    expect(channels.view(catalog, now())).toMatchObject([{ requests_hour: 1, errors_hour: 1 }]);
  });

  test("a probe does not end a wait that the upstream named", async () => {
    await run({ a: [refuse(500, [["retry-after", "30"]])] });
    const { channels, catalog, now } = scripted.gateway;
    channels.reportProbe(catalog.channels.get("a")!, null, now());
    const second = await scripted.again();
    expect([second.exchange.status, scripted.called]).toEqual([500, ["a"]]);
  });

  test("the journal names the channel that gets the request, even if another one has the better priority", async () => {
    await run({ a: [refuse(503, [["retry-after", "30"]])], b: [OK, OK] });
    await scripted.again();
    await new Promise(setImmediate);
    const records = scripted.journal().trimEnd().split("\n");
    const id = scripted.ledger().at(-1)?.["id"];
    expect(records.map((record) => JSON.parse(record))).toContainEqual({ id, channel: "b", first: true });
    expect(scripted.called).toEqual(["a", "b", "b"]);
  });
});

describe("no other channel is tried", () => {
  test.each([400, 403, 409, 413, 422])("after a %d, which is about the request", async (status) => {
    const { error, exchange, called } = await run({ a: [refuse(status)], b: [OK] });
    expect([error, exchange.status, exchange.text, called]).toEqual([null, status, bodyOf(status), "a"]);
  });

  test("after a response that had begun", async () => {
    const { error, called } = await run({ a: [fail("cut", true)], b: [OK] });
    expect([error?.code, called]).toEqual(["upstream_failed", "a"]);
  });

  test("and none at all, if the client has left before", async () => {
    scripted = await openScripted({ channels: { a: [OK] } });
    scripted.exchange.leave();
    const error = await scripted.run();
    expect([error?.code, scripted.called, scripted.ledger()]).toEqual(["client_gone", [], []]);
  });

  test("after the client has disconnected", async () => {
    const { error, called } = await run({ a: [fail("cancelled")], b: [OK] });
    expect([error?.code, called]).toEqual(["client_gone", "a"]);
  });
});

describe("the last channel's own error reaches the client", () => {
  test("404, if no channel has the model", async () => {
    const { error, exchange, called } = await run({ a: [refuse(404)], b: [refuse(404)] });
    expect([error, exchange.status, exchange.text, called]).toEqual([null, 404, bodyOf(404), "a b"]);
  });

  test.each([402, 408, 429, 500, 502, 503, 504, 529])("%d with status, code and wording", async (status) => {
    const last = refuse(status, [
      ["retry-after", "7"],
      ["x-should-retry", "true"],
    ]);
    const { error, exchange, called } = await run({ a: [refuse(402)], b: [last] });
    expect([error, exchange.status, exchange.text, called]).toEqual([null, status, bodyOf(status), "a b"]);
    expect([exchange.sentField("retry-after"), exchange.sentField("x-should-retry")]).toEqual(["7", "true"]);
    expect(scripted.records()).toMatchObject([{ status, outcome: "upstream_error", chargeUsd: "0" }]);
  });

  test("without the credential that it quotes", async () => {
    const chunks = ['{"error":{"message":"credential-of-the-channel is out of credit"}}'];
    const { exchange } = await run({ a: [{ status: 402, chunks }] });
    expect([exchange.status, exchange.text]).toEqual([
      402,
      '{"error":{"message":"[credential removed] is out of credit"}}',
    ]);
  });

  test.each<[string, Step]>([
    ["a 401", refuse(401)],
    [
      "a 403 that says so",
      { status: 403, chunks: ['{"error":{"code":"invalid_api_key","message":"Bad key"}}'] },
    ],
    ["a 400 that says so", { status: 400, chunks: ['{"error":{"details":[{"reason":"API_KEY_INVALID"}]}}'] }],
  ])("but a refused credential (%s) becomes a 403 that names the channel", async (_name, step) => {
    const { error, exchange } = await run({ a: [step] });
    expect([error?.code, error?.status, exchange.status]).toEqual(["credential_refused", 403, 403]);
    expect(error?.message).toContain('The channel "a" refused the gateway\'s credential');
  });

  test.each([
    ["invalid x-api-key", "401 invalid API key. `gateway channels set"],
    ["OAuth token has been revoked.", "401 token has been revoked. `gateway channels set"],
  ])("without words that make Claude Code ask for another login: %s", async (message, shown) => {
    const { error } = await run({ a: [{ status: 401, chunks: [JSON.stringify({ error: { message } })] }] });
    expect(error?.message).toContain(shown);
  });

  test.each<[string, Step, number]>([
    ["a proxy's 407", refuse(407), 502],
    ["a redirect", refuse(302), 502],
    ["no connection", fail("connect"), 502],
    ["no response in time", fail("first_byte_timeout"), 504],
    ["an HTML page with 200", { fields: HTML, chunks: ["<html>"] }, 502],
    ["an empty body with 200", {}, 502],
    ["a body that is not JSON", { chunks: ["{ this is not JSON"] }, 502],
  ])("but %s becomes an error of the gateway", async (_name, step, status) => {
    const { error, exchange } = await run({ a: [step] });
    expect([error?.status, exchange.status]).toEqual([status, status]);
    expect(scripted.records()[0]?.outcome).toMatch(/^upstream_(?:error|cut)$/);
  });
});

describe("a failure that passes by waiting comes before one that does not", () => {
  const wait = [["retry-after", "30"]] as const;
  const overloaded = refuse(529, wait);
  const NEVER: readonly (readonly [string, Step])[] = [
    ["a refused credential", refuse(401)],
    ["an account out of credit", refuse(402)],
  ];

  test.each(NEVER)("before %s of the channel after it", async (_name, step) => {
    const { error, exchange, called } = await run({ a: [overloaded], b: [step] });
    expect([error, exchange.status, exchange.text, called]).toEqual([null, 529, bodyOf(529), "a b"]);
    expect(exchange.sentField("retry-after")).toBe("30");
  });

  test.each(NEVER)(
    "also while the channel is in cooldown, before %s that is tried again",
    async (_name, step) => {
      await run({ a: [step, step], b: [overloaded] });
      const { error, exchange } = await scripted.again();
      expect([error, exchange.status, exchange.text]).toEqual([null, 529, bodyOf(529)]);
      expect(Number(exchange.sentField("retry-after"))).toBeWithin(1, 31);
      expect(scripted.called).toEqual(["a", "b", "a"]);
    },
  );

  test("without a response that can be repeated, the gateway's own error names both channels", async () => {
    const unreachable = fail("connect");
    await run({ a: [refuse(401), refuse(401)], b: [unreachable, unreachable] });
    const { error } = await scripted.again();
    expect(error?.code).toBe("upstream_failed");
  });

  test("a 404 of a channel comes after a channel that has the model and is in cooldown", async () => {
    const channels = { a: [overloaded, overloaded], b: [refuse(404), refuse(404), refuse(404)] };
    scripted = await openScripted({ channels });
    const list = (names: string) => {
      const { request } = scripted;
      request.candidates = request.candidates.map((each) => ({
        ...each,
        isListed: names.includes(each.channel.name),
      }));
    };
    list("a");
    await scripted.run();
    expect([scripted.exchange.status, scripted.called]).toEqual([529, ["a", "b"]]);
    // Nobody lists it: the 404 is the best answer.
    const { exchange } = await scripted.again();
    expect([exchange.status, scripted.called]).toEqual([404, ["a", "b", "b"]]);
  });
});

describe("while the only channel is in cooldown", () => {
  test("the client gets its last error again, with the remaining time", async () => {
    await run({
      a: [
        refuse(503, [
          ["retry-after", "30"],
          ["x-should-retry", "true"],
        ]),
      ],
    });
    const second = await scripted.again();
    expect([second.error, second.exchange.status, second.exchange.text]).toEqual([null, 503, bodyOf(503)]);
    const waits = second.exchange.sentFields.filter(([name]) => name === "retry-after");
    expect(waits).toHaveLength(1);
    expect(Number(waits[0]?.[1])).toBeWithin(1, 31);
    expect(second.exchange.sentField("x-should-retry")).toBe("true");
    expect(scripted.called).toEqual(["a"]);
  });

  // In `retry-after` it would make clients wait for hours that only look at this header.
  test.each<[string, Step]>([
    ["in the body", { status: 429, chunks: ['{"error":{"details":[{"retryDelay":"20000s"}]}}'] }],
    [
      "in a header of its own",
      refuse(429, [
        ["x-ratelimit-remaining-requests", "0"],
        ["x-ratelimit-reset-requests", "6h"],
      ]),
    ],
  ])("a wait that the upstream names %s is left to the client", async (_name, step) => {
    await run({ a: [step, step] });
    const second = await scripted.again();
    expect([second.exchange.status, second.exchange.sentField("retry-after")]).toEqual([429, undefined]);
    expect(scripted.called).toEqual(["a", "a"]);
  });

  test("a request that was not sent has no ledger line", async () => {
    await run({ a: [refuse(503, [["retry-after", "30"]])] });
    await scripted.again();
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    expect(scripted.ledger()).toHaveLength(1);
    expect(scripted.records().map(({ status, chargeUsd }) => [status, chargeUsd])).toEqual([
      [503, "0"],
      [503, null],
    ]);
  });

  test("a client of another dialect gets the gateway's own error, in its own dialect", async () => {
    const wait = [["retry-after", "30"]] as const;
    await run({ a: [refuse(503, wait)] }, { platform: "relay", target: "/relay/v1/messages" });
    const same = await scripted.again();
    const other = await scripted.again({ target: "/relay/v1beta/models/m:generateContent" });
    expect([same.error, same.exchange.status]).toEqual([null, 503]);
    expect([other.error?.code, other.exchange.status]).toEqual(["unavailable", 503]);
    expect(JSON.parse(other.exchange.text)).toMatchObject({ error: { code: 503 } });
  });

  test("a refused credential stays a 403", async () => {
    await run({ a: [refuse(401, [["retry-after", "30"]])] });
    const { error } = await scripted.again();
    expect([error?.code, error?.retryAfterSeconds]).toEqual(["credential_refused", 30]);
  });

  test("with several channels, the gateway's own error names them all", async () => {
    const wait = [["retry-after", "30"]] as const;
    await run({ a: [refuse(503, wait)], b: [refuse(429, wait)] });
    const { error } = await scripted.again();
    expect(error?.code).toBe("unavailable");
    expect(error?.message).toContain('"a" is unavailable; "b" is rate limited');
  });
});
