// The contract's promises about the ledger: its lines, amounts and chain, and what a start finds.

import { describe, expect, onTestFinished, test } from "bun:test";
import { createHash } from "node:crypto";
import { chmodSync, copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ask, type Dialect, PRICES, stream, USUAL_USD, whole } from "../world/answers.ts";
import type { Script } from "../world/upstream.ts";
import {
  bearer,
  eventually,
  type Group,
  openOwnWorld,
  type Line,
  makeFolder,
  removeFolder,
  serveIn,
  useWorld,
  type World,
} from "../world/world.ts";

// The gateway's own time zone is Tokyo, and the ledger's times must be UTC all the same.
const world = useWorld({ env: { TZ: "Asia/Tokyo" }, config: { otlp: { url: "http://127.0.0.1:9" } } });
const plain = world.group("plain");
const half = world.group("half", { group: { multiplier: 0.1 } });
const fine = world.group("fine", { group: { multiplier: "0.1234567" } });
const odd = world.group("odd", { channels: { main: { models: ["*"] } } });
const content = world.group("content", { platform: "content" });
const chat = world.group("chat", { platform: "responses", channels: { main: { platform: "chat" } } });
const sold = world.group("sold", {
  platform: "responses",
  channels: { main: { platform: "chat", models: ["gpt-4o-mini"] } },
});
const seller = world.group("seller", {
  platform: "responses",
  channels: { main: { platform: "chat", bill: "reported" } },
});
const two = world.group("two", { channels: { first: {}, second: { priority: 2 } } });
const pair = world.group("pair", { channels: { first: {}, second: { priority: 2 } } });
const nowhere = world.group("nowhere", { channels: { main: { base_url: "http://127.0.0.1:1" } } });
const refused = world.group("refused", { key: { limits: { requests_per_minute: 1 } } });
const codex = world.group("codex", { platform: "responses" });
const kept = world.group("kept", { key: { record: "lines" } });
const others = { group: { other_paths: ["/v1/files"] } };
const elsewhere = world.group("elsewhere", { platform: "responses", ...others });

const sha = (text: string): string => createHash("sha256").update(text).digest("hex");

const no = (status: number): Script => ({
  status,
  body: { type: "error", error: { type: "api_error", message: "no" } },
});
/** Each row has what happens to a request, whether it is streamed, the upstream's script, and fields of its one line. */
const SENT: readonly (readonly [string, boolean, Script, Line])[] = [
  ["is answered", false, {}, { outcome: "complete", basis: "exact", status: 200 }],
  ["is streamed", true, {}, { outcome: "complete", basis: "exact", status: 200 }],
  ["is refused by the upstream", false, no(400), { outcome: "upstream_error", charge_usd: "0", status: 400 }],
  ["fails", false, no(500), { outcome: "upstream_error", charge_usd: "0", status: 500 }],
  ["is not answered", false, (_, out) => out.end("reset"), { outcome: "upstream_error", basis: "unknown" }],
  [
    "is cut",
    true,
    { pieces: stream("messages").slice(0, 3), ending: "cut" },
    { outcome: "upstream_cut", basis: "partial" },
  ],
];

test.each(SENT)("P122: a request that %s has one line", async (_, streamed, script, line) => {
  plain.channel().next(script);
  expect(await world.line(await plain.ask("messages", { stream: streamed }))).toMatchObject(line);
});

test("P122, P144: a request that was sent to two channels has one line, and a request that was refused, free or never sent has no line", async () => {
  two.channel("first").next(no(500));
  expect((await world.line(await two.ask("messages")))["attempts"]).toHaveLength(2);
  const embed = { model: "test-model", input: "x" };
  const embedded = await world.line(await world.request("/v1/embeddings", bearer(codex.key), embed));
  expect(embedded).toMatchObject({ basis: "exact", charge_usd: "0.001" });
  const path = "/v1/files/one";
  const strange = await world.line(await world.request(path, bearer(elsewhere.key)));
  expect(strange).toMatchObject({ endpoint: "other", path, basis: "unknown" });
  await refused.ask("messages");
  const key = { "x-api-key": plain.key };
  const { body } = ask("messages");
  const not = [
    await refused.ask("messages"),
    await plain.ask("messages", { model: 5 }),
    await world.request("/v1/messages", { "x-api-key": "sk-unknown" }, {}),
    await world.request("/v1/messages", key, "no json"),
    await world.request("/v1/messages", key, body, "PUT"),
    await world.request("/v1/messages/count_tokens", key, body),
    await world.request("/v1/models", key),
    await world.request("/v1/responses/resp_1", bearer(codex.key)),
    await world.request("/v1/strange", key, body),
    // Nothing listens at this channel's address, so nothing was sent.
    await nowhere.ask("messages"),
  ];
  expect(not.map(({ status }) => status)).toEqual([429, 400, 401, 400, 405, 200, 200, 200, 404, 502]);
  await world.line(await plain.ask("messages"));
  const ids = new Set(world.lines().map(({ id }) => id));
  for (const answer of not) expect(ids.has(answer.field("x-request-id"))).toBe(false);
});

test("P123: lines are only appended, and prev is the SHA-256 of the line before", async () => {
  await world.line(await plain.ask("messages"));
  const before = readFileSync(world.path("ledger.jsonl"), "utf8");
  await world.line(await plain.ask("messages"));
  const after = readFileSync(world.path("ledger.jsonl"), "utf8");
  expect(after.startsWith(before)).toBe(true);
  const lines = after.split("\n").slice(0, -1);
  expect(lines.length).toBeGreaterThan(1);
  for (const [index, line] of lines.entries())
    if (index > 0) expect(JSON.parse(line).prev).toBe(sha(lines[index - 1]!));
});

test("P128: amounts are exact decimal strings without exponent, and times are UTC", async () => {
  const counts = { input: 1, read: 0, output: 0 };
  half.channel().next({ body: whole("messages", { counts }) });
  const line = await world.line(await half.ask("messages"));
  expect(line).toMatchObject({ official_usd: "0.000001", charge_usd: "0.0000001" });
  expect(line["time"]).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  expect(Math.abs(Date.parse(line["time"]) - Date.now())).toBeLessThan(60_000);
});

test("P22: a multiplier of 0.1 means one tenth", async () => {
  const line = await world.line(await half.ask("messages"));
  expect(line).toMatchObject({ multiplier: "0.1", official_usd: USUAL_USD, charge_usd: "0.000142" });
});

test("P22, P144: a price of 0.1 and a limit of 0.3 are exact", async () => {
  const prices = { tenth: { input: 0.1, cache_read: 0.1, output: 0.1 } };
  const set = (own: World) => own.group("tenth", { key: { limits: { usd_total: 0.3 } } });
  const [own, group] = await openOwnWorld({ config: { prices } }, set);
  const counts = { input: 1_000_000, read: 0, output: 0 };
  group.channel().always({ body: whole("messages", { model: "tenth", counts }) });
  const statuses: number[] = [];
  for (let count = 0; count < 4; count += 1) {
    const fields = { traceparent: TRACE };
    const answer = await group.ask("messages", { model: "tenth", max_tokens: 1 }, fields);
    statuses.push(answer.status);
    if (answer.status !== 200) continue;
    const { charge_usd, traceparent } = await own.line(answer);
    expect([charge_usd, traceparent]).toEqual(["0.1", undefined]);
  }
  // In doubles, 0.1 + 0.1 + 0.1 is not 0.3.
  expect(statuses).toEqual([200, 200, 200, 429]);
});

test("P133: prices of the config come before those of the price book", async () => {
  await world.run("prices", "set", "claude-haiku-4-5", "input=1", "output=2", "cache_read=0.1");
  const line = await world.line(await plain.ask("messages", { model: "claude-haiku-4-5" }));
  expect(line).toMatchObject({ official_usd: USUAL_USD });
  expect(line["price_source"]).toContain("config");
});

const USAGE = { input_tokens: 10, output_tokens: 5 };
const answer = (usage: unknown): Line => ({ ...whole("messages", {}), usage });

describe("P134: usage that cannot be trusted is unknown or suspect", () => {
  test.each<[string, unknown]>([
    ["missing", undefined],
    ["a text", { ...USAGE, input_tokens: "10" }],
    ["negative", { ...USAGE, output_tokens: -5 }],
    ["a fraction", { ...USAGE, output_tokens: 1.5 }],
    [
      "contradictory",
      { ...USAGE, cache_creation_input_tokens: 5, cache_creation: { ephemeral_5m_input_tokens: 50 } },
    ],
    ["of a new kind", { ...USAGE, quantum_input_tokens: 1000 }],
  ])("usage that is %s is unknown or suspect", async (_, usage) => {
    plain.channel().next({ body: answer(usage) });
    const line = await world.line(await plain.ask("messages"));
    expect(line["basis"] === "unknown" || line["suspect"] !== undefined).toBe(true);
  });

  test("ordinary usage is neither unknown nor suspect", async () => {
    plain.channel().next({ body: answer(USAGE) });
    const line = await world.line(await plain.ask("messages"));
    expect(line).toMatchObject({ basis: "exact", charge_usd: "0.00002" });
    expect(line["suspect"]).toBeUndefined();
  });
});

test("P135: a model without a price has amounts null and basis unpriced", async () => {
  const line = await world.line(await odd.ask("messages", { model: "mystery-model-9" }));
  expect(line).toMatchObject({ basis: "unpriced", official_usd: null, charge_usd: null });
  expect(line["usage"]).toMatchObject({ input: 800, output: 300 });
});

test("P136: a cut response is charged for its reported usage and an estimate of the rest, and its basis is partial", async () => {
  const text = "x".repeat(400);
  const pieces = stream("messages", { text }).slice(0, 3);
  plain.channel().next({ pieces, ending: "cut" });
  const line = await world.line(await plain.ask("messages", { stream: true }));
  expect(line).toMatchObject({ outcome: "upstream_cut", basis: "partial" });
  expect(line["usage"]).toMatchObject({ input: 800, cache_read: 200, output: 100 });
  expect(line["charge_usd"]).toBe("0.00102");
  // Half of the answer comes, with about half of the text and without usage.
  plain.channel().next({ body: whole("messages", { text: "x".repeat(4000) }), ending: "cut" });
  const half = await world.line(await plain.ask("messages"));
  expect(half).toMatchObject({ outcome: "upstream_cut", basis: "partial", status: 502 });
  expect(half["usage"].output).toBeWithin(400, 600);
});

test("P136: a response whose client left is charged for its reported usage and an estimate of the rest", async () => {
  plain.channel().next(async (_, out) => {
    out.head(200, { "content-type": "text/event-stream" });
    for (const piece of stream("messages", { text: "y".repeat(40) }).slice(0, 3)) out.write(piece);
    await out.left;
  });
  const client = await plain.open("messages", { stream: true });
  await client.until("yyyy");
  client.close();
  const id = /x-request-id: (\w+)/i.exec(client.bytes().toString())![1];
  const line = await eventually(() => world.lines().find((each) => each["id"] === id));
  expect(line).toMatchObject({ outcome: "client_closed", basis: "partial", charge_usd: "0.00084" });
  expect(line["usage"]).toMatchObject({ input: 800, cache_read: 200, output: 10 });
});

describe("P137: the seller's own amount is in provider_usd, and the line is suspect if the book's amount differs", () => {
  // The book's amounts, per million: 800 × $0.15 + 200 × $0.075 + 300 × $0.6; and 1 × $0.15 + 1 × $0.6.
  const usual = { counts: { input: 1000, read: 200, output: 300 }, official: "0.000315" };
  const tiny = { counts: { input: 1, read: 0, output: 1 }, official: "0.00000075" };
  test.each([
    [usual, 0.000315, false],
    [usual, 0.0003175, false],
    [usual, 0.0003185, true],
    [usual, 0.0003115, true],
    [usual, 0.0001, true],
    [tiny, 0.0000016, false],
    [tiny, 0.0000019, true],
  ])("for %j, a seller's cost %p makes the line suspect: %p", async ({ counts, official }, cost, suspect) => {
    sold.channel().next({ body: whole("chat", { model: "gpt-4o-mini", usage: { cost }, counts }) });
    const line = await world.line(await sold.ask("chat", { model: "gpt-4o-mini" }));
    expect(line).toMatchObject({
      provider_usd: cost.toFixed(9).replace(/0+$/, ""),
      official_usd: official,
    });
    expect(line["suspect"] !== undefined).toBe(suspect);
  });
});

test("P137: the seller's amount is not compared with a price of the config", async () => {
  chat.channel().next({ body: whole("chat", { usage: { cost: 0.5 } }) });
  const line = await world.line(await chat.ask("chat"));
  expect([line["provider_usd"], line["charge_usd"], line["suspect"]]).toEqual(["0.5", USUAL_USD, undefined]);
});

test("P128, P138: with bill: reported, the seller's amount counts, and a line without that amount is suspect", async () => {
  seller.channel().next({ body: whole("chat", { usage: { cost: 5e-10 } }) });
  const named = await world.line(await seller.ask("chat"));
  const [usd, price_source] = ["0.0000000005", "reported"];
  expect(named).toMatchObject({ provider_usd: usd, official_usd: usd, charge_usd: usd, price_source });
  expect(named["suspect"]).toBeUndefined();
  // The seller's amount counts also where nothing else of the usage is known.
  seller.channel().next({ body: { ...whole("chat"), usage: { cost: 0.0005 } } });
  expect(await world.line(await seller.ask("chat"))).toMatchObject({ charge_usd: "0.0005" });
  for (const usage of [{}, { cost: "much" }]) {
    seller.channel().next({ body: whole("chat", { usage }) });
    const silent = await world.line(await seller.ask("chat"));
    expect(silent).toMatchObject({ official_usd: USUAL_USD, suspect: expect.any(String) });
  }
});

test("P135, P137: if a model has no price, the charge is the cost that the answer names", async () => {
  const model = "nobody/mystery-9";
  odd.channel().next({ body: whole("messages", { model, usage: { cost: 0.0007 } }) });
  const line = await world.line(await odd.ask("messages", { model }));
  expect(line).toMatchObject({ basis: "exact", charge_usd: "0.0007", price_source: "reported" });
});

test("P131: each token is charged once, and input excludes cached tokens, in every dialect", async () => {
  const groups = [
    ["messages", plain],
    ["responses", codex],
    ["chat", chat],
    ["content", content],
  ] as const;
  for (const [dialect, group] of groups) {
    const line = await world.line(await group.ask(dialect, { stream: true }));
    expect([dialect, line["usage"], line["charge_usd"]]).toEqual([
      dialect,
      expect.objectContaining({ input: 800, cache_read: 200, output: 300 }),
      USUAL_USD,
    ]);
  }
});

/** Each row has the kind, the dialect, the upstream's report, the line's usage, and the charge if any. */
const PARTS: readonly (readonly [string, Dialect, Line, Line, string | null])[] = [
  [
    "cache writes",
    "messages",
    {
      cache_creation_input_tokens: 70,
      cache_creation: { ephemeral_5m_input_tokens: 50, ephemeral_1h_input_tokens: 20 },
    },
    { input: 800, cache_read: 200, cache_write_5m: 50, cache_write_1h: 20, output: 300 },
    "0.0015225",
  ],
  [
    "thoughts",
    "responses",
    { output_tokens_details: { reasoning_tokens: 120 } },
    { input: 800, output: 300, reasoning: 120 },
    USUAL_USD,
  ],
  [
    "thoughts",
    "chat",
    { completion_tokens_details: { reasoning_tokens: 120 } },
    { output: 300, reasoning: 120 },
    USUAL_USD,
  ],
  [
    "sounds",
    "chat",
    { prompt_tokens_details: { cached_tokens: 200, audio_tokens: 300 } },
    { input: 500, input_audio: 300, cache_read: 200, output: 300 },
    null,
  ],
  [
    "thoughts",
    "content",
    { thoughtsTokenCount: 100, totalTokenCount: 1400 },
    { input: 800, output: 400, reasoning: 100 },
    "0.00162",
  ],
];

test.each(PARTS)("P130, P131: %s of %s answers are billed once", async (_, dialect, usage, kinds, charge) => {
  const group = { messages: plain, responses: codex, chat, content }[dialect];
  for (const streamed of [false, true]) {
    group
      .channel()
      .next(streamed ? { pieces: stream(dialect, { usage }) } : { body: whole(dialect, { usage }) });
    const line = await world.line(await group.ask(dialect, { stream: streamed }));
    expect([line["usage"], line["charge_usd"]]).toMatchObject([kinds, charge]);
  }
});

test("P130: the price follows the model that the response names", async () => {
  plain.channel().next({ body: whole("messages", { model: "claude-opus-4-5" }) });
  const line = await world.line(await plain.ask("messages"));
  expect(line).toMatchObject({ model: "test-model", prices: { output: "25" }, charge_usd: "0.0116" });
});

test("P132: sound and pictures are counted as kinds of usage of their own", async () => {
  const usage = {
    promptTokensDetails: [
      { modality: "TEXT", tokenCount: 600 },
      { modality: "AUDIO", tokenCount: 400 },
    ],
    cacheTokensDetails: [{ modality: "TEXT", tokenCount: 200 }],
    candidatesTokensDetails: [{ modality: "IMAGE", tokenCount: 300 }],
  };
  const model = "gemini-2.5-flash-image";
  content.channel().next({ body: whole("content", { model, usage }) });
  const line = await world.line(await content.ask("content", { model }));
  expect(line["usage"]).toMatchObject({ input: 400, cache_read: 200, input_audio: 400, output_image: 300 });
});

test("P132: in the responses and content dialects, each kind of search counts as a kind of usage of its own", async () => {
  const output = [{ type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search" } }];
  codex.channel().next({ body: { ...whole("responses"), output } });
  expect((await world.line(await codex.ask("responses")))["usage"]).toMatchObject({ web_search: 1 });
  const { candidates, ...more }: Line = whole("content");
  const found = { ...candidates[0], groundingMetadata: { webSearchQueries: ["x"] } };
  content.channel().next({ body: { ...more, candidates: [found] } });
  expect((await world.line(await content.ask("content")))["usage"]).toMatchObject({ google_search: 1 });
});

test("P132: web searches have a price and a kind of usage of their own", async () => {
  const server_tool_use = { web_search_requests: 3 };
  odd.channel().next({ body: whole("messages", { model: "claude-sonnet-4-5", usage: { server_tool_use } }) });
  const line = await world.line(await odd.ask("messages", { model: "claude-sonnet-4-5" }));
  expect(line["usage"]).toMatchObject({ input: 800, web_search: 3 });
  // Three searches at $10 a thousand, and the tokens.
  expect(line["prices"]).toMatchObject({ web_search_per_1k: "10", output: "15" });
  expect(Number(line["official_usd"])).toBeGreaterThan(0.03);
});

test.each(["0.1.0", "0.1.1", "0.2.0"])(
  "P143: `ledger verify`, `usage` and `ledger show` read the ledger of gateway %s",
  async (version) => {
    const copy = world.path(`of-${version}.jsonl`);
    copyFileSync(join(import.meta.dir, `ledgers/${version}.jsonl`), copy);
    chmodSync(copy, 0o600);
    const read = (...args: string[]) => world.json(...args, "--ledger", copy);
    expect(await read("ledger", "verify")).toMatchObject({ right: true, lines: 5, corrections: 1 });
    const { total } = await read("usage", "--by", "model", "--since", "2026-11-01");
    // The total of three whole answers and one cut after 5 tokens, times the multiplier of 0.8.
    expect(total).toMatchObject({ requests: 4, partial: 1, unpriced: 0, charge_usd: "0.004072" });
    const first = JSON.parse(readFileSync(copy, "utf8").split("\n")[0]!);
    expect((await read("ledger", "show", first.id)).line).toEqual(first);
    writeFileSync(
      copy,
      readFileSync(copy, "utf8").replace('"charge_usd":"0.001136"', '"charge_usd":"0.001137"'),
    );
    expect(await read("ledger", "verify")).toMatchObject({ right: false });
  },
);

/** Returns the messages of a new conversation, which no earlier request has bound to a channel. */
const talk = () => ({ messages: [{ role: "user", content: crypto.randomUUID() }] });

describe("P141: `ledger show` explains usage × price, multiplier, rounding and attempts", () => {
  const show = async (line: Line): Promise<string> => {
    const { status, stdout } = await world.run("ledger", "show", line["id"]);
    expect(status).toBe(0);
    expect((await world.json("ledger", "show", line["id"])).line).toEqual(line);
    return stdout.replaceAll(/ +/g, " ");
  };

  test("`ledger show` explains each kind that was used, and each attempt", async () => {
    const usage = { cache_creation_input_tokens: 20, cache_creation: { ephemeral_1h_input_tokens: 20 } };
    two.channel("first").next({ status: 500, body: { error: { message: "no" } } });
    two.channel("second").next({ body: whole("messages", { usage }) });
    const shown = await show(await world.line(await two.ask("messages", talk())));
    for (const row of [
      "input 800 tokens × $1 / 1,000,000 = $0.0008",
      "cache_read 200 tokens × $0.1 / 1,000,000 = $0.00002",
      "cache_write_1h 20 tokens × $2 / 1,000,000 = $0.00004",
      "output 300 tokens × $2 / 1,000,000 = $0.0006",
      "official amount = $0.00146",
      "charge = $0.00146 × 1 (the group's multiplier) = $0.00146, not rounded",
      "1. two-first: status 500",
      "2. two-second: status 200",
    ])
      expect(shown).toContain(row);
  });

  test("`ledger show` explains a rounded charge, and calls with a price of their own", async () => {
    const counts = { input: 1, read: 0, output: 0 };
    fine.channel().next({ body: whole("messages", { counts }) });
    expect(await show(await world.line(await fine.ask("messages")))).toContain(
      "charge = $0.000001 × 0.1234567 (the group's multiplier) = $0.000000123457, rounded once, half away from zero, from $0.0000001234567",
    );
    const usage = { server_tool_use: { web_search_requests: 3 }, service_tier: "batch" };
    odd.channel().next({ body: whole("messages", { model: "claude-sonnet-4-5", usage }) });
    const shown = await show(await world.line(await odd.ask("messages", { model: "claude-sonnet-4-5" })));
    expect(shown).toContain("web_search 3 calls × $10 / 1,000 = $0.03");
    expect(shown).toContain("× $15 / 1,000,000 × 0.5 (service_tier=batch) = $0.00225");
  });

  test("`ledger show` explains a channel that did not answer, and a model without a price", async () => {
    two.channel("first").next((_, out) => out.end("reset"));
    expect(await show(await world.line(await two.ask("messages", talk())))).toContain("1. two-first: reset");
    const unpriced = await show(await world.line(await odd.ask("messages", { model: "mystery-9" })));
    expect(unpriced).toContain("official amount: not known");
  });
});

const FIELDS =
  "v id time key group platform channel endpoint model upstream_model stream status outcome basis usage raw_usage prices " +
  "price_source tier official_usd multiplier charge_usd first_byte_ms duration_ms attempts client upstream_request_id prev";

test("P144: a line has the contract's fields in their order", async () => {
  plain.channel().next({ fields: { "request-id": "req_011C" } });
  const fields = {
    "user-agent": "claude-cli/2.1.332 (external, cli)",
    "x-claude-code-session-id": "db7f03b5-0000-4000-8000-000000000000",
    "x-gateway-label": "my-project",
  };
  const line = await world.line(await plain.ask("messages", { stream: true }, fields));
  expect(Object.keys(line).join(" ")).toBe(FIELDS);
  expect(line).toMatchObject({
    v: 1,
    key: "plain",
    group: "plain",
    platform: "messages",
    channel: "plain-main",
    endpoint: "/v1/messages",
    model: "test-model",
    upstream_model: "test-model",
    stream: true,
    status: 200,
    outcome: "complete",
    basis: "exact",
    prices: { input: "1", cache_read: "0.1", output: "2" },
    tier: "standard",
    multiplier: "1",
    attempts: [{ channel: "plain-main", status: 200 }],
    client: {
      tool: "claude-code",
      version: "2.1.332",
      session: fields["x-claude-code-session-id"],
      label: "my-project",
    },
    upstream_request_id: "req_011C",
  });
  expect(Object.keys(PRICES)).toEqual(expect.arrayContaining(Object.keys(line["prices"])));
});

test("P144: upstream_request_id is never that of an earlier attempt", async () => {
  const lasts: Script[] = [{}, (_, out) => out.end("reset")];
  for (const last of lasts) {
    pair.channel("first").next({ status: 500, body: {}, fields: { "request-id": "req_first" } });
    pair.channel("second").next(last);
    const line = await world.line(await pair.ask("messages", talk()));
    expect(line["attempts"]).toHaveLength(2);
    expect(line).not.toHaveProperty("upstream_request_id");
  }
});

const TRACE = `00-${"a".repeat(32)}-${"b".repeat(16)}-00`;
const pass = { input_tokens: 10, output_tokens: 5 };
/** Each row has the case, the upstream's report, more fields of the request, and the expected fields of its line. */
const APPLYING: readonly (readonly [string, Group, Dialect, object, Record<string, string>, Line])[] = [
  ["the request's trace", plain, "messages", {}, { traceparent: TRACE }, { traceparent: TRACE }],
  ["the recording's name", kept, "messages", {}, {}, { recording: "lines" }],
  ["the model whose price counts", odd, "messages", { model: "mystery-7" }, {}, { priced_as: "test-model" }],
  [
    "the passes of an answer",
    plain,
    "messages",
    {
      usage: {
        ...pass,
        iterations: [
          { ...pass, type: "message" },
          { ...pass, type: "compaction" },
        ],
      },
    },
    {},
    { usage: { input: 20, output: 10 }, parts: [{ pass: "message" }, { pass: "compaction" }] },
  ],
  [
    "the usage without a price, and what the rest costs",
    chat,
    "chat",
    { usage: { prompt_tokens_details: { audio_tokens: 300 } } },
    {},
    { basis: "unpriced", unpriced_usage: { input_audio: 300 }, at_least_usd: "0.0013" },
  ],
];

test.each(APPLYING)("P144: a line contains %s", async (_, group, dialect, shape, fields, line) => {
  group.channel().next({ body: whole(dialect, shape) });
  expect(await world.line(await group.ask(dialect, {}, fields))).toMatchObject(line);
});

/** Changes the lines, and computes each `prev` again. */
function chain(
  lines: readonly string[],
  change: (line: Line, index: number) => Line = (line) => line,
): string[] {
  let prev: string | null = null;
  return lines.map((text, index) => {
    const line = change(JSON.parse(text), index);
    const next = JSON.stringify(prev === null ? line : { ...line, prev });
    prev = sha(next);
    return next;
  });
}

describe("P139: `ledger verify` finds a change of any line", () => {
  const verify = async (change: (lines: string[]) => string[]): Promise<number> => {
    for (let count = world.lines().length; count < 6; count += 1)
      await world.line(await plain.ask("messages"));
    const lines = readFileSync(world.path("ledger.jsonl"), "utf8").split("\n").slice(0, -1);
    const copy = world.path("copy.jsonl");
    writeFileSync(
      copy,
      change(lines.slice(0, 6))
        .map((line) => `${line}\n`)
        .join(""),
    );
    const { status, stdout } = await world.run("ledger", "verify", "--ledger", copy, "--json");
    expect(JSON.parse(stdout).right).toBe(status === 0);
    return status;
  };

  test("`verify` finds nothing in an unchanged copy of a ledger", async () => {
    expect(await verify((lines) => lines)).toBe(0);
  });

  test.each<[string, (lines: string[]) => string[]]>([
    ["changed", (lines) => lines.with(2, lines[2]!.replace('"key":"', '"key":"x'))],
    ["missing", (lines) => lines.toSpliced(2, 1)],
    ["missing at the beginning", (lines) => lines.slice(1)],
    ["added", (lines) => lines.toSpliced(2, 0, lines[1]!)],
    ["moved", (lines) => [lines[1]!, lines[0]!, ...lines.slice(2)]],
    [
      "changed in its charge, while each prev is right",
      (lines) => chain(lines, (line, index) => (index === 1 ? { ...line, charge_usd: "0.00001" } : line)),
    ],
    ...(["official_usd", "multiplier"] as const).map((name): [string, (lines: string[]) => string[]] => [
      `changed in its ${name}, while each prev is right`,
      (lines) => chain(lines, (line, index) => (index === 1 ? { ...line, [name]: "0.5" } : line)),
    ]),
    [
      "changed in a price, while each prev is right",
      (lines) =>
        chain(lines, (line, index) =>
          index === 1 ? { ...line, prices: { ...line["prices"], output: "3" } } : line,
        ),
    ],
    [
      "changed in its usage, while each prev is right",
      (lines) =>
        chain(lines, (line, index) =>
          index === 1 ? { ...line, usage: { ...line["usage"], output: 1 } } : line,
        ),
    ],
  ])("`verify` finds a line that is %s", async (_, change) => {
    expect(await verify(change)).toBe(1);
  });
});

describe("P140: `verify --anchor` finds that lines which the anchor covers are gone", () => {
  const check = async (cut: number, ...flags: string[]) => {
    for (let count = world.lines().length; count < 6; count += 1)
      await world.line(await plain.ask("messages"));
    const lines = readFileSync(world.path("ledger.jsonl"), "utf8").split("\n").slice(0, -1);
    const copy = world.path("anchored.jsonl");
    writeFileSync(copy, lines.map((line) => `${line}\n`).join(""));
    const { anchor, lines: count } = await world.json("ledger", "anchor", "--ledger", copy);
    expect(count).toBe(lines.length);
    writeFileSync(
      copy,
      lines
        .slice(0, lines.length - cut)
        .map((line) => `${line}\n`)
        .join(""),
    );
    return world.run("ledger", "verify", "--ledger", copy, "--anchor", anchor, ...flags);
  };

  test.each([[[]], [["--partial"]]])("with %p, `verify --anchor` finds a missing line", async (flags) => {
    expect((await check(0, ...flags)).status).toBe(0);
    const gone = await check(1, ...flags);
    expect(gone.status).toBe(1);
    expect(gone.stdout + gone.stderr).toContain("anchor");
  });

  test("`verify` fails for an anchor with another hash, also with --partial", async () => {
    const copy = world.path("anchored.jsonl");
    const { lines } = await world.json("ledger", "anchor", "--ledger", copy);
    const other = `${lines}:${sha("other")}`;
    expect((await world.run("ledger", "verify", "--ledger", copy, "--anchor", other)).status).toBe(1);
    expect(
      (await world.run("ledger", "verify", "--ledger", copy, "--partial", "--anchor", other)).status,
    ).toBe(1);
  });
});

test("P140: `verify --since` checks from a line on and says how many lines it left out", async () => {
  for (let count = world.lines().length; count < 5; count += 1) await world.line(await plain.ask("messages"));
  const copy = world.path("since.jsonl");
  const all = readFileSync(world.path("ledger.jsonl"), "utf8").split("\n").slice(0, 5);
  const early = { time: "2026-01-02T03:04:05.000Z" };
  const lines = chain(all, (line, index) => ({ ...line, ...(index < 2 && early) }));
  const write = (texts: readonly string[]): void => writeFileSync(copy, `${texts.join("\n")}\n`);
  const { id, time } = JSON.parse(lines[3]!);
  const verify = (since: string) => world.json("ledger", "verify", "--ledger", copy, "--since", since);
  write(lines);
  expect(await verify(id)).toMatchObject({ right: true, unchecked: 3 });
  const said = await world.run("ledger", "verify", "--ledger", copy, "--since", id);
  expect(said.stdout + said.stderr).toContain("not checked: 3");
  expect(await verify(time.slice(0, 10))).toMatchObject({ right: true, unchecked: 2 });
  expect(await verify("2026-01-02")).toMatchObject({ right: true, unchecked: 0 });
  // A fault in an unchecked line is not found, and one in a checked line is.
  for (const [at, right] of [
    [1, true],
    [3, false],
  ] as const) {
    write(lines.with(at, lines[at]!.replace('"charge_usd":"', '"charge_usd":"1')));
    expect(await verify(id)).toMatchObject({ right });
  }
});

test("P127: a gateway does not start on a ledger that another gateway holds, and names the other gateway", async () => {
  const other = makeFolder();
  onTestFinished(() => removeFolder(other));
  const config = { ...world.build(), ledger: { path: world.path("ledger.jsonl") } };
  writeFileSync(join(other, "gateway.yaml"), JSON.stringify(config), { mode: 0o600 });
  const said = await serveIn(other).then(
    () => "it started",
    (error: unknown) => String(error),
  );
  expect(said).toContain(String(world.server.pid));
  expect((await plain.ask("messages")).status).toBe(200);
});

describe("a start completes the ledger after a kill, and marks lost lines", () => {
  test("P124: after a kill and a start, each request in flight has one line, and no line is torn or doubled", async () => {
    const [own, group] = await openOwnWorld({}, (world) => world.group("kill"));
    for (let round = 0; round < 3; round += 1) {
      await own.line(await group.ask("messages"));
      const silent = group.channel().seen.length;
      group.channel().next(async (_, out) => out.left);
      const waiting = await group.open("messages");
      await group.channel().got(silent + 1);
      group.channel().next(async (_, out) => {
        out.head(200, { "content-type": "text/event-stream" });
        for (const piece of stream("messages").slice(0, 3)) out.write(piece);
        await out.left;
      });
      const streaming = await group.open("messages", { stream: true });
      await streaming.until("Hello from upstream");
      let journal: Uint8Array = new Uint8Array();
      group.channel().next(() => {
        journal = readFileSync(own.path("ledger.jsonl.open"));
        return {};
      });
      const finished = await group.ask("messages");
      await own.line(finished);
      await own.kill();
      // The files are as if the kill came before a line's newline, before the journal noted the request's end, or within a line.
      writeFileSync(own.path("ledger.jsonl.open"), journal);
      if (round !== 1) {
        const whole = readFileSync(own.path("ledger.jsonl"));
        writeFileSync(own.path("ledger.jsonl"), whole.subarray(0, round === 0 ? -1 : -50));
      }
      await own.start();
      const id = /x-request-id: (\w+)/i.exec(streaming.bytes().toString())![1];
      const lines = own.lines();
      expect(lines).toHaveLength(4 * (round + 1));
      expect(new Set(lines.map((line) => line["id"])).size).toBe(lines.length);
      expect(lines.filter((line) => line["id"] === id)).toMatchObject([{ outcome: "interrupted" }]);
      expect(lines.filter((line) => line["id"] === finished.field("x-request-id"))).toHaveLength(1);
      waiting.close();
      streaming.close();
    }
    expect((await own.run("ledger", "verify")).status).toBe(0);
  });

  /** Sends two requests, removes the line of the second while the gateway is stopped, and starts it again. */
  async function lose(use: (own: World, group: Group) => Promise<void>): Promise<void> {
    const set = (own: World) => own.group("broken", { key: { limits: { usd_total: "0.003" } } });
    const [own, group] = await openOwnWorld({}, set);
    for (let count = 0; count < 2; count += 1) await own.line(await group.ask("messages"));
    await own.halt();
    const [first] = readFileSync(own.path("ledger.jsonl"), "utf8").split("\n");
    writeFileSync(own.path("ledger.jsonl"), `${first}\n`);
    await own.start();
    await use(own, group);
  }

  test("P142: a gateway that starts with a broken ledger marks the fault, goes on, and reports the fault until ledger accept", async () => {
    await lose(async (own, group) => {
      expect((await group.ask("messages")).status).toBe(200);
      await eventually(() => own.lines().some(({ mark }) => mark !== undefined));
      await eventually(() => own.log().includes("`gateway ledger accept`"));
      expect(JSON.stringify((await own.json("doctor")).checks)).toContain("ledger accept");
      expect((await own.run("ledger", "verify")).status).toBe(1);
      await own.halt();
      expect((await own.run("ledger", "accept")).status).toBe(0);
      expect((await own.run("ledger", "verify")).status).toBe(0);
      await own.start();
      expect(own.log()).not.toContain("`gateway ledger accept`");
    });
  });

  test("P142: limits count lost lines that the index still has", async () => {
    await lose(async (_, group) => {
      expect((await group.ask("messages")).status).toBe(200);
      expect((await group.ask("messages")).status).toBe(429);
    });
  });
});

const hasPrlimit = Bun.which("prlimit") !== null && Bun.which("bash") !== null;

test.skipIf(!hasPrlimit)(
  "P126: while the ledger cannot be written, requests are refused, and finished ones get their lines later",
  async () => {
    // A limit on the size of files takes the place of a full disk.
    const prefix = ["bash", "-c", `trap '' XFSZ; exec "$0" "$@"`];
    const [own, group] = await openOwnWorld({ prefix }, (own) => own.group("full"));
    const limit = (bytes: number | string): void => {
      const { success } = Bun.spawnSync(["prlimit", "--pid", String(own.server.pid), `--fsize=${bytes}:`]);
      expect(success).toBe(true);
    };
    await own.line(await group.ask("messages"));
    const held = Promise.withResolvers<void>();
    group.channel().next(() => held.promise.then(() => ({})));
    const running = group.ask("messages");
    await group.channel().got(2);
    // Only a part of a line fits.
    limit(readFileSync(own.path("ledger.jsonl")).length + 100);
    held.resolve();
    const finished = await running;
    expect(finished.status).toBe(200);
    const refused = await group.ask("messages");
    expect([refused.status, refused.text]).toEqual([503, expect.stringContaining("ledger")]);
    // Now not even a smaller journal fits, so the gateway cannot begin to write its ledger again.
    limit(1);
    expect((await group.ask("messages")).status).toBe(503);
    expect([own.lines().length, group.channel().seen.length]).toEqual([1, 2]);
    limit("unlimited");
    await eventually(async () => (await group.ask("messages")).status === 200);
    await own.line(finished);
    await own.halt();
    expect((await own.run("ledger", "verify")).status).toBe(0);
    expect(own.lines()).toHaveLength(group.channel().seen.length);
  },
);
