// Work on untrusted input grows with its size, not with the square of it. Each case is a hostile input. It is measured in
// CPU time at one size and at twice the size: linear work takes twice as long, quadratic work four times.

import { FirstEventSearch } from "../../src/dialects/first-event.ts";
import { messages } from "../../src/dialects/formats/messages.ts";
import { describe, expect, test } from "bun:test";
import { readExport, reconcileExport } from "../../src/billing/history/exports.ts";
import { joinHistory } from "../../src/billing/history/join.ts";
import { ANY_SELLER } from "../../src/billing/prices/sellers.ts";
import { findModel } from "../../src/billing/prices.ts";
import { loadBuiltInBook } from "../../src/billing/prices/book.ts";
import { quote } from "../../src/cli/money/usage/usage.ts";
import { checkConfigText } from "../../src/config/file/load.ts";
import type { DialectName } from "../../src/dialects/dialect.ts";
import { recognise } from "../../src/dialects/index.ts";
import { dropKey } from "../../src/dialects/path.ts";
import { MESSAGES_LAYOUT } from "../../src/dialects/prompt/layouts.ts";
import { countSameCalls } from "../../src/dialects/prompt/same-call.ts";
import { readPrompt } from "../../src/dialects/prompt/read-prompt.ts";
import { readClient } from "../../src/gateway/intake/client.ts";
import { nameConversation } from "../../src/gateway/intake/conversation.ts";
import { readNames } from "../../src/gateway/intake/body.ts";
import { KnownSecrets } from "../../src/gateway/intake/known-secrets.ts";
import { requestFields, responseFields } from "../../src/gateway/upstream/headers.ts";
import { redactBody, redactError, redactFields, StreamRedactor } from "../../src/gateway/upstream/redact.ts";
import { matchesGlob } from "../../src/lib/text/glob.ts";
import { type Field, Fields } from "../../src/lib/http/fields.ts";
import { openDecoder } from "../../src/lib/http1/framing.ts";
import { HeadSearch, parseRequest, parseResponse, skipEmptyLines } from "../../src/lib/http1/head.ts";
import { guessRequest } from "../../src/lib/http1/server/refusal.ts";
import { parseExactJson } from "../../src/lib/json/exact-json.ts";
import { parseJson } from "../../src/lib/json/json.ts";
import { JsonPicker } from "../../src/lib/json/json-pick-stream.ts";
import { scanTopLevel } from "../../src/lib/json/json-spans.ts";
import { SseScanner } from "../../src/lib/sse/sse-needles.ts";
import { openSseParser } from "../../src/lib/sse/sse-parser.ts";

import { findHandshakeFault } from "../../src/lib/http1/websocket/handshake.ts";
import { readCookies } from "../../src/web/guard.ts";
import { CLAUDE, claudeRow, claudeTotal, makeHome, read as readLogs } from "../billing/history/made-logs.ts";
import { entryOf, lineOf, T } from "../billing/history/made-requests.ts";
import { convert, readDirection, whole } from "../bridges/calls.ts";
import { formAnswer, joinAnswer } from "../bridges/provider.ts";
import { formRequest, formUser, keepAnswer } from "../bridges/session.ts";

/** Prepares the input of a size, and returns the work on it. */
type Case = readonly [name: string, size: number, prepare: (size: number) => () => unknown];

/** Halfway between linear (2) and quadratic (4). */
const MAX_RATIO = 2.8;
/** Shorter measurements are mostly noise. */
const MIN_MS = 4;
/** Other processes and the garbage collector add time to some measurements. They cannot make quadratic work linear. */
const ATTEMPTS = 40;
/** One measurement that was much too short spoils its trial. Each further trial measures longer. */
const TRIALS = 5;

function measure(work: () => unknown, times: number): number {
  const start = process.cpuUsage();
  for (let time = 0; time < times; time += 1) work();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}

function expectLinear([, size, prepare]: Case): void {
  const works = [prepare(size), prepare(2 * size)] as const;
  let times = 1;
  while (measure(works[0], times) < MIN_MS) times *= 2;
  let ratio = Infinity;
  for (let trial = 0; trial < TRIALS && ratio > MAX_RATIO; trial += 1) ratio = compare(works, times << trial);
  expect(ratio).toBeLessThanOrEqual(MAX_RATIO);
}

function compare([small, large]: readonly [() => unknown, () => unknown], times: number): number {
  const shortest = [Infinity, Infinity] as [number, number];
  let ratio = Infinity;
  for (let attempt = 0; attempt < ATTEMPTS && ratio > MAX_RATIO; attempt += 1) {
    shortest[0] = Math.min(shortest[0], measure(small, times));
    shortest[1] = Math.min(shortest[1], measure(large, times));
    ratio = shortest[1] / shortest[0];
  }
  return ratio;
}

const fieldsOf = (count: number, make: (index: number) => Field): Fields =>
  Fields.of(Array.from({ length: count }, (_, index) => make(index)));
const bytesOf = (text: string): Buffer => Buffer.from(text, "latin1");

const many = (size: number, write: (index: number) => string): string =>
  Array.from({ length: size }, (_, index) => write(index)).join("");

/** The input of a size is made once, and the work on it is measured. */
const on = <T>(name: string, size: number, make: (size: number) => T, work: (input: T) => unknown): Case => [
  name,
  size,
  (count) => {
    const input = make(count);
    return () => work(input);
  },
];
const onBytes = (
  name: string,
  size: number,
  make: (size: number) => string,
  work: (input: Buffer) => unknown,
): Case => on(name, size, (count) => bytesOf(make(count)), work);

/** Gives bytes to a reader one by one. */
function feed(bytes: Buffer, read: (piece: Buffer) => unknown): void {
  for (let at = 0; at < bytes.length; at += 1) read(bytes.subarray(at, at + 1));
}

function findHead(bytes: Buffer): void {
  const search = new HeadSearch();
  let from = 0;
  for (let end = 1; end <= bytes.length; end += 1) {
    const part = bytes.subarray(0, end);
    from = skipEmptyLines(part, from);
    search.findEnd(part, from);
  }
}

const naming = { relayPrefix: "relay", vendor: "goog" };
const ask = (target: string): unknown => recognise({ method: "GET", target, field: () => undefined }, naming);

const NO_SECRETS = new KnownSecrets({ channels: new Map(), keysBySha256: new Map() });

const HEADS: readonly Case[] = [
  on(
    "a field with many words that could be keys",
    2000,
    (size) => Fields.of([["x-words", Array.from({ length: size }, (_, index) => `word${index}`).join(" ")]]),
    (fields) => requestFields(fields, true, NO_SECRETS),
  ),
  on(
    "a connection field many times, from a client",
    2000,
    (size) => fieldsOf(size, (index) => ["connection", `a${index}`]),
    (fields) => requestFields(fields, true, NO_SECRETS),
  ),
  on(
    "a connection field many times, from an upstream",
    2000,
    (size) => fieldsOf(size, (index) => ["connection", `a${index}`]),
    responseFields,
  ),
  on(
    "a connection field with many names",
    20_000,
    (size) => Fields.of([["connection", "a,".repeat(size)]]),
    responseFields,
  ),
  onBytes(
    "many fields",
    5000,
    (size) => `GET / HTTP/1.1\r\n${many(size, (index) => `N${index}:v\r\n`)}`,
    (head) => parseRequest(Buffer.from(head), 0, head.length),
  ),
  onBytes(
    "a field of spaces",
    50_000,
    (size) => `HTTP/1.1 200 OK\r\na:${" ".repeat(size)}\r\n`,
    (head) => parseResponse(head, 0, head.length),
  ),
  onBytes(
    "a head that arrives byte by byte",
    30_000,
    (size) => `GET / HTTP/1.1\r\na: ${"x".repeat(size)}`,
    findHead,
  ),
  onBytes("empty lines that arrive byte by byte", 10_000, (size) => "\r\n".repeat(size), findHead),
  onBytes(
    "an invalid head of one long name",
    50_000,
    (size) => `GET / x\r\n${"a".repeat(size)}`,
    guessRequest,
  ),
  onBytes(
    "an invalid head with a long authority",
    50_000,
    (size) => `GET http://${"a".repeat(size)}`,
    guessRequest,
  ),
  onBytes(
    "a body of one-byte chunks",
    50_000,
    (size) => "1\r\na\r\n".repeat(size),
    (bytes) => openDecoder("chunked").decode(Buffer.from(bytes), 0),
  ),
];

const TARGETS: readonly Case[] = [
  ["broken escapes", 10_000, (size) => () => dropKey(`?${"&%6".repeat(size)}`)],
  ["parameters that may be the key", 10_000, (size) => () => dropKey(`?${"&key=a&%6b".repeat(size)}`)],
  [
    "a query of a path that several platforms share",
    10_000,
    (size) => () => ask(`/v1/models?${"&%6".repeat(size)}`),
  ],
  ["a model of escapes", 10_000, (size) => () => ask(`/v1beta/models/${"%25".repeat(size)}`)],
  ["repeated versions", 10_000, (size) => () => ask("/v1/v1".repeat(size))],
  ["slashes", 20_000, (size) => () => ask(`/relay${"/".repeat(size)}`)],
];

const ESCAPED = '"mod\\u0065":1,';
const pickModel = (body: Buffer): void => new JsonPicker({ model: true }, () => {}).see(body);
const scanModel = (body: Buffer): unknown => scanTopLevel(body, ["model"]);
const BODIES: readonly Case[] = [
  onBytes(
    "escaped keys that could be the model",
    50_000,
    (size) => `{${ESCAPED.repeat(size)}"a":1}`,
    (body) => [scanTopLevel(body, ["models"]), nameConversation({}, body)],
  ),
  onBytes("many members", 50_000, (size) => `{${'"a":1,'.repeat(size)}"model":"x"}`, readNames),
  onBytes(
    "a string of escaped quotes",
    100_000,
    (size) => `{"model":"x","a":"${'\\"'.repeat(size)}"}`,
    readNames,
  ),
  onBytes(
    "a string of backslashes",
    100_000,
    (size) => `{"model":"x","a":"${"\\\\".repeat(size)}"}`,
    readNames,
  ),
  onBytes("open brackets", 200_000, (size) => `{"a":${"[".repeat(size)}`, scanModel),
  onBytes("a number without an end", 100_000, (size) => `{"a":${"1".repeat(size)}e}`, scanModel),
  onBytes("picked members", 50_000, (size) => `{${ESCAPED.repeat(size)}"a":1}`, pickModel),
  onBytes(
    "backslashes that arrive byte by byte",
    50_000,
    (size) => `{"a":"${"\\".repeat(size)}`,
    (body) => {
      const picker = new JsonPicker({ model: true }, () => {});
      feed(body, (piece) => picker.see(piece));
    },
  ),
  on("digits", 100_000, (size) => `"${"1".repeat(size)}"`, parseExactJson),
  on("a body that is not JSON", 100_000, (size) => "[".repeat(size), parseJson),
];

const channel = { credential: "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789", headers: [] };
const REPEATS: readonly (readonly [string, string, number])[] = [
  ["the credential", channel.credential, 1000],
  ["its start", "sk-ant-api03-AbCdEfG", 3000],
  ["masks", "**x", 20_000],
  ["stars", "*", 50_000],
  ["full stops", "..x", 20_000],
  ["backslashes", "\\", 50_000],
  ["escaped masks", "\\\\\\\\u2022", 8000],
  ["nested URL escapes", "%25", 20_000],
  ["nested HTML escapes", "&#x00000026;", 5000],
  ["entities", "&amp", 20_000],
];

const ERRORS: readonly Case[] = REPEATS.flatMap(([name, text, size]): Case[] => {
  const repeat = (count: number): string => text.repeat(count);
  return [
    onBytes(`${name}, in an error`, size, repeat, (body) => redactError(body, channel)),
    onBytes(`${name}, in a body`, size, repeat, (body) => redactBody(body, channel)),
    onBytes(`${name}, in a stream cut into bytes`, Math.ceil(size / 4), repeat, (body) => {
      const redactor = new StreamRedactor(channel, 200);
      feed(body, (piece) => redactor.pass(piece));
    }),
    on(
      `${name}, in a field`,
      size,
      (count) => Fields.of([["x", repeat(count)]]),
      (fields) => redactFields(fields, channel, 200),
    ),
  ];
});

function scanEvents(bytes: Buffer, cut = false): void {
  const scanner = new SseScanner({
    needles: ['"usage"', "[DONE]"],
    limit: 64 * 1024,
    onEvent() {},
    openLong: () => ({ see() {}, end() {} }),
    onSample: () => true,
  });
  if (cut) feed(bytes, (piece) => scanner.see(piece));
  else scanner.see(bytes);
}

function parseEvents(bytes: Buffer, cut = false): void {
  const parser = openSseParser();
  if (cut) feed(bytes, (piece) => parser.push(piece));
  else parser.push(bytes);
}

const STREAM_TEXTS: readonly (readonly [string, (size: number) => string])[] = [
  ["empty lines, then a CR", (size) => `${"\n".repeat(size)}\r`],
  ["CRs", (size) => "\r".repeat(size)],
  ["data lines without data", (size) => "data\n".repeat(size / 5)],
  ["a line without an end", (size) => `data: ${"x".repeat(size)}`],
  ["events that matter", (size) => 'data: "usage"\n\n'.repeat(size / 15)],
  ["an event full of needles", (size) => '"usage"\n'.repeat(size / 8)],
];
const STREAMS: readonly Case[] = STREAM_TEXTS.flatMap(([name, make]): Case[] => [
  onBytes(`${name}, parsed`, 100_000, make, (bytes) => parseEvents(bytes)),
  onBytes(`${name}, scanned`, 100_000, make, (bytes) => scanEvents(bytes)),
  onBytes(`${name}, cut into bytes`, 20_000, make, (bytes) => {
    parseEvents(bytes, true);
    scanEvents(bytes, true);
  }),
  onBytes(`${name}, at the start of a stream`, 50_000, make, (bytes) =>
    new FirstEventSearch(messages.upstreamErrors).add(bytes),
  ),
]);

const matchGlob = ({ glob, text }: { glob: string; text: string }): boolean => matchesGlob(glob, text);
const identify = (source: Readonly<Record<string, string>>): unknown => {
  const all: Readonly<Record<string, string>> = { "user-agent": "claude-cli/2.1.0", ...source };
  const read = (name: string): string | undefined => all[name];
  return readClient({ field: read, member: read });
};
const upgradeTo = (value: string): unknown => {
  const fields: Field[] = [["upgrade", value]];
  const field = (name: string): string | undefined => fields.find(([each]) => each === name)?.[1];
  return findHandshakeFault({ method: "GET", fields, field });
};
const book = loadBuiltInBook();

const NAMES: readonly Case[] = [
  on(
    "a glob of stars",
    1000,
    (size) => ({ glob: `${"a*".repeat(size)}b`, text: "a".repeat(2 * size) }),
    matchGlob,
  ),
  on(
    "a glob that nearly matches everywhere",
    2000,
    (size) => ({ glob: `*${"a".repeat(100)}b*`, text: "a".repeat(size) }),
    matchGlob,
  ),
  ...["a-", "/", ":", "[1m]", "-20250101", "@", ".anthropic.", "%"].map((part) =>
    on(
      `a model of which nobody knows the price, of ${part}`,
      2000,
      (size) => part.repeat(size),
      (model) => findModel(book, ANY_SELLER, model),
    ),
  ),
  on("a label of escapes", 10_000, (size) => ({ "x-gateway-label": "%41".repeat(size) }), identify),
  on("a label of broken escapes", 10_000, (size) => ({ "x-gateway-label": "%4".repeat(size) }), identify),
  on(
    "a session of a user",
    5000,
    (size) => ({ metadata: `{"user_id":"${"_session_a".repeat(size)}"}` }),
    identify,
  ),
  on("a tool", 10_000, (size) => ({ "user-agent": "a ".repeat(size) }), identify),
  ...["; ", ";", "session=a ", "a_session=b; "].map((part) =>
    on(
      `a cookie of ${part}`,
      10_000,
      (size) => Fields.of([["cookie", part.repeat(size)]]),
      (fields) => readCookies({ fields }, "session="),
    ),
  ),
  ...["a, ", ",", " ", "websocket2,"].map((part) =>
    on(`an upgrade to ${part}`, 10_000, (size) => part.repeat(size), upgradeTo),
  ),
  on("a cell of CSV of semicolons and spaces", 10_000, (size) => "; ".repeat(size), quote),
  on("a cell of CSV of spaces", 20_000, (size) => " ".repeat(size), quote),
];

const CONFIG_TEXTS: readonly (readonly [name: string, size: number, write: (size: number) => string])[] = [
  ["keys", 300, (size) => `keys:\n${many(size, (index) => `  - { name: k${index}, group: g }\n`)}`],
  ["unknown settings", 1000, (size) => many(size, (index) => `a${index}: b\n`)],
  ["names on one line", 1000, (size) => `{${many(size, (index) => `a${index}: b, `)}}`],
  ["equal names", 2000, (size) => "a: b\n".repeat(size)],
  ["nested lists", 2000, (size) => "[".repeat(size)],
  ["nested lists that are closed", 2000, (size) => "[".repeat(size) + "]".repeat(size)],
  ["nested maps", 2000, (size) => "{a: ".repeat(size)],
  ["nested dashes", 2000, (size) => "- ".repeat(size)],
  ["nested keys", 2000, (size) => "? ".repeat(size)],
  ["indented names", 100, (size) => many(size, (index) => `${" ".repeat(Math.min(index, 200))}a:\n`)],
  ["aliases", 2000, (size) => `a:\n${many(size, (index) => `  - &x${index} b\n  - *x${index}\n`)}`],
  ["merges", 500, (size) => `x: &a { b: c }\na:\n${many(size, (index) => `  m${index}: { <<: *a }\n`)}`],
  ["references", 2000, (size) => `a: '${"${X}".repeat(size)}'`],
  ["open references", 10_000, (size) => `a: '${"${".repeat(size)}'`],
  ["unknown escapes", 2000, (size) => `a: "${"\\q".repeat(size)}"`],
  ["lines of one text", 2000, (size) => `a: "${"  x\n".repeat(size)}"`],
  ["tags", 2000, (size) => "!a ".repeat(size)],
  ["directives", 500, (size) => "%a\n".repeat(size)],
  ["comments", 2000, (size) => "# c\n".repeat(size)],
  ["commas", 2000, (size) => `[${",".repeat(size)}]`],
  [
    "prices",
    300,
    (size) => `prices:\n${many(size, (index) => `  ${"m".repeat(99)}${index}: { input: "3" }\n`)}`,
  ],
];
const CONFIGS = CONFIG_TEXTS.map(([name, size, write]): Case =>
  on(name, size, write, (text) => {
    try {
      return checkConfigText(text, "/gateway.yaml", {});
    } catch (error) {
      return error;
    }
  }),
);

const read = (body: Buffer): unknown => readPrompt(body, MESSAGES_LAYOUT);
const countCalls = (body: Buffer): unknown => countSameCalls(body, MESSAGES_LAYOUT);
const MARKED = '{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}';
const RESULT = '{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":';
const PROMPTS: readonly Case[] = [
  onBytes("open brackets in a message", 200_000, (size) => `{"messages":[${"[".repeat(size)}`, read),
  onBytes(
    "nested objects in a tool",
    100_000,
    (size) => `{"tools":[${'{"a":'.repeat(size)}1${"}".repeat(size)}],"messages":["a"]}`,
    read,
  ),
  onBytes(
    "marked blocks",
    7000,
    (size) => `{"messages":[{"role":"user","content":[${`${MARKED},`.repeat(size)}${MARKED}]}]}`,
    read,
  ),
  onBytes(
    "marks in one block",
    20_000,
    (size) => `{"messages":[{"content":[{${'"cache_control":{},'.repeat(size)}"a":1}]}]}`,
    read,
  ),
  onBytes(
    "a text that names the mark",
    50_000,
    (size) => `{"messages":[{"content":["${'\\"cache_control\\"'.repeat(size)}"]}]}`,
    read,
  ),
  onBytes(
    "a system prompt of digits and letters",
    100_000,
    (size) => `{"system":"${"1a".repeat(size)}","messages":["a"]}`,
    read,
  ),
  onBytes("more messages than are read", 50_000, (size) => `{"messages":[${'"a",'.repeat(size)}"a"]}`, read),
  onBytes(
    "a result in a result, for the calls that repeat",
    20_000,
    (size) =>
      `{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t"}]},${RESULT}${'[{"a":'.repeat(size)}1${"}]".repeat(size)}}]}]}`,
    countCalls,
  ),
  onBytes(
    "tags of tools that never close, for the calls that repeat",
    50_000,
    (size) => `{"messages":[{"role":"user","content":"${"<system-reminder>".repeat(size)}"}]}`,
    countCalls,
  ),
];

const COMPARISONS: readonly Case[] = [
  on(
    "an export of minutes, and a ledger",
    10_000,
    (size) => ({
      text: `start_time,end_time,model,output_tokens\n${many(size, (index) => `${T / 1000 + index * 60},${T / 1000 + index * 60 + 60},gpt-5.5,7\n`)}`,
      lines: Array.from({ length: size }, (_, index) => lineOf({ time: T + index * 60_000 })),
    }),
    ({ text, lines }) => {
      const exported = readExport(text);
      return exported && reconcileExport(exported, lines, () => true);
    },
  ),
  on(
    "sessions of which the log has totals only, and a ledger",
    2000,
    (size) => Array.from({ length: size }, (_, index) => `s${index}`),
    (sessions) =>
      joinHistory(
        sessions.map((session) => entryOf({ session, isRest: true })),
        sessions.map((session) => lineOf({ session })),
      ),
  ),
  on(
    "requests that take hours, and a log",
    1000,
    (size) => Array.from({ length: size }, (_, index) => index),
    (indexes) =>
      joinHistory(
        indexes.map((index) => entryOf({ time: T + index * 240_000 })),
        indexes.map((index) => lineOf({ time: T + index * 240_000, ended: T + index * 240_000 + 7_200_000 })),
      ),
  ),
  on(
    "a log of many sessions, each with its total",
    2000,
    (size) => makeTotals(size, (index) => ({ sessionId: `s${index}`, startTime: index })),
    (home) => readLogs(home),
  ),
  on(
    "a log of a session that was resumed many times, with a total each time",
    2000,
    (size) => makeTotals(size, () => ({})),
    (home) => readLogs(home),
  ),
];

/** Each run has one answer, and its total has one token more. */
function makeTotals(size: number, name: (index: number) => Record<string, unknown>): string {
  const rows = Array.from({ length: size }, (_, index) => {
    const timestamp = new Date(T + index * 1000).toISOString();
    const answer = claudeRow({ ...name(index), id: `msg_${index}`, timestamp });
    return [answer, claudeTotal({ inputTokens: 4 * size, outputTokens: 20 * size }, name(index))];
  });
  return makeHome({ [`${CLAUDE}/a.jsonl`]: rows.flat() });
}

const listCalls = (size: number) =>
  Array.from({ length: size }, (_, at) => ({ id: `c${at}`, name: "Read", args: {} }));
/** An answer of a dialect, which is a history of that dialect too. */
const answerWith = (dialect: DialectName, calls: ReturnType<typeof listCalls>): unknown[] => {
  const counts = { prompt: 1, read: 0, output: 1, reasoning: 0 };
  return formAnswer(dialect, { thought: null, text: null, calls }, counts);
};
const formHistory = (client: DialectName, size: number): string => {
  const calls = listCalls(size);
  const said = formUser(client, { results: [], text: "go on", image: true }, calls);
  return JSON.stringify(
    formRequest(client, [...keepAnswer(client, answerWith(client, calls)), ...said], false),
  );
};
const CONVERSIONS: readonly Case[] = [
  ...["messages>responses", "responses>messages", "chat>content", "content>chat"].map((direction) =>
    on(
      `calls and their results, ${direction}`,
      3000,
      (size) => formHistory(readDirection(direction)[0], size),
      (body) => convert(direction, body),
    ),
  ),
  on(
    "calls in an answer",
    5000,
    (size) => joinAnswer("chat", answerWith("chat", listCalls(size))),
    (answer) => whole(convert("messages>chat", formHistory("messages", 1)), answer),
  ),
];

describe.each([
  ["a conversation", CONVERSIONS],
  ["a prompt", PROMPTS],
  ["a head", HEADS],
  ["a target", TARGETS],
  ["a body", BODIES],
  ["a redacted text", ERRORS],
  ["an event stream", STREAMS],
  ["a name", NAMES],
  ["a config", CONFIGS],
  ["a comparison", COMPARISONS],
] as const)("twice as much of %s takes at most 2.8 times the CPU", (_, cases) => {
  test.each(cases.map((each) => [each[0], each] as const))("%s", (_name, each) => expectLinear(each));
});
