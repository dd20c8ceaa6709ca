// The gateway passes on bytes as a direct connection would: the upstream must get the bytes that the client
// sent, and the client must get the bytes that the upstream sent.

import { KEY_SOURCES, nameField, OWN_KEY_FIELD } from "../../../src/config/key-fields.ts";
import { PLATFORMS } from "../../../src/config/schema.ts";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { brotliCompressSync, createGzip, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { type Answer, answerJson, encode } from "../../harness/model/answers/answer.ts";
import { makeGate } from "../../harness/upstreams/demo-upstream.ts";
import { CREDENTIAL, keyOf } from "../../harness/gateway.ts";
import { parseAnswer, rawRequest } from "../../harness/raw.ts";
import { bearer, CONTENTS, openOwnWorld, makeRequest, MESSAGE, openWorld, type World } from "../world.ts";

const ALIASES = {
  fast: "claude-haiku-4-5",
  odd: 'name "with" \\ and ü',
  flash: "gemini-3.8-flash",
  small: "gpt-5.4-nano",
};

let world: World;
beforeAll(() => {
  world = openWorld((url) => ({
    channels: Object.fromEntries(
      PLATFORMS.map((platform) => [
        platform,
        { platform, base_url: url, credential: CREDENTIAL, aliases: ALIASES },
      ]),
    ),
  }));
});
afterAll(() => world.stop());

const post = (body: string | Uint8Array, fields: Record<string, string> = {}) =>
  world.trace({ target: "/v1/messages", fields: { ...bearer("messages"), ...fields }, body });

describe("P70, P71: a request's bytes reach the upstream, except for an alias's model", () => {
  test.each([
    [
      "a name after nested names",
      '{"messages":[{"model":"fast"}],"x":{"model":"fast"},"model":"fast"}',
      '{"messages":[{"model":"fast"}],"x":{"model":"fast"},"model":"claude-haiku-4-5"}',
    ],
    [
      "a name that needs escapes upstream",
      '{"model":"odd","messages":[]}',
      '{"model":"name \\"with\\" \\\\ and ü","messages":[]}',
    ],
  ])("an alias replaces the model's name and nothing else: %s", async (_, body, sent) => {
    const { received, record } = await post(body);
    expect(Buffer.from(received!.body).toString()).toBe(sent);
    expect(received!.field("content-length")).toBe(String(Buffer.byteLength(sent)));
    expect(record.model).toBe(JSON.parse(body).model);
  });

  test("an alias in a path is replaced in the path", async () => {
    const target = "/v1beta/models/flash:generateContent?alt=json&x=%20y";
    const { received, record } = await world.trace({ target, fields: bearer("content"), body: CONTENTS });
    expect(received!.target).toBe("/v1beta/models/gemini-3.8-flash:generateContent?alt=json&x=%20y");
    expect(record.model).toBe("flash");
  });

  test.each([
    [
      "batchEmbedContents",
      '{"requests":[{"content":{"model":"flash"},"model":"models/flash"},{ "model" : "flash" },{"model":"models/b"}]}',
      '{"requests":[{"content":{"model":"flash"},"model":"models/gemini-3.8-flash"},{ "model" : "gemini-3.8-flash" },{"model":"models/b"}]}',
    ],
    [
      "embedContent",
      '{"model":"models/flash","content":{}}',
      '{"model":"models/gemini-3.8-flash","content":{}}',
    ],
    [
      "countTokens",
      '{"generateContentRequest":{"contents":[{"model":"flash"}],"model":"models/flash"}}',
      '{"generateContentRequest":{"contents":[{"model":"flash"}],"model":"models/gemini-3.8-flash"}}',
    ],
  ])("an alias in a path is also replaced where the body repeats it: %s", async (verb, body, sent) => {
    const target = `/v1beta/models/flash:${verb}`;
    const { received } = await world.trace({ target, fields: bearer("content"), body });
    expect(received!.target).toBe(`/v1beta/models/gemini-3.8-flash:${verb}`);
    expect(Buffer.from(received!.body).toString()).toBe(sent);
  });

  test("a compressed body is decompressed if an alias replaces its model", async () => {
    const body = zstdCompressSync('{"model":"fast","messages":[]}');
    const { received } = await post(body, { "content-encoding": "zstd" });
    expect(Buffer.from(received!.body).toString()).toBe('{"model":"claude-haiku-4-5","messages":[]}');
    expect(received!.field("content-encoding")).toBeUndefined();
  });

  test("an alias replaces the model in a compressed chat request", async () => {
    const body = gzipSync(JSON.stringify({ model: "small", messages: MESSAGE.messages }));
    const fields = { ...bearer("responses"), "content-encoding": "gzip" };
    const { received, answer } = await world.trace({ target: "/v1/chat/completions", fields, body });
    expect(answer.status).toBe(200);
    expect(received!.field("content-encoding")).toBeUndefined();
    expect(received!.json).toMatchObject({ model: "gpt-5.4-nano" });
  });
});

describe("P86: bodies that are too long or cannot be decoded are refused", () => {
  test("a body over max_body is refused, also if it comes in chunks or is compressed", async () => {
    const small = openWorld(() => ({ max_body: "64KiB" }));
    const fields = bearer("messages");
    const body = JSON.stringify({ ...MESSAGE, x: "x".repeat(70_000) });
    const reported = await small.ask({ target: "/v1/messages", fields, body });
    const chunks = `${(70_100).toString(16)}\r\n${body.slice(0, 70_000).padEnd(70_100)}\r\n0\r\n\r\n`;
    const lines = `POST /v1/messages HTTP/1.1\r\nhost: x\r\nauthorization: ${fields["authorization"]}\r\n`;
    const chunked = await rawRequest(
      small.gateway.port,
      `${lines.replace("host: x", "host: 127.0.0.1")}transfer-encoding: chunked\r\n\r\n${chunks}`,
    );
    const packed = await small.ask({
      target: "/v1/messages",
      fields: { ...fields, "content-encoding": "gzip" },
      body: gzipSync(body),
    });
    for (const answer of [reported, chunked, packed]) {
      expect(answer.status).toBe(413);
      expect(JSON.parse(answer.text).error.type).toBe("request_too_large");
      expect(JSON.parse(answer.text).error.message).toContain("raise max_body");
    }
    expect(small.upstream.requests).toHaveLength(0);
    await small.stop();
  });

  test("a body whose encoding is unknown or broken is refused", async () => {
    const unknown = await post(JSON.stringify(MESSAGE), { "content-encoding": "lzma" });
    const broken = await post(JSON.stringify(MESSAGE), { "content-encoding": "gzip" });
    expect([unknown.answer.status, broken.answer.status]).toEqual([400, 400]);
    expect(unknown.received).toBeUndefined();
    const wordsOf = ({ answer }: typeof unknown): string => JSON.parse(answer.text).error.message;
    expect(wordsOf(unknown)).toBe('The gateway cannot read the body: it is encoded as "lzma".');
    expect(wordsOf(broken)).toStartWith("The body does not match its content-encoding: ");
  });
});

describe("P72: header fields reach the upstream, except for those that a channel replaces", () => {
  test("a channel's `headers` replace the client's fields of the same name", async () => {
    const own = openWorld((url) => ({
      channels: Object.fromEntries(
        PLATFORMS.map((platform) => [
          platform,
          {
            platform,
            base_url: url,
            credential: CREDENTIAL,
            headers: { "User-Agent": "ours", "X-Team": "research", Accept: "application/x-ours" },
          },
        ]),
      ),
    }));
    const request = makeRequest("messages");
    const { received } = await own.trace({
      ...request,
      fields: { ...request.fields, "user-agent": "theirs" },
    });
    expect(received!.fields.filter(([name]) => name === "user-agent")).toEqual([["user-agent", "ours"]]);
    expect(received!.field("x-team")).toBe("research");
    const listed = await own.ask({ target: "/v1/models", fields: bearer("messages") });
    expect(listed.status).toBe(200);
    const accepted = own.upstream.listRequests
      .at(-1)!
      .fields.filter(([name]) => name.toLowerCase() === "accept");
    expect(accepted.map(([, value]) => value)).toEqual(["application/x-ours"]);
    await own.stop();
  });
});

/** Returns an upstream's answer with these pieces: JSON of a known length, unless `answer` says otherwise. */
function fix(answer: Partial<Answer> & Pick<Answer, "pieces">): Answer {
  return {
    family: "messages",
    status: 200,
    fields: [["content-type", "application/json"]],
    framing: "length",
    ...answer,
  };
}

const WHOLE = Buffer.from(
  `{ "type":"message", "model":"claude-haiku-4-5","content":[{"type":"text","text":"é \\u00e9"}],\n"usage":{"input_tokens":3,"output_tokens":4.0}}  \n`,
);

const EVENTS = [
  'event: message_start\ndata: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"claude-haiku-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":1}}}\n\n',
  'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n',
  ": a comment\n\n",
  'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello é"}}\n\n',
  'event: something_new\ndata: {"type":"something_new"}\n\n',
  'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}\n\n',
  'event: message_stop\ndata: {"type":"message_stop"}\n\n',
].map((event) => Buffer.from(event));
const STREAM = Buffer.concat(EVENTS);
const SSE = [["content-type", "text/event-stream; charset=utf-8"]] as const;

const FRAMINGS = ["length", "chunked", "close"] as const;

test.each(FRAMINGS.flatMap((framing) => [false, true].map((isStream) => [framing, isStream] as const)))(
  "P73: an answer's bytes reach the client as they are (framing: %s, stream: %p)",
  async (framing, isStream) => {
    const [bytes, output, charge_usd] = isStream ? [STREAM, 2, "0.000013"] : [WHOLE, 4, "0.000023"];
    const more = isStream ? { pieces: EVENTS, fields: SSE } : { pieces: [WHOLE], status: 201 };
    world.upstream.next({ answer: fix({ ...more, framing }) });
    const { answer, lines } = await world.trace(makeRequest("messages", isStream));
    expect([answer.status, answer.complete]).toEqual([isStream ? 200 : 201, true]);
    expect(answer.body.equals(bytes)).toBe(true);
    if (isStream) expect(answer.field("content-type")).toBe("text/event-stream; charset=utf-8");
    else expect(answer.field("content-length")).toBe(String(WHOLE.length));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({
      outcome: "complete",
      basis: "exact",
      charge_usd,
      usage: { input: 3, output },
    });
  },
);

test("P73: nothing is added to a JSON list that the upstream ends by closing the connection", async () => {
  const list = encode(`[{"candidates":[{"content":{"parts":[{"text":"é"}]},"finishReason":"STOP"}]}]`);
  world.upstream.next({ answer: fix({ family: "content", pieces: [list], framing: "close" }) });
  const target = "/v1beta/models/gemini-2.5-pro:streamGenerateContent";
  const { answer } = await world.trace({ target, fields: bearer("content"), body: CONTENTS });
  expect([answer.complete, answer.text]).toEqual([true, Buffer.from(list).toString()]);
});

const CODINGS: readonly (readonly [string, (bytes: Buffer) => Buffer])[] = [
  ["gzip", gzipSync],
  ["br", brotliCompressSync],
  ["zstd", zstdCompressSync],
  ["deflate", deflateSync],
  ["gzip, br", (bytes) => brotliCompressSync(gzipSync(bytes))],
];

describe("an answer that is compressed although nobody requested it is decoded", () => {
  test.each(CODINGS)("an answer in unrequested %s is decoded and metered", async (coding, compress) => {
    const encoded = [["content-encoding", coding]] as const;
    world.upstream.next(
      {
        answer: fix({
          pieces: [compress(WHOLE)],
          fields: [["content-type", "application/json"], ...encoded],
        }),
      },
      { answer: fix({ pieces: [compress(STREAM)], fields: [...SSE, ...encoded], framing: "chunked" }) },
    );
    const whole = await world.trace(makeRequest("messages"));
    const streamed = await world.trace(makeRequest("messages", true));
    expect(whole.answer.body.equals(WHOLE)).toBe(true);
    expect(streamed.answer.body.equals(STREAM)).toBe(true);
    expect(whole.answer.field("content-encoding")).toBeUndefined();
    expect(streamed.answer.field("content-encoding")).toBeUndefined();
    expect(whole.lines[0]).toMatchObject({ outcome: "complete", usage: { input: 3, output: 4 } });
    expect(streamed.lines[0]).toMatchObject({ outcome: "complete", usage: { input: 3, output: 2 } });
  });

  test("a compressed stream is passed on event by event, without delay", async () => {
    const gzip = createGzip();
    const flushed: Buffer[] = [];
    gzip.on("data", (bytes: Buffer) => flushed.push(bytes));
    const pieces: Buffer[] = [];
    for (const event of EVENTS) {
      gzip.write(event);
      await new Promise<void>((resolve) => gzip.flush(resolve));
      pieces.push(Buffer.concat(flushed.splice(0)));
    }
    gzip.end();
    await once(gzip, "end");
    pieces[pieces.length - 1] = Buffer.concat([pieces.at(-1)!, ...flushed]);
    const gate = makeGate();
    const fields = [...SSE, ["content-encoding", "gzip"]] as const;
    world.upstream.next({ answer: fix({ pieces, fields, framing: "chunked" }), gates: { 4: gate } });
    const { client, over } = await world.begin(makeRequest("messages", true));
    await client.until("Hello é");
    gate.open();
    await client.until("message_stop");
    expect((await over()).lines[0]).toMatchObject({ outcome: "complete" });
    client.close();
  });

  test("the client gets a 502 if a compressed answer is cut short or does not match its content-encoding", async () => {
    for (const [coding, compress] of CODINGS) {
      const fields = [
        ["content-type", "application/json"],
        ["content-encoding", coding],
      ] as const;
      const cut = compress(WHOLE).subarray(0, 40);
      world.upstream.next(
        { answer: fix({ pieces: [cut], fields }) },
        { answer: fix({ pieces: [WHOLE], fields }) },
      );
      for (const _ of [1, 2]) {
        const { answer, lines } = await world.trace(makeRequest("messages"));
        expect([coding, answer.status]).toEqual([coding, 502]);
        expect(lines[0]).toMatchObject({
          outcome: expect.stringMatching(/^upstream_(cut|error)$/),
          charge_usd: null,
        });
      }
    }
  });
});

describe("a stream is passed on as it comes, and an error that is added fits into it", () => {
  test("P94: an error event has the next sequence number after the last complete event, however the stream is split", async () => {
    const event = Buffer.from('data: {"type":"response.in_progress","sequence_number":41,"response":{}}\n\n');
    const texts = ['data: {"type":"', "x".repeat(5000), "x".repeat(5000), '","sequence_number":4'];
    const pieces = [...Array.from(event, (_, at) => event.subarray(at, at + 1)), ...texts.map(encode)];
    const fields = [["content-type", "text/event-stream"]] as const;
    const answer: Answer = { family: "responses", status: 200, fields, framing: "chunked", pieces };
    world.upstream.next({ answer });
    const traced = await world.trace(makeRequest("responses", true));
    expect(traced.answer.text).toContain('"sequence_number":42');
  });

  test("P93: a content stream without alt=sse is a JSON list, and is forwarded without delay", async () => {
    const gate = makeGate();
    world.upstream.next({ gates: { 2: gate } });
    const target = "/v1beta/models/gemini-2.5-pro:streamGenerateContent";
    const { client, over } = await world.begin({ target, fields: bearer("content"), body: CONTENTS });
    await gate.reached;
    await client.until('"text"');
    gate.open();
    await client.until(endsStream);
    const list = JSON.parse(parseAnswer(client.bytes())!.text);
    expect(list.length).toBeGreaterThan(3);
    expect((await over()).lines[0]).toMatchObject({ outcome: "complete", basis: "exact" });
    client.close();
  });
});

function endsStream(bytes: Buffer): boolean {
  return bytes.includes("0\r\n\r\n", bytes.length - 5);
}

test.each([OWN_KEY_FIELD, ...KEY_SOURCES])(
  "P189: if an answer repeats the client's key, the gateway masks it (the request has the key in: %s)",
  async (source) => {
    const secret = keyOf("messages");
    const groups = { all: { platform: "messages", channels: ["messages"], other_paths: ["/v1/new"] } };
    const keys = [{ name: "own", group: "all", secret }];
    const given = source === "authorization" ? `Bearer ${secret}` : secret;
    const fields = source === "query" ? {} : { [nameField(source, "goog")]: given };
    const own = openOwnWorld(() => ({ groups, keys }));
    own.upstream.next({ answer: answerJson("messages", { text: secret }) });
    const answer = await own.ask({
      target: `/v1/new${source === "query" ? `?key=${secret}` : ""}`,
      fields,
    });
    expect([answer.status, JSON.parse(answer.text)]).toEqual([200, { text: "*".repeat(secret.length) }]);
  },
);
