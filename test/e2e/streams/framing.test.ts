// Event streams as the standard defines them, end to end: several data lines in an event, any line end, a byte order mark.
// The bytes reach the client unchanged, the usage is exact, and no error is added.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { replay } from "../../harness/upstreams/replay.ts";
import { readByStandard } from "../../lib/sse/streams.ts";
import { CREDENTIAL, keyOf } from "../../harness/gateway.ts";
import { type DialectName, inWorld, makeRequest, openWorld, type World } from "../world.ts";

let world: World;
beforeAll(() => {
  world = openWorld();
});
afterAll(() => world.stop());

/** The JSON of each event over several data lines. */
function spread(text: string): string {
  return text.replace(/^data: (.*?)(\r?)$/gm, (line, data: string, cr: string) => {
    if (!data.startsWith("{")) return line;
    const lines = JSON.stringify(JSON.parse(data), null, 1).split("\n");
    return lines.map((each) => `data: ${each}${cr}`).join("\n");
  });
}

const useLineEnd = (text: string, end: string): string => text.replace(/\r\n|\n/g, end);

const FRAMINGS: readonly (readonly [string, (text: string) => string])[] = [
  ["several data lines", spread],
  ["CR", (text) => useLineEnd(text, "\r")],
  ["LF", (text) => useLineEnd(text, "\n")],
  ["CRLF", (text) => useLineEnd(text, "\r\n")],
  ["a byte order mark", (text) => `\ufeff${text}`],
  ["a byte order mark before a data line", (text) => `\ufeff${text.replace(/^event:.*\r?\n/gm, "")}`],
  ["all of these", (text) => `\ufeff${useLineEnd(spread(text), "\r")}`],
  ["no space after the colon", (text) => text.replace(/^(data|event): /gm, "$1:")],
  ["comments and other fields", (text) => text.replace(/^data: /gm, ": hi\nid: 1\nretry: 5\ndata: ")],
];
/** For what the form of a stream decides in one place. */
const SOME = FRAMINGS.filter(([name]) => name === "LF" || name === "all of these");

/** What the simulated upstream sends for a streamed request. */
async function recordStream(dialect: DialectName): Promise<string> {
  const answer = await world.ask(makeRequest(dialect, true));
  expect(answer.status).toBe(200);
  return answer.text;
}

const FAMILY_OF = {
  messages: "messages",
  responses: "responses",
  chat: "responses",
  content: "content",
} as const;

/** An answer in small pieces. */
function replayStream(dialect: DialectName, text: string) {
  const bytes = Buffer.from(text);
  const cuts = Array.from({ length: 40 }, (_, index) => Math.floor((bytes.length * (index + 1)) / 41));
  return replay({ family: FAMILY_OF[dialect], bytes, status: 200, contentType: "text/event-stream", cuts });
}

async function pass(dialect: DialectName, text: string) {
  world.upstream.next({ answer: replayStream(dialect, text) });
  const { answer, lines } = await world.trace(makeRequest(dialect, true));
  return { answer, line: lines[0] };
}

describe.each(["messages", "responses", "content"] as const)("a %s stream with", (dialect) => {
  test.each(FRAMINGS)("%s passes byte for byte and is billed exactly", async (_, frame) => {
    const text = await recordStream(dialect);
    const plain = await pass(dialect, text);
    expect(plain.line).toMatchObject({ outcome: "complete", basis: "exact" });
    const framed = frame(text);
    const { answer, line } = await pass(dialect, framed);
    expect(answer.body.equals(Buffer.from(framed))).toBe(true);
    expect(answer.complete).toBe(true);
    expect(line).toMatchObject({ outcome: "complete", basis: "exact", usage: plain.line!["usage"] });
    expect(line!["suspect"]).toBeUndefined();
  });

  test("several data lines in an event of 200 KB is billed exactly", async () => {
    const text = spread(await recordStream(dialect));
    const plain = await pass(dialect, text);
    // The last event with usage grows over what the meter keeps of an event.
    const at = text.lastIndexOf('"usage');
    const start = text.lastIndexOf("data: {\n", at) + "data: {\n".length;
    const padding = `data: "padding": [\ndata: "${"x".repeat(200 * 1024)}",\ndata: 1],\n`;
    const { answer, line } = await pass(dialect, text.slice(0, start) + padding + text.slice(start));
    expect(answer.complete).toBe(true);
    expect(line).toMatchObject({ outcome: "complete", basis: "exact", usage: plain.line!["usage"] });
  });

  test.each(SOME)("%s that breaks ends with one error event", async (_, frame) => {
    const framed = frame(await recordStream(dialect));
    const half = framed.slice(0, Math.floor(framed.length / 2));
    const { answer, line } = await pass(dialect, half);
    expect(line!["outcome"]).toBe("upstream_cut");
    const last = readByStandard(`${answer.text}\n\n`).at(-1)!;
    expect(last.data).toContain('"error"');
    expect(last.data).toContain("before it was complete");
  });
});

test.each(FRAMINGS)("a responses stream with %s becomes the same chat stream", async (_, frame) => {
  const text = await recordStream("responses");
  const plain = await pass("chat", text);
  const { answer, line } = await pass("chat", frame(text));
  expect(answer.text.endsWith("data: [DONE]\n\n")).toBe(true);
  const hide = (chunks: string): string => chunks.replace(/"id":"[^"]*"|"created":\d+/g, "");
  expect(hide(answer.text)).toBe(hide(plain.answer.text));
  expect(line).toMatchObject({ outcome: "complete", basis: "exact", usage: plain.line!["usage"] });
});

test.each(SOME)(
  "a stream with %s that begins with an error fails over to the next channel",
  async (_, frame) => {
    const channel = (base_url: string, priority: number) => ({
      platform: "messages",
      base_url,
      credential: CREDENTIAL,
      priority,
    });
    const change = (url: string) => ({
      channels: { first: channel(url, 1), second: channel(url, 2) },
      groups: { messages: { platform: "messages", multiplier: "1", channels: ["first", "second"] } },
      keys: [{ name: "messages", group: "messages", secret: keyOf("messages") }],
    });
    const error = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
    const text = frame(
      `event: ping\ndata: {"type": "ping"}\n\nevent: error\ndata: ${JSON.stringify(error)}\n\n`,
    );
    await inWorld(async (world) => {
      world.upstream.next({ answer: replayStream("messages", text) });
      const { answer, lines } = await world.trace(makeRequest("messages", true));
      expect(answer.text).not.toContain("Overloaded");
      expect(lines[0]).toMatchObject({
        outcome: "complete",
        channel: "second",
        attempts: [{ channel: "first" }, {}],
      });
    }, change);
  },
);
