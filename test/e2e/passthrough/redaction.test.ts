// A credential that an upstream repeats, in every form and place: it reaches no client, log, file or socket.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import type { Answer } from "../../harness/model/answers/answer.ts";
import { expectSafe } from "../../harness/secrets.ts";
import { DIALECTS, type DialectName, makeRequest, onChannels, openWorld, type World } from "../world.ts";

const PREFIX = "sk-ant-api03-";
const HIDDEN = "Ab1+cD2e/3_gH4iJ5kL6mN7=oP8qR9sT0uVwXyZ";
const SECRET = PREFIX + HIDDEN;

const escape = (before: string): string =>
  Array.from(SECRET, (each) => before + each.charCodeAt(0).toString(16)).join("");
const CARRIERS: Readonly<Record<string, string>> = {
  plain: SECRET,
  JSON: escape("\\u00"),
  URL: escape("%"),
};

/** Bodies of successful answers, as the upstream's dialect writes them. */
const WHOLE: Readonly<Record<DialectName, (text: string) => string>> = {
  messages: (text) =>
    `{"type":"message","model":"m","content":[{"type":"text","text":"${text}"}],"usage":{"input_tokens":3,"output_tokens":4}}`,
  responses: writeReply,
  chat: writeReply,
  content: (text) =>
    `{"candidates":[{"content":{"role":"model","parts":[{"text":"${text}"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":4}}`,
};

function writeReply(text: string): string {
  return `{"id":"resp_1","object":"response","status":"completed","model":"gpt-5.4","output":[{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"${text}","annotations":[]}]}],"usage":{"input_tokens":3,"output_tokens":4,"total_tokens":7}}`;
}

const EVENTS: Readonly<Record<DialectName, (text: string) => string>> = {
  messages: (text) =>
    `event: message_start\ndata: {"type":"message_start","message":${WHOLE.messages("")}}\n\n` +
    `event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"${text}"}}\n\n` +
    'event: message_stop\ndata: {"type":"message_stop"}\n\n',
  responses: writeEvents,
  chat: writeEvents,
  content: (text) => `data: ${WHOLE.content(text)}\n\n`,
};

function writeEvents(text: string): string {
  return (
    `event: response.output_text.delta\ndata: {"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"${text}"}\n\n` +
    `event: response.completed\ndata: {"type":"response.completed","response":${writeReply(text)}}\n\n`
  );
}

const writeError = (text: string): string =>
  `{"type":"error","error":{"type":"e","code":"e","message":"bad key ${text}, ask","status":"S"}}`;

const writeErrorEvent = (text: string): string => `event: error\ndata: ${writeError(text)}\n\n`;

function answerWith(status: number, type: string, body: string, gzip: boolean): Answer {
  const bytes = gzip ? gzipSync(body) : Buffer.from(body);
  const pieces = Array.from({ length: Math.ceil(bytes.length / 7) }, (_, index) =>
    bytes.subarray(7 * index, 7 * index + 7),
  );
  const fields = [
    ["content-type", type],
    ["openai-echo", `Bearer ${SECRET}`],
    ["x-request-id", encodeURIComponent(SECRET)],
    ...(gzip ? [["content-encoding", "gzip"] as const] : []),
  ] as const;
  return { family: "messages", status, fields, pieces, framing: "chunked" };
}

describe("P189: a credential in an upstream's answer", () => {
  let world: World;
  beforeAll(() => {
    world = openWorld(onChannels({ credential: SECRET }), { anyCredential: true });
  });
  afterAll(() => world.stop());

  /** The answer to a request. The channels first forget what the request before showed about them. */
  async function answerTo(dialect: DialectName, stream: boolean, answer: Answer): Promise<string> {
    const { channels, catalog } = world.gateway.running.gateway;
    for (const channel of catalog.channels.values()) channels.setDisabled(channel, false, Date.now());
    world.upstream.next({ answer });
    const seen = await world.trace(makeRequest(dialect, stream));
    const head = JSON.stringify(seen.answer.fields);
    return `${head}${seen.answer.text}${JSON.stringify(seen.record)}${JSON.stringify(seen.lines)}`;
  }

  describe.each(DIALECTS)("%s", (dialect) => {
    test("a client never gets a credential in an error", async () => {
      for (const [index, carrier] of Object.values(CARRIERS).entries()) {
        for (const status of [400, 401, 500]) {
          const gzip = index % 2 === 0;
          const answer = answerWith(status, "application/json", writeError(carrier), gzip);
          const shown = await answerTo(dialect, gzip, answer);
          expect(shown).toMatch(/\*{12,}/);
          expectSafe(shown, SECRET, SECRET.length);
        }
      }
    });

    test("a client never gets a credential in a successful answer, whole or streamed, or in an error inside a stream", async () => {
      const bodies = [WHOLE[dialect], EVENTS[dialect], writeErrorEvent];
      for (const [index, write] of bodies.entries()) {
        for (const [place, carrier] of Object.values(CARRIERS).entries()) {
          const type = index === 0 ? "application/json" : "text/event-stream";
          const answer = answerWith(200, type, write(carrier), place % 2 === 0);
          const shown = await answerTo(dialect, index > 0, answer);
          expect(shown).toMatch(/\*{12,}/);
          expectSafe(shown, SECRET, SECRET.length);
        }
      }
    });

    test("a session that mentions the vendor's public prefix passes byte for byte", async () => {
      const text = `set ANTHROPIC_API_KEY=${PREFIX}… or \\"${PREFIX}\\" \\u0026 100% &amp; ${PREFIX}xyz`;
      for (const [write, stream] of [
        [WHOLE[dialect], false],
        [EVENTS[dialect], true],
      ] as const) {
        const body = write(text);
        const type = stream ? "text/event-stream" : "application/json";
        world.upstream.next({ answer: answerWith(200, type, body, false) });
        const { answer } = await world.trace(makeRequest(dialect, stream));
        if (dialect === "chat") expect(answer.text).toContain(`KEY=${PREFIX}…`);
        else expect(answer.text).toBe(body);
      }
    });
  });

  test("a client never gets a credential as the name of a content encoding", async () => {
    const { fields, ...answer } = answerWith(200, "application/json", WHOLE.messages("x"), false);
    const coded = { ...answer, fields: [...fields, ["content-encoding", SECRET] as const] };
    const shown = await answerTo("messages", false, coded);
    expect(shown).toContain("is encoded as");
    expectSafe(shown.toLowerCase(), SECRET.toLowerCase());
  });

  test("a converted answer does not join the parts of a cut credential", async () => {
    const parts = `${SECRET.slice(0, 20)}","annotations":[]},{"type":"output_text","text":"${SECRET.slice(20)}`;
    const shown = await answerTo(
      "chat",
      false,
      answerWith(200, "application/json", writeReply(parts), false),
    );
    expect(shown).toMatch(/\*{12,}/);
  });
});
