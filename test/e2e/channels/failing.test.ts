// Upstreams that fail, in every way in which they can: the client sees an error,
// never a clean end, and the ledger has one line that says what happened.

import { Anthropic, APIError } from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import { expect, test } from "bun:test";
import { OpenAI } from "openai";
import type { FaultName } from "../../harness/upstreams/faults.ts";
import { keyOf } from "../../harness/gateway.ts";
import { type Exchanged, readEvents } from "../../harness/raw.ts";
import {
  bearer,
  CONTENTS,
  type DialectName,
  DIALECTS,
  inWorld,
  makeRequest,
  MESSAGE,
  onChannels,
  type World,
} from "../world.ts";

const PATIENT = onChannels({ timeouts: { connect: "60s", first_byte: "60s", idle: "60s" } });
/** For an upstream that never answers: nothing else can happen first, however busy the machine is. */
const NO_ANSWER = onChannels({ timeouts: { connect: "60s", first_byte: "60ms", idle: "60s" } });
/** For an upstream that stops in the body. A busy machine must deliver what comes before within this time. */
const SILENCE = onChannels({ timeouts: { connect: "60s", first_byte: "60s", idle: "1s" } });

/** Before the head: the client has got nothing yet. */
const BEFORE_HEAD: readonly (readonly [FaultName, number, string])[] = [
  ["never-answer", 504, "did not respond in time"],
  ["reset-before-head", 502, "without a response"],
  ["close-before-head", 502, "without a response"],
  ["reset-in-head", 502, ""],
  ["close-in-head", 502, ""],
  ["garbage", 502, "not HTTP"],
  ["bad-length", 502, "not HTTP"],
  ["two-framings", 502, "not HTTP"],
  ["endless-head", 502, "not HTTP"],
];

/** In the body. */
const IN_BODY: readonly FaultName[] = [
  "silent-after-head",
  "reset-after-head",
  "stall",
  "reset-mid-stream",
  "reset-mid-chunk",
  "close-mid-chunk",
  "close-mid-stream",
  "bad-chunk",
];

/** Only the terminal event, or its absence, shows these. */
const IN_STREAM: readonly FaultName[] = ["truncated", "no-terminal", "close-delimited-cut", "empty"];

/** Silent in the body, with the connection open. */
const SILENT = new Set<FaultName>(["silent-after-head", "stall", "bad-chunk"]);

function settingFor(fault: FaultName): (url: string) => Record<string, unknown> {
  if (fault === "never-answer") return NO_ANSWER;
  return SILENT.has(fault) ? SILENCE : PATIENT;
}

const ERROR_OF: Readonly<Record<DialectName, (body: { error: never }) => unknown>> = {
  messages: (body: { error: { type: string } }) => body.error.type,
  responses: (body: { error: { code: string } }) => body.error.code,
  chat: (body: { error: { code: string } }) => body.error.code,
  content: (body: { error: { status: string } }) => body.error.status,
};

/** The dialects at the same time: some faults show only after a time of silence. */
const inEachDialect = (check: (dialect: DialectName) => Promise<void>): Promise<unknown> =>
  Promise.all(DIALECTS.map(check));

test("an upstream that refuses connections is a 502 without a line", () =>
  inEachDialect((dialect) =>
    inWorld(async (world) => {
      world.upstream.refuse();
      const { answer, lines, record } = await world.trace(makeRequest(dialect, true));
      expect(answer.status).toBe(502);
      expect(answer.text).toContain("could not be reached");
      expect(record).toMatchObject({ status: 502, outcome: "upstream_error" });
      expect(lines).toEqual([]); // nothing was sent: nothing can have been used
    }),
  ));

test.each(BEFORE_HEAD)("an upstream that fails before its head by %s is a %d", (fault, status, words) =>
  inEachDialect((dialect) =>
    inWorld(async (world) => {
      world.upstream.always(fault);
      const { answer, lines } = await world.trace(makeRequest(dialect, true));
      expect([dialect, answer.status]).toEqual([dialect, status]);
      const body = JSON.parse(answer.text);
      const channel = dialect === "chat" ? "responses" : dialect;
      expect(body.error.message).toContain(`The channel "${channel}"`);
      expect(body.error.message).toContain(words);
      const kinds = {
        messages: status === 504 ? "timeout_error" : "api_error",
        responses: "server_error",
        chat: "server_error",
        content: status === 504 ? "DEADLINE_EXCEEDED" : "UNAVAILABLE",
      };
      expect(ERROR_OF[dialect](body)).toBe(kinds[dialect]);
      expect(answer.field("x-should-retry")).toBeUndefined();
      expect(lines).toMatchObject([
        { outcome: "upstream_error", basis: "unknown", status, charge_usd: null },
      ]);
    }, settingFor(fault)),
  ),
);

/** The events of a broken stream: what the upstream sent, then an error of the dialect. */
function expectBreak(dialect: DialectName, answer: Exchanged): void {
  expect(answer.status).toBe(200);
  const last = JSON.parse(readEvents(answer.text).at(-1)!);
  expect(answer.text).not.toContain("[DONE]");
  switch (dialect) {
    case "messages":
      expect(answer.text).toContain("event: error\n");
      expect(last.type).toBe("error");
      expect(last.error.message).toContain('The channel "messages"');
      break;
    case "responses":
      expect(answer.text).toContain("event: response.failed\n");
      expect(last.type).toBe("response.failed");
      expect(last.response.status).toBe("failed");
      expect(last.response.error.message).toContain('The channel "responses"');
      expectContinued(answer, last);
      break;
    case "chat":
      expect(last.error.message).toMatch(/^The (channel "responses"|upstream) /);
      break;
    case "content":
      expect(last.error.code).toBeGreaterThan(500);
      expect(last.error.message).toContain('The channel "content"');
      expect(answer.complete).toBe(false);
      expect(answer.ending).toBe("reset");
      break;
  }
}

/** It names the response that had begun, and its number follows the last event's. */
function expectContinued(
  answer: Exchanged,
  last: { sequence_number: number; response: { id: string } },
): void {
  const numbers = [...answer.text.matchAll(/"sequence_number":(\d+)/g)].map(([, number]) => Number(number));
  expect(numbers).toEqual(numbers.map((_, index) => index));
  expect(last.sequence_number).toBe(numbers.length - 1);
  const [, id = ""] = /"id":"(resp_[^"]+)"/.exec(answer.text) ?? [];
  if (numbers.length > 1) expect(last.response.id).toBe(id);
}

test("a stored response that is streamed again can break like any other, and costs nothing", async () => {
  await inWorld(async (world) => {
    const created = { type: "response.created", response: { id: "resp_1", status: "in_progress" } };
    const pieces = [Buffer.from(`event: response.created\ndata: ${JSON.stringify(created)}\n\n`)];
    const fields = [["content-type", "text/event-stream"]] as const;
    world.upstream.next({ answer: { family: "responses", status: 200, fields, framing: "chunked", pieces } });
    const request = { target: "/v1/responses/resp_1?stream=true", fields: bearer("responses") };
    const { answer, lines, record } = await world.trace(request);
    expectBreak("responses", answer);
    expect(record).toMatchObject({ outcome: "upstream_cut", usage: null, chargeUsd: null });
    expect(lines).toEqual([]);
  });
});

test("an error in the form of a list keeps the upstream's words", async () => {
  await inWorld(async (world) => {
    const body = JSON.stringify([
      { error: { code: 503, message: "Come back later.", status: "UNAVAILABLE" } },
    ]);
    const fields = [["content-type", "application/json"]] as const;
    const pieces = [Buffer.from(body)];
    world.upstream.next({ answer: { family: "content", status: 503, fields, framing: "length", pieces } });
    const { answer } = await world.trace({
      target: "/v1beta/models/gemini-2.5-pro:streamGenerateContent",
      fields: bearer("content"),
      body: CONTENTS,
    });
    expect([answer.status, answer.text]).toEqual([503, body]);
  });
});

test.each([...IN_BODY, ...IN_STREAM])("a stream that breaks by %s ends with an error", (fault) =>
  inEachDialect((dialect) =>
    inWorld(async (world) => {
      world.upstream.next(fault);
      const { answer, lines, record } = await world.trace(makeRequest(dialect, true));
      if (answer.status === 200) expectBreak(dialect, answer);
      else expect([dialect, answer.status >= 502]).toEqual(["chat", true]); // chat's head waits for the first event
      if (fault === "reset-mid-stream") expect(answer.text).toContain("said");
      expect(record.outcome).toBe("upstream_cut");
      expect(lines).toMatchObject([{ outcome: "upstream_cut" }]);
      // Messages reports its usage before its terminal event.
      const sure = fault === "no-terminal" && dialect === "messages";
      expect(sure ? ["exact"] : ["partial", "unknown"]).toContain(String(lines[0]!["basis"]));
    }, settingFor(fault)),
  ),
);

test("the upstream's own error in a stream is passed on once", () =>
  inEachDialect((dialect) =>
    inWorld(async (world) => {
      world.upstream.next("error-event");
      const { answer, lines } = await world.trace(makeRequest(dialect, true));
      expect(answer.text).toMatch(/"error": ?\{/);
      expect(answer.text).not.toContain("ended its response before");
      expect(answer.text).not.toContain("[DONE]");
      expect(answer.ending).toBe(dialect === "content" ? "reset" : "open");
      expect(lines).toMatchObject([{ outcome: "upstream_error" }]);
    }),
  ));

test("a redirect is not followed, because it would send the credential elsewhere", async () => {
  for (const dialect of DIALECTS) {
    await inWorld(async (world) => {
      world.upstream.always("redirect");
      const { answer, lines } = await world.trace(makeRequest(dialect));
      expect(answer.status).toBe(502);
      expect(answer.text).toContain("redirect");
      expect(lines).toMatchObject([
        { outcome: "upstream_error", status: 502, basis: "exact", charge_usd: "0" },
      ]);
    });
  }
});

test.each([...IN_BODY, "short-length", "close-delimited-cut"] as const)(
  "a whole answer that breaks by %s is an error",
  (fault) =>
    inEachDialect((dialect) =>
      inWorld(async (world) => {
        world.upstream.next(fault);
        const { answer, lines, record } = await world.trace(makeRequest(dialect));
        expect([dialect, answer.status]).toEqual([dialect, SILENT.has(fault) ? 504 : 502]);
        expect(JSON.parse(answer.text).error.message).toContain("The channel");
        expect(record.status).toBe(answer.status);
        expect(lines).toMatchObject([{ outcome: "upstream_cut", basis: "unknown", status: answer.status }]);
      }, settingFor(fault)),
    ),
);

test.each(["not-json", "empty"] as const)(
  "a whole answer that has to be converted and is %s is an error",
  async (fault) => {
    await inWorld(async (world) => {
      world.upstream.next(fault);
      const { answer, lines } = await world.trace(makeRequest("chat"));
      expect(answer.status).toBe(502);
      expect(JSON.parse(answer.text).error.type).toBe("server_error");
      expect(lines).toMatchObject([{ basis: "unknown", status: 502 }]);
    });
  },
);

test.each(["reset-mid-stream", "truncated", "stall"] as const)(
  "a list of JSON that breaks by %s ends with an error",
  async (fault) => {
    await inWorld(async (world) => {
      world.upstream.next(fault);
      const target = "/v1beta/models/gemini-2.5-pro:streamGenerateContent";
      const { answer, lines } = await world.trace({ target, fields: bearer("content"), body: CONTENTS });
      expect(JSON.parse(answer.text).at(-1).error.status).toMatch(/UNAVAILABLE|DEADLINE_EXCEEDED/);
      expect(answer.ending).toBe("reset");
      expect(lines).toMatchObject([{ outcome: "upstream_cut", basis: "partial" }]);
    }, settingFor(fault));
  },
);

/** The error that the official SDK raises; null: a clean end. */
const SDK: Readonly<Record<DialectName, (world: World) => Promise<Error | null>>> = {
  messages: (world) =>
    catchError(async () => {
      const client = new Anthropic({
        apiKey: keyOf("messages"),
        baseURL: world.gateway.url,
        maxRetries: 0,
        logLevel: "off",
      });
      const stream = await client.messages.create({ ...askMessages, stream: true });
      for await (const _ of stream);
    }),
  responses: (world) =>
    catchError(async () => {
      const stream = await openai(world).responses.create({ model: "gpt-5.4", input: "Hello", stream: true });
      for await (const _ of stream);
    }),
  chat: (world) =>
    catchError(async () => {
      const stream = await openai(world).chat.completions.create({
        model: "gpt-5.4",
        messages: askMessages.messages,
        stream: true,
      });
      for await (const _ of stream);
    }),
  content: (world) =>
    catchError(async () => {
      const client = new GoogleGenAI({
        apiKey: keyOf("content"),
        httpOptions: { baseUrl: world.gateway.url },
      });
      const stream = await client.models.generateContentStream({
        model: "gemini-2.5-pro",
        contents: "Hello",
      });
      for await (const _ of stream);
    }),
};

const askMessages = { ...MESSAGE, messages: [{ role: "user" as const, content: "Hello" }] };

function openai(world: World): OpenAI {
  return new OpenAI({ apiKey: keyOf("responses"), baseURL: `${world.gateway.url}/v1`, maxRetries: 0 });
}

async function catchError(act: () => Promise<void>): Promise<Error | null> {
  try {
    await act();
    return null;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

test("a messages stream that breaks inside an event is an error that the official SDK can name", async () => {
  for (const fault of ["reset-mid-chunk", "close-mid-chunk", "close-delimited-cut"] as const) {
    await inWorld(async (world) => {
      world.upstream.always(fault);
      const error = await SDK.messages(world);
      expect(error).toBeInstanceOf(APIError);
      expect(error!.message).toMatch(/broke off its response|ended its response before/);
    });
  }
});

/** Each kind of break once. The test of streams above has the bytes of all. */
test.each([
  undefined,
  "stall",
  "reset-mid-stream",
  "close-mid-chunk",
  "truncated",
  "never-answer",
  "error-event",
] as const)("the official SDKs raise an error for a break by %s, and for that alone", (fault) =>
  inEachDialect((dialect) =>
    inWorld(
      async (world) => {
        world.upstream.always(fault);
        const expected = fault === undefined ? null : expect.any(Error);
        expect([dialect, await SDK[dialect](world)]).toEqual([dialect, expected]);
      },
      settingFor(fault ?? "no-terminal"),
    ),
  ),
);

test.each([
  "dribble",
  "early-hints",
  "close-after",
  "reset-after",
  "close-delimited",
  "gzip",
  "extra-bytes",
] as const)("an unusual but valid answer changes nothing: %s", (fault) =>
  inEachDialect(async (dialect) => {
    for (const stream of [false, true])
      await inWorld(async (world) => {
        world.upstream.next({ fault, words: 2 });
        const { answer, lines } = await world.trace(makeRequest(dialect, stream));
        expect([dialect, stream, answer.status, answer.complete]).toEqual([dialect, stream, 200, true]);
        expect(lines).toMatchObject([{ outcome: "complete", basis: "exact" }]);
      }, PATIENT);
  }),
);

test("a kept-alive connection that was reset before reuse does not fail a request", async () => {
  await inWorld(async (world) => {
    await world.trace(makeRequest("messages"));
    world.upstream.refuse();
    world.upstream.accept();
    const { answer, lines } = await world.trace(makeRequest("messages"));
    expect(answer.status).toBe(200);
    expect(lines).toMatchObject([{ outcome: "complete" }]);
  });
});
