// Event streams in every form that the standard allows. Each one passes byte for byte and is billed like the usual form.

import { afterAll, beforeAll, expect, test } from "bun:test";
import { type DialectName, makeRequest, openWorld, type Trace, type World } from "../world.ts";

let world: World;
beforeAll(() => void (world = openWorld()));
afterAll(async () => await world.stop());

/** Breaks the JSON of each event over several `data` lines, where white space is allowed. */
const splitData = (text: string): string =>
  text.replaceAll(/^data: ?(\{.*\})$/gm, (_, json: string) =>
    JSON.stringify(JSON.parse(json), null, 1)
      .split("\n")
      .map((line) => `data: ${line}`)
      .join("\n"),
  );

const FORMS: readonly (readonly [string, (text: string) => string])[] = [
  ["LF", (text) => text],
  ["CRLF", (text) => text.replaceAll("\n", "\r\n")],
  ["lone CRs", (text) => text.replaceAll("\n", "\r")],
  ["a byte order mark", (text) => `\ufeff${text}`],
  ["several data lines", splitData],
  ["several data lines and lone CRs", (text) => splitData(text).replaceAll("\n", "\r")],
  ["no space after the colon", (text) => text.replaceAll(/^(data|event): /gm, "$1:")],
  ["comments and other fields", (text) => text.replaceAll(/^data: /gm, ": hi\nid: 1\nretry: 5\ndata: ")],
];

/** Serves a stream in one form, whole or in pieces of a few bytes, as the answer to a request. */
async function serve(bytes: Buffer, size: number, dialect: DialectName): Promise<Trace> {
  const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
    bytes.subarray(index * size, (index + 1) * size),
  );
  const fields = [["content-type", "text/event-stream"]] as const;
  world.upstream.next({ answer: { family: dialect, status: 200, fields, pieces, framing: "chunked" } });
  return await world.trace(makeRequest(dialect, true));
}

const NATIVE = ["messages", "responses", "content"] as const;
const CASES = NATIVE.flatMap((dialect) => FORMS.map(([form, write]) => [dialect, form, write] as const));

test.each(CASES)("a %s stream with %s is passed on and billed in full", async (dialect, _, write) => {
  const usual = await world.trace(makeRequest(dialect, true));
  const bytes = Buffer.from(write(usual.answer.text.replaceAll("\r\n", "\n")));
  for (const size of [bytes.length, 7]) {
    const { answer, lines } = await serve(bytes, size, dialect);
    expect(answer.complete).toBe(true);
    expect(answer.body.equals(bytes)).toBe(true);
    expect(lines[0]).toMatchObject({
      outcome: "complete",
      basis: "exact",
      usage: usual.lines[0]?.["usage"],
      charge_usd: usual.lines[0]?.["charge_usd"],
    });
  }
});

// Chat is converted from the responses dialect.
test.each(FORMS)("a converted stream with %s is the same as with LF", async (_, write) => {
  const upstream = await world.trace(makeRequest("responses", true));
  const usual = await serve(upstream.answer.body, upstream.answer.body.length, "chat");
  const bytes = Buffer.from(write(upstream.answer.text));
  for (const size of [bytes.length, 7]) {
    const { answer, lines } = await serve(bytes, size, "chat");
    expect(answer.text).toBe(usual.answer.text);
    expect(answer.text).toContain("[DONE]");
    expect(lines[0]).toMatchObject({ outcome: "complete", charge_usd: usual.lines[0]?.["charge_usd"] });
  }
});
