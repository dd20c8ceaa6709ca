// Tests the exact ledger line that a request leaves, for every way in which it can end, in every dialect.
// The amounts are computed by hand, from prices that make that easy:
// per million tokens input $3, cache read $0.3, cache write $3.75 (5m) and $6 (1h), output $15; multiplier 0.8.

import { describe, expect, test } from "bun:test";
import { type Answer, answerJson } from "../../harness/model/answers/answer.ts";
import type { FamilyName } from "../../harness/model/answers/family.ts";
import { type Step, planSteps } from "../../harness/model/script.ts";
import { type Gate, makeGate } from "../../harness/upstreams/demo-upstream.ts";
import { makeConfig } from "../../harness/gateway.ts";
import type { RequestLines } from "../../harness/raw.ts";
import {
  bearer,
  type DialectName,
  DIALECTS,
  openOwnWorld,
  type Line,
  type Running,
  type World,
} from "../world.ts";

const PRICES = { input: "3", cache_read: "0.3", cache_write_5m: "3.75", cache_write_1h: "6", output: "15" };

function withPrices(more: Record<string, unknown> = {}) {
  return (url: string) => {
    const config = makeConfig({ url });
    const groups = Object.entries(config.groups).map(([name, group]) => [
      name,
      { ...group, multiplier: "0.8" },
    ]);
    return { groups: Object.fromEntries(groups), prices: { m: PRICES }, ...more };
  };
}

/** Eight bytes, which estimates count as two tokens. */
const WORD = "abcdefg ";
const TEN = Array.from({ length: 10 }, () => WORD);
const event = (name: string, value: object): string => `event: ${name}\ndata: ${JSON.stringify(value)}\n\n`;

const MESSAGES_USAGE = {
  input_tokens: 100,
  cache_read_input_tokens: 1000,
  cache_creation_input_tokens: 250,
  cache_creation: { ephemeral_5m_input_tokens: 200, ephemeral_1h_input_tokens: 50 },
};
const message = { id: "msg_1", type: "message", role: "assistant", model: "m", stop_reason: null };
const RESPONSES_USAGE = {
  input_tokens: 1100,
  input_tokens_details: { cached_tokens: 1000 },
  output_tokens: 40,
  output_tokens_details: { reasoning_tokens: 16 },
  total_tokens: 1140,
};
const response = { id: "resp_1", object: "response", created_at: 1, model: "m", output: [] };
const item = { id: "msg_1", type: "message", role: "assistant", content: [] };
const snapshot = (candidates: number) => ({
  promptTokenCount: 1100,
  cachedContentTokenCount: 1000,
  candidatesTokenCount: candidates,
  thoughtsTokenCount: 16,
  totalTokenCount: 1116 + candidates,
});
const chunk = (text: string, candidates: number, more: object = {}): object => ({
  candidates: [{ content: { role: "model", parts: [{ text }] }, ...more }],
  usageMetadata: snapshot(candidates),
  modelVersion: "m",
});

/** An answer in pieces: `before` comes before the ten words, and `after` ends it. */
interface Speech {
  readonly family: FamilyName;
  readonly before: readonly string[];
  readonly words: readonly string[];
  readonly after: readonly string[];
  readonly body: object;
}

const delta = (type: string, more: object): string => event(type, { type, ...more });

const MESSAGES: Speech = {
  family: "messages",
  before: [
    delta("message_start", {
      message: { ...message, content: [], usage: { ...MESSAGES_USAGE, output_tokens: 1 } },
    }),
    delta("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
  ],
  words: TEN.map((text) => delta("content_block_delta", { index: 0, delta: { type: "text_delta", text } })),
  after: [
    delta("content_block_stop", { index: 0 }),
    delta("message_delta", { delta: { stop_reason: "end_turn" }, usage: { output_tokens: 40 } }),
    delta("message_stop", {}),
  ],
  body: {
    ...message,
    content: [{ type: "text", text: TEN.join("") }],
    stop_reason: "end_turn",
    usage: { ...MESSAGES_USAGE, output_tokens: 40 },
  },
};
const done = { ...response, status: "completed", usage: RESPONSES_USAGE };
const RESPONSES: Speech = {
  family: "responses",
  before: [
    delta("response.created", { response: { ...response, status: "in_progress", usage: null } }),
    delta("response.output_item.added", { output_index: 0, item }),
  ],
  words: TEN.map((text) =>
    delta("response.output_text.delta", { item_id: "msg_1", output_index: 0, content_index: 0, delta: text }),
  ),
  after: [
    delta("response.output_item.done", { output_index: 0, item }),
    delta("response.completed", { response: done }),
  ],
  body: {
    ...done,
    output: [{ ...item, content: [{ type: "output_text", text: TEN.join(""), annotations: [] }] }],
  },
};
const SPEECHES: Record<DialectName, Speech> = {
  messages: MESSAGES,
  responses: RESPONSES,
  chat: RESPONSES,
  content: {
    family: "content",
    before: [],
    words: TEN.map((text) => `data: ${JSON.stringify(chunk(text, 5))}\n\n`),
    after: [`data: ${JSON.stringify(chunk("", 24, { finishReason: "STOP" }))}\n\n`],
    body: chunk(TEN.join(""), 24, { finishReason: "STOP" }),
  },
};

function answer(family: FamilyName, type: string, pieces: readonly string[]): Answer {
  return {
    family,
    status: 200,
    fields: [["content-type", type]],
    pieces: pieces.map((piece) => Buffer.from(piece)),
    framing: type === "text/event-stream" ? "chunked" : "length",
  };
}

const streamOf = ({ family, before, words, after }: Speech, end: readonly string[] = after): Answer =>
  answer(family, "text/event-stream", [...before, ...words, ...end]);
const bodyOf = ({ family, body }: Speech): Answer =>
  answer(family, "application/json", [JSON.stringify(body)]);
/** Returns the place after the last word. */
const middleOf = ({ before, words }: Speech): number => before.length + words.length;

/** How many letters of prompt give the client's body 400 bytes, which estimates count as 100 tokens. */
const FILLER: Record<DialectName, { readonly body: number; readonly stream: number }> = {
  messages: { body: 314, stream: 315 },
  responses: { body: 361, stream: 362 },
  chat: { body: 330, stream: 331 },
  content: { body: 348, stream: 348 },
};

type Form = "stream" | "body";
const FORMS: readonly Form[] = ["stream", "body"];

function ask(dialect: DialectName, form: Form): RequestLines {
  const text = "x".repeat(FILLER[dialect][form]);
  const messages = [{ role: "user", content: text }];
  const stream = form === "stream";
  switch (dialect) {
    case "messages":
      return {
        target: "/v1/messages",
        fields: bearer("messages"),
        body: { model: "m", max_tokens: 50, stream, messages },
      };
    case "responses":
      return {
        target: "/v1/responses",
        fields: bearer("responses"),
        body: { model: "m", stream, input: text },
      };
    case "chat":
      return {
        target: "/v1/chat/completions",
        fields: bearer("responses"),
        body: { model: "m", stream, messages },
      };
    case "content": {
      const verb = stream ? "streamGenerateContent?alt=sse" : "generateContent";
      const contents = [{ role: "user", parts: [{ text }] }];
      return { target: `/v1beta/models/m:${verb}`, fields: bearer("content"), body: { contents } };
    }
  }
}

/** A line's fields about money. The comments below compute the amounts in millionths of a dollar. */
interface Money {
  readonly basis: string;
  readonly usage: Readonly<Record<string, number>>;
  readonly estimated?: readonly string[];
  readonly suspect?: string;
  readonly official_usd: string | null;
  readonly charge_usd: string | null;
}

const WRITES = { cache_write_5m: 200, cache_write_1h: 50 };
const READ = { input: 100, cache_read: 1000 };
/** 300 + 300 + 600 = 1200; × 0.8 = 960 */
const REASONED: Money = {
  basis: "exact",
  usage: { ...READ, output: 40, reasoning: 16 },
  official_usd: "0.0012",
  charge_usd: "0.00096",
};
const EXACT: Record<DialectName, Money> = {
  // 100 × 3 + 1000 × 0.3 + 200 × 3.75 + 50 × 6 + 40 × 15 = 2250; × 0.8 = 1800
  messages: {
    basis: "exact",
    usage: { ...READ, ...WRITES, output: 40 },
    official_usd: "0.00225",
    charge_usd: "0.0018",
  },
  responses: REASONED,
  chat: REASONED,
  content: REASONED,
};

/** Nothing is reported before the end: 100 × 3 + 20 × 15 = 600; × 0.8 = 480 */
const SEEN: Money = {
  basis: "partial",
  usage: { input: 100, output: 20 },
  estimated: ["input", "output"],
  official_usd: "0.0006",
  charge_usd: "0.00048",
};
/** The charge of an answer that breaks after the tenth word. */
const BROKEN: Record<DialectName, Money> = {
  // The prompt is reported at the beginning, the words are 20 tokens: 1650 + 20 × 15 = 1950; × 0.8 = 1560
  messages: {
    basis: "partial",
    usage: { ...READ, ...WRITES, output: 20 },
    estimated: ["output"],
    official_usd: "0.00195",
    charge_usd: "0.00156",
  },
  responses: SEEN,
  chat: SEEN,
  // The last snapshot reports 5 + 16 tokens, more than the words' 20. 600 + 21 × 15 = 915; × 0.8 = 732
  content: {
    basis: "partial",
    usage: { ...READ, output: 21, reasoning: 16 },
    official_usd: "0.000915",
    charge_usd: "0.000732",
  },
};

const NOTHING: Money = { basis: "exact", usage: {}, official_usd: "0", charge_usd: "0" };
const UNKNOWN: Money = { basis: "unknown", usage: {}, official_usd: null, charge_usd: null };
const SUSPECT: Money = { ...UNKNOWN, suspect: "the upstream reported no tokens for its answer" };

const MAYBE_BILLED: Money = {
  ...NOTHING,
  suspect: "the upstream sent output before its error, and may charge for it",
};

/** What a stream with an error costs: the usage that it reported before the error, and nothing more. */
const FAILED: Record<DialectName, Money> = {
  // 1650 + 1 × 15 = 1665; × 0.8 = 1332
  messages: {
    basis: "partial",
    usage: { ...READ, ...WRITES, output: 1 },
    official_usd: "0.001665",
    charge_usd: "0.001332",
  },
  responses: MAYBE_BILLED,
  chat: MAYBE_BILLED,
  content: BROKEN.content,
};

/** Expects that a request has one line, with this outcome and these fields about money. */
function expectLine(lines: readonly Line[], outcome: string, money: Money): void {
  expect(lines).toHaveLength(1);
  const { basis, usage, estimated, suspect, official_usd, charge_usd, multiplier } = lines[0]!;
  const shown = {
    outcome: lines[0]!["outcome"],
    basis,
    usage,
    estimated,
    suspect,
    official_usd,
    charge_usd,
    multiplier,
  };
  expect(shown).toEqual({ outcome, estimated: undefined, suspect: undefined, multiplier: "0.8", ...money });
}

/** Waits until the event loop has turned often enough for the gateway to notice changes on its sockets. */
async function settleSockets(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
}

describe.each([...DIALECTS])("P96, P122, P134, P136: how a request ends, in %s", (dialect) => {
  const speech = SPEECHES[dialect];
  const full = { stream: streamOf(speech), body: bodyOf(speech) };

  test.each([...FORMS])("a complete answer (%s) costs what it reports", async (form) => {
    const world = openOwnWorld(withPrices());
    world.upstream.next({ answer: full[form] });
    const asked = ask(dialect, form);
    const { lines } = await world.trace(asked);
    expect(JSON.stringify(asked.body).length).toBe(400);
    expectLine(lines, "complete", EXACT[dialect]);
  });

  /** Each row has the form of the answer, the part before which the client leaves (-1: the head), and how it leaves. */
  const moments = [
    ["stream", -1, "reset"],
    ["body", -1, "close"],
    ["stream", 0, "close"],
  ] as const;
  test.each(moments)(
    "if a client leaves before an answer begins, its request ends, and the usage is unknown (%s, before part %d, by %s)",
    async (form, part, how) => {
      const world = openOwnWorld(withPrices());
      const gate = makeGate();
      world.upstream.next({ answer: full[form], gates: { [part]: gate } });
      const running = await world.begin(ask(dialect, form));
      await gate.reached;
      running.client[how]();
      expect(await world.upstream.ended(0)).toBe("left");
      const { record, lines } = await running.over();
      expect(record.outcome).toBe("client_closed");
      expectLine(lines, "client_closed", UNKNOWN);
    },
  );

  test.each(["reset", "close"] as const)(
    "a client that leaves in the middle (%s) is charged for reported usage and an estimate of the text seen",
    async (how) => {
      const world = openOwnWorld(withPrices());
      const { running } = await beginMiddle(world, dialect);
      running.client[how]();
      expectLine((await running.over()).lines, "client_closed", BROKEN[dialect]);
      expect(await world.upstream.ended(0)).toBe("left");
    },
  );

  test.each(["reset", "fin"] as const)("if a %s cuts an answer, what came is charged", async (how) => {
    const world = openOwnWorld(withPrices());
    const { head, body } = planSteps(streamOf(speech, []), {});
    const steps: Step[] = [head, ...body, how];
    world.upstream.next({ steps: () => steps });
    expectLine((await world.trace(ask(dialect, "stream"))).lines, "upstream_cut", BROKEN[dialect]);
  });

  test("a body that breaks before its usage costs the part that came", async () => {
    const world = openOwnWorld(withPrices());
    const { head, body } = planSteps(full.body, {});
    const [whole = new Uint8Array()] = body.filter((step) => step instanceof Uint8Array);
    const end = Buffer.from(whole).lastIndexOf(WORD) + WORD.length;
    world.upstream.next({ steps: () => [head, whole.subarray(0, end), "fin"] });
    expectLine((await world.trace(ask(dialect, "body"))).lines, "upstream_cut", SEEN);
  });

  test("an error in the middle of a stream costs what was reported before it", async () => {
    const world = openOwnWorld(withPrices());
    world.upstream.next({ answer: full.stream, fault: "error-event" });
    expectLine((await world.trace(ask(dialect, "stream"))).lines, "upstream_error", FAILED[dialect]);
  });

  test.each(["zero-usage", "no-usage"] as const)("an answer with %s is suspect, not free", async (fault) => {
    for (const form of FORMS) {
      const world = openOwnWorld(withPrices());
      world.upstream.next({ answer: full[form], fault });
      expectLine((await world.trace(ask(dialect, form))).lines, "complete", SUSPECT);
    }
  });

  test("a gateway that is stopped before the end of an answer charges the part seen", async () => {
    const world = openOwnWorld(withPrices());
    const { running } = await beginMiddle(world, dialect);
    await world.gateway.running.stop(0);
    expectLine(world.gateway.ledger(), "interrupted", BROKEN[dialect]);
    await running.client.ended;
  });
});

/** Begins a stream that waits after its tenth word, which the client has got. */
async function beginMiddle(world: World, dialect: DialectName): Promise<{ running: Running; gate: Gate }> {
  const gate = makeGate();
  const speech = SPEECHES[dialect];
  world.upstream.next({ answer: streamOf(speech), gates: { [middleOf(speech)]: gate } });
  const running = await world.begin(ask(dialect, "stream"));
  await running.client.until((bytes) => bytes.toString().split(WORD).length === 11);
  return { running, gate };
}

describe.each([...DIALECTS])("P96: on_disconnect.drain: %s", (dialect) => {
  const speech = SPEECHES[dialect];
  const prices = withPrices({ on_disconnect: { drain: "5s" } });

  test("with drain, a client that leaves in the middle is charged the exact amount", async () => {
    const world = openOwnWorld(prices);
    const { running, gate } = await beginMiddle(world, dialect);
    running.client.reset();
    await settleSockets();
    gate.open();
    expectLine((await running.over()).lines, "client_closed", EXACT[dialect]);
  });

  test.each([...FORMS])(
    "with drain, a client that leaves before the head is charged the exact amount (%s)",
    async (form) => {
      const world = openOwnWorld(prices);
      const gate = makeGate();
      world.upstream.next({
        answer: form === "body" ? bodyOf(speech) : streamOf(speech),
        gates: { [-1]: gate },
      });
      const running = await world.begin(ask(dialect, form));
      await gate.reached;
      running.client.reset();
      await settleSockets();
      gate.open();
      expectLine((await running.over()).lines, "client_closed", EXACT[dialect]);
    },
  );
});

describe("P118: a background response is billed once", () => {
  const usage = RESPONSES_USAGE;
  const shown = (status: string, more: object = {}): Answer =>
    answerJson("responses", { ...response, status, usage: null, ...more });
  const ask = {
    target: "/v1/responses",
    fields: bearer("responses"),
    body: { model: "m", background: true },
  };
  const look = { target: "/v1/responses/resp_1", fields: bearer("responses") };
  const charged = {
    usage: { input: 100, cache_read: 1000, output: 40, reasoning: 16 },
    charge_usd: "0.00096",
  };

  test("a background response is billed to the first request that fetches it after its end", async () => {
    const world = openOwnWorld(withPrices());
    const trace = async (request: RequestLines, answer: Answer) => {
      world.upstream.next({ answer });
      return (await world.trace(request)).lines;
    };
    const [asked, ...more] = await trace(ask, shown("queued"));
    expect(asked).toMatchObject({ endpoint: "/v1/responses", basis: "unknown", charge_usd: null });
    expect([asked!["suspect"], more]).toEqual([undefined, []]);
    expect(await trace(look, shown("in_progress"))).toEqual([]);
    const lines = await trace(look, shown("completed", { usage }));
    const line = { endpoint: "/v1/responses/{id}", model: "m", key: "responses", channel: "responses" };
    expect(lines).toMatchObject([{ ...line, ...charged, outcome: "complete", basis: "exact" }]);
    expect(await trace(look, shown("completed", { usage }))).toEqual([]);
  });

  test("a background response is billed to a later request if the first fetch of the finished response is cut", async () => {
    const world = openOwnWorld(withPrices());
    const trace = async (request: RequestLines, answer: Answer) => {
      world.upstream.next({ answer });
      return (await world.trace(request)).lines;
    };
    await trace(ask, shown("queued"));
    const whole = shown("completed", { usage });
    const [body = Buffer.alloc(0)] = whole.pieces;
    // The id and the status came, the usage did not.
    const text = Buffer.from(body).toString();
    const cut = {
      ...whole,
      framing: "close",
      pieces: [body.subarray(0, text.indexOf('"usage"'))],
    } as const;
    expect(text.indexOf('"completed"')).toBeWithin(0, text.indexOf('"usage"'));
    expect(await trace(look, cut)).toEqual([]);
    expect(await trace(look, whole)).toMatchObject([{ ...charged, basis: "exact" }]);
  });

  test("a background response that is fetched as a stream is billed when it ends, completed or failed", async () => {
    for (const [type, status] of [
      ["response.completed", "completed"],
      ["response.failed", "failed"],
    ] as const) {
      const world = openOwnWorld(withPrices());
      world.upstream.next({ answer: shown("in_progress") });
      await world.trace(ask);
      const last = event(type, { type, response: { ...response, status, usage } });
      const fields = [["content-type", "text/event-stream"]] as const;
      world.upstream.next({
        answer: { ...shown(status), fields, framing: "chunked", pieces: [Buffer.from(last)] },
      });
      const { lines, record } = await world.trace({ ...look, target: `${look.target}?stream=true` });
      expect(lines).toMatchObject([charged]);
      expect(record).toMatchObject({ usage: charged.usage, chargeUsd: charged.charge_usd });
    }
  });

  test("a background response is billed once, even if it is fetched again", async () => {
    const world = openOwnWorld(withPrices());
    world.upstream.next({ answer: shown("completed", { usage }) }, { answer: shown("completed", { usage }) });
    expect((await world.trace(ask)).lines).toMatchObject([charged]);
    expect((await world.trace(look)).lines).toEqual([]);
  });
});
