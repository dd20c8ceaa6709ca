// Answers of real providers, for worlds that are made with --recorded. They are read in place, so only where the folder
// is there; the same seed still leaves the same trace wherever it is.

import { type Fixture, listFixtures, readFixture } from "../../harness/fixtures.ts";
import { type AnswerText, type Counts, listData, type Question, type Wire } from "./answers.ts";

const FAMILIES: Readonly<Record<Wire, Fixture["family"]>> = {
  messages: "anthropic",
  responses: "openai-responses",
  content: "gemini",
};

/** Longer ones would take most of the time. */
const MOST_BYTES = 24_000;

export interface Recording {
  readonly id: string;
  readonly text: AnswerText;
  /** Null: it is of a kind whose line these checks cannot foresee. */
  readonly counts: Counts | null;
}

const known = new Map<string, readonly Recording[]>();

/** `number`: any; the recordings of a kind are counted through. */
export function findRecording({ wire, stream }: Question, number: number): Recording {
  const kind = `${wire} ${stream}`;
  const list = known.get(kind) ?? load(wire, stream);
  known.set(kind, list);
  const found = list[number % list.length];
  if (found === undefined) throw new Error(`there are no recordings of ${kind}`);
  return found;
}

function load(wire: Wire, stream: boolean): Recording[] {
  const fits = (fixture: Fixture): boolean =>
    fixture.family === FAMILIES[wire] &&
    fixture.stream === stream &&
    fixture.status === 200 &&
    fixture.native &&
    fixture.file.endsWith(".sse") === stream &&
    isAnswer(fixture);
  return listFixtures(fits)
    .toSorted((a, b) => (a.id < b.id ? -1 : 1))
    .map((fixture) => ({ fixture, body: readFixture(fixture) }))
    .filter(({ body }) => body.length <= MOST_BYTES)
    .map(({ fixture, body }) => ({
      id: fixture.id,
      text: {
        type: stream ? "text/event-stream" : "application/json",
        pieces: stream ? splitEvents(body.toString()) : [body.toString()],
      },
      counts: countsOf(fixture),
    }));
}

/** Not of a list, nor of what counts tokens. */
function isAnswer({ id, url_path: path, expect }: Fixture): boolean {
  const isOther = /count_tokens|countTokens|compact|input_tokens/.test(path);
  return !isOther && !id.includes("truncated") && expect?.terminal_seen !== false && expect?.error === null;
}

function splitEvents(text: string): string[] {
  return text.split(/(?<=\r\n\r\n|\n\n)/);
}

/** Of those that one model made in one pass, without anything that has a price of its own. */
function countsOf({ expect }: Fixture): Counts | null {
  const { lines, tool_counts: tools = {}, search_queries: searches = 0 } = expect?.billing ?? {};
  if (!Array.isArray(lines) || lines.length !== 1 || Object.keys(tools).length > 0 || searches > 0)
    return null;
  return isPlain(lines[0]) ? readCounts(lines[0]) : null;
}

/** Each family has names of its own. */
function readCounts(line: Readonly<Record<string, number>>): Counts | null {
  const input = line["input"] ?? line["input_uncached"] ?? 0;
  const cacheRead = line["cache_read"] ?? line["cached"] ?? 0;
  const output = line["output_billed"] ?? line["output"] ?? 0;
  // Some report nothing.
  return input + cacheRead + output > 0 ? { input, cacheRead, output } : null;
}

function isPlain(line: Readonly<Record<string, unknown>>): boolean {
  const isFree = DEAR.every((kind) => line[kind] === undefined || line[kind] === 0);
  return (
    isFree && MODALITIES.every((kind) => Object.keys(Object(line[kind])).every((name) => name === "TEXT"))
  );
}

const DEAR = ["cache_write", "cache_write_5m", "cache_write_1h", "tool_use_prompt"];
const MODALITIES = ["prompt_modalities", "cache_modalities", "candidates_modalities"];

/** The recording as messages on a WebSocket. */
export function listRecordedEvents({ text }: Recording, stream: string | null): string[] {
  return text.pieces.flatMap((piece) => listData(piece, stream));
}
