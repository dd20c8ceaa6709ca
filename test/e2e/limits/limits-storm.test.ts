// 200 requests at once, of every kind, by clients that stay or leave, to a gateway that is killed and started again: what
// the upstream really worked is counted here, and no limit is exceeded by more than docs/contract.md allows.

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";

import { lineSchema } from "../../../src/billing/ledger/line.ts";
import { verifyLedger } from "../../../src/billing/verify/verify.ts";
import { type ChildGateway, keyOf, makeConfig, startGateway } from "../../harness/gateway.ts";
import { openRaw, writeRequest } from "../../harness/raw.ts";
import { makeTempFolder } from "../../harness/temp.ts";
import { type Dice, openDice } from "../crowd.ts";

/** USD per million tokens. */
const PRICES = { m: { input: "3", output: "15" }, e: { input: "3" } };
const OUTPUT = 1_000;
const LIMIT = 0.5;
const PARALLEL = 200;

type Owner = "messages" | "responses";

interface Kind {
  readonly owner: Owner;
  readonly path: string;
  readonly body: string;
  /** The client leaves as soon as the upstream has the request, which then stops its work. */
  readonly leaves?: true;
}

const CAPPED = '{"model":"m","max_tokens":1000,"messages":[]}';
const KINDS: readonly Kind[] = [
  { owner: "messages", path: "/v1/messages", body: CAPPED },
  { owner: "messages", path: "/v1/messages", body: CAPPED.replace("{", '{"stream":true,') },
  {
    owner: "messages",
    path: "/v1/messages",
    body: '{"model":"m","max_tokens":1,"max_tokens":1000,"messages":[]}',
  },
  { owner: "messages", path: "/v1/messages", body: '{"model":"m","max_tokens":999.5,"messages":[]}' },
  { owner: "messages", path: "/v1/messages", body: '{"model":"m","messages":[]}' },
  {
    owner: "messages",
    path: "/v1/messages",
    body: `{"model":"m","max_tokens":1000,"x":"${"y".repeat(8_000)}"}`,
    leaves: true,
  },
  { owner: "messages", path: "/v1/messages", body: '{"model":"unpriced","max_tokens":1000,"messages":[]}' },
  { owner: "messages", path: "/v1/messages/count_tokens", body: CAPPED },
  { owner: "responses", path: "/v1/responses", body: '{"model":"m","max_output_tokens":1000,"input":"x"}' },
  {
    owner: "responses",
    path: "/v1/responses",
    body: '{"model":"m","max_output_tokens":1000,"background":true,"input":"x"}',
  },
  {
    owner: "responses",
    path: "/v1/responses",
    body: `{"model":"m","max_output_tokens":1000,"input":"${"y".repeat(8_000)}"}`,
    leaves: true,
  },
  { owner: "responses", path: "/v1/embeddings", body: `{"model":"e","input":"${"y".repeat(2_000)}"}` },
];

/** What requests cost at the upstream, whatever becomes of their responses. */
class Upstream {
  readonly truth = { messages: 0, responses: 0 };
  /** The most that one request cost. */
  most = 0;
  worked = 0;
  unpriced = 0;
  #waiting: (() => void)[] = [];
  readonly #server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch: async (request) => this.#answer(new URL(request.url).pathname, await request.text()),
  });

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}`;
  }

  /** Resolves when this many requests have cost something. */
  async reached(count: number): Promise<void> {
    while (this.worked < count) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  stop(): void {
    void this.#server.stop(true);
  }

  #answer(path: string, text: string): Response | Promise<Response> {
    if (path.endsWith("/count_tokens")) return Response.json({ input_tokens: 5 });
    const embeds = path.endsWith("/embeddings");
    const owner = path === "/v1/messages" ? "messages" : "responses";
    const leaves = KINDS.some((kind) => kind.leaves === true && kind.body === text);
    if (text.includes('"unpriced"')) this.unpriced += 1;
    const input = Math.ceil(text.length / 5);
    const cost = (input * 3 + (embeds || leaves ? 0 : OUTPUT * 15)) / 1e6;
    this.truth[owner] += cost;
    this.most = Math.max(this.most, cost);
    this.worked += 1;
    for (const wake of this.#waiting.splice(0)) wake();
    if (leaves) return new Promise<Response>(() => {});
    if (embeds)
      return Response.json({
        object: "list",
        data: [],
        model: "e",
        usage: { prompt_tokens: input, total_tokens: input },
      });
    return owner === "messages" ? answerMessage(text, input) : answerResponse(text, input, this.worked);
  }
}

function answerMessage(text: string, input: number): Response {
  const usage = { input_tokens: input, output_tokens: OUTPUT };
  const message = { id: "msg_1", type: "message", role: "assistant", model: "m", content: [], usage };
  if (!text.includes('"stream":true'))
    return Response.json({ ...message, content: [{ type: "text", text: "x" }], stop_reason: "end_turn" });
  const events = [
    { type: "message_start", message },
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage },
    { type: "message_stop" },
  ];
  const lines = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  return new Response(lines.join(""), { headers: { "content-type": "text/event-stream" } });
}

/** A background response costs as much, but nobody fetches it. */
function answerResponse(text: string, input: number, id: number): Response {
  const response = { id: `resp_${id}`, object: "response", model: "m" };
  if (text.includes('"background":true'))
    return Response.json({ ...response, status: "queued", usage: null });
  const usage = { input_tokens: input, output_tokens: OUTPUT, total_tokens: input + OUTPUT };
  const content = [{ type: "output_text", text: "x" }];
  const output = [{ type: "message", role: "assistant", content }];
  return Response.json({ ...response, status: "completed", output, usage });
}

/** Sends a request and waits for its response, or leaves once the upstream has it. */
async function ask(port: number, { owner, path, body, leaves }: Kind, upstream: Upstream): Promise<void> {
  const before = upstream.worked;
  const client = await openRaw(port);
  const fields = {
    "content-type": "application/json",
    connection: "close",
    ...(owner === "messages" ? { "x-api-key": keyOf(owner) } : { authorization: `Bearer ${keyOf(owner)}` }),
  };
  client.send(writeRequest({ method: "POST", target: path, fields, body }));
  // A request that is refused never reaches the upstream.
  if (leaves === true) await Promise.race([upstream.reached(before + 1), client.ended]);
  else await client.ended;
  client.close();
}

type End = "is killed" | "is stopped" | "goes on";

async function runRound(gateway: ChildGateway, upstream: Upstream, roll: Dice, end: End): Promise<void> {
  const kinds = Array.from({ length: PARALLEL }, () => KINDS[Math.floor(roll() * KINDS.length)]!);
  const before = upstream.worked;
  const all = kinds.map((kind) => ask(gateway.port, kind, upstream).catch(() => undefined));
  if (end === "goes on") {
    await Promise.all(all);
    await gateway.recorded(PARALLEL);
    return;
  }
  await Promise.race([upstream.reached(before + 1 + Math.floor(roll() * 20)), Promise.all(all)]);
  gateway.signal(end === "is killed" ? "SIGKILL" : "SIGTERM");
  await gateway.exited;
  await Promise.all(all);
}

/** What limits count, by owner: the charge of each line, or its estimate. */
function sumCounted(path: string): { readonly counted: Record<Owner, number>; readonly lines: number } {
  const counted = { messages: 0, responses: 0 };
  const texts = readFileSync(path, "utf8").trim().split("\n");
  for (const text of texts) {
    const line = lineSchema.parse(JSON.parse(text));
    const owner = line.key === "messages" ? "messages" : "responses";
    counted[owner] += Number(line.limit_usd ?? line.charge_usd);
  }
  return { counted, lines: texts.length };
}

const SEEDS = process.env["LONG_TESTS"] === "1" ? 25 : 1;
const CASES = Array.from({ length: SEEDS }, (_, seed): [strict: boolean, seed: number][] => [
  [false, 4 * seed + 1],
  [false, 4 * seed + 2],
  [true, 4 * seed + 3],
  [true, 4 * seed + 4],
]).flat();

test.each(CASES)("no limit is passed, strict: %p (seed %d)", async (strict, seed) => {
  using folder = makeTempFolder();
  const roll = openDice(seed);
  const upstream = new Upstream();
  const limits = { usd_total: String(LIMIT), strict };
  const base = makeConfig(upstream);
  const config = { ...base, prices: PRICES, keys: base.keys.map((key) => ({ ...key, limits })) };
  for (const last of [false, false, false, true]) {
    const gateway = await startGateway({ config, folder });
    await runRound(gateway, upstream, roll, last ? "goes on" : roll() < 0.7 ? "is killed" : "is stopped");
    if (last) await gateway.stop();
  }
  upstream.stop();
  const { counted, lines } = sumCounted(folder.join("ledger.jsonl"));
  const beyond = strict ? 0 : upstream.most;
  for (const owner of ["messages", "responses"] as const) {
    const truth = upstream.truth[owner];
    expect(truth).toBeLessThanOrEqual(LIMIT + beyond);
    // Every cost counts, also of clients that left and of killed gateways. The sums here are floats.
    expect(counted[owner]).toBeGreaterThanOrEqual(truth - 1e-9);
  }
  // A request that was about to be sent when the gateway was killed has a line, too.
  expect(lines).toBeGreaterThanOrEqual(upstream.worked);
  expect(upstream.unpriced).toBe(0);
  expect(upstream.worked).toBeGreaterThan(0);
  const findings: unknown[] = [];
  verifyLedger(folder.join("ledger.jsonl"), { partial: false, running: false }, (finding) =>
    findings.push(finding),
  );
  expect(findings).toEqual([]);
});
