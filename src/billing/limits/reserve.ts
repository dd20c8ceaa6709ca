// Forecasts what a request may cost, for limits only. `expected` is with the model's mean
// output, `most` with the output's cap or 32,000 tokens, whichever is less.
// Decision 0017.

import { parseJson } from "../../lib/json/json.ts";
import { asBuffer } from "../../lib/memory/bytes.ts";
import { parseUsd, type Usd } from "../../lib/money.ts";
import { type Scan, scanMembers } from "../../lib/scan.ts";
import type { Usage } from "../usage.ts";
import type { ExpectedPrompt } from "./forecasts.ts";

/** The cost at one channel. Null: no price there. */
export type Quote = (usage: Usage) => string | null;

export interface ReservedRequest {
  readonly body: Uint8Array;
  /** Where the body has LIMIT_MEMBERS. Null: not yet scanned. */
  readonly scan: Scan<unknown> | null;
  readonly prompt: ExpectedPrompt;
  /** Null: nothing is known of the model's answers. */
  readonly answer: number | null;
  /** False for embeddings: they have no output tokens. */
  readonly hasOutput: boolean;
  readonly capNames: readonly string[];
  readonly quotes: readonly Quote[];
}

export interface Forecast {
  readonly expected: Usd;
  readonly most: Usd;
}

const UNKNOWN_OUTPUT_TOKENS = 4000;
const MOST_OUTPUT_TOKENS = 32_000;

export function forecastCost(request: ReservedRequest): Forecast | null {
  const { prompt, answer, hasOutput, quotes } = request;
  const { cached } = prompt;
  const input = prompt.tokens - cached;
  const read = cached === 0 ? { input } : { input, cache_read: cached };
  if (!hasOutput) {
    const expected = quoteDearest(quotes, read);
    return expected === null ? null : { expected, most: expected };
  }
  const { cap, answers } = readOutput(request);
  const output = Math.min(cap, (answer ?? UNKNOWN_OUTPUT_TOKENS) * answers);
  // An upstream may ignore a small cap.
  const well = Math.max(Math.min(cap, MOST_OUTPUT_TOKENS * answers), UNKNOWN_OUTPUT_TOKENS * answers);
  const expected = quoteDearest(quotes, { ...read, output });
  const most = quoteDearest(quotes, { ...read, output: well });
  return expected === null || most === null ? null : { expected, most };
}

function quoteDearest(quotes: readonly Quote[], usage: Usage): Usd | null {
  const amounts = quotes.map((quote) => quote(usage)).filter((amount) => amount !== null);
  if (amounts.length < quotes.length) return null;
  return amounts.map(parseUsd).reduce((most, amount) => (amount > most ? amount : most), parseUsd("0"));
}

const CAPS = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
const CONFIGS = ["generationConfig", "generation_config"];
const CONFIG_CAPS = ["maxOutputTokens", "max_output_tokens"];
const CONFIG_COUNTS = ["candidateCount", "candidate_count"];
export const LIMIT_MEMBERS: readonly string[] = [...CAPS, ...CONFIGS, "n"];

/** Reads the cap on all answers' output, and the number of answers.
 *  Unreadable caps do not count. */
function readOutput({ body, scan, capNames }: ReservedRequest): { cap: number; answers: number } {
  const members = readMembers(body, LIMIT_MEMBERS, scan);
  const caps = CAPS.filter((name) => capNames.includes(name)).map((name) => members.get(name));
  const counts = [members.get("n")];
  for (const name of CONFIGS.filter((each) => capNames.includes(each) && members.has(each))) {
    const config = readMembers(Buffer.from(members.get(name) ?? ""), [...CONFIG_CAPS, ...CONFIG_COUNTS]);
    caps.push(...CONFIG_CAPS.map((own) => config.get(own)));
    counts.push(...CONFIG_COUNTS.map((own) => config.get(own)));
  }
  const known = caps.map(readCount).filter((cap) => cap !== null);
  const answers = counts.map((count) => readCount(count) ?? 1).reduce((product, count) => product * count, 1);
  return { cap: known.length === 0 ? Infinity : Math.max(...known) * answers, answers };
}

function readMembers(
  body: Uint8Array,
  names: readonly string[],
  known: Scan<unknown> | null = null,
): ReadonlyMap<string, string> {
  const scan = known ?? scanMembers(body, names);
  const texts = new Map<string, string>();
  if (scan === null || names.some((name) => scan.repeated.has(name))) return texts;
  for (const name of names) {
    const span = scan.get(name);
    if (span !== undefined) texts.set(name, asBuffer(body).toString("utf8", span.start, span.end));
  }
  return texts;
}

function readCount(text: string | undefined): number | null {
  const count = text === undefined ? null : parseJson(text);
  return typeof count === "number" && count > 0 && count <= Number.MAX_SAFE_INTEGER ? Math.ceil(count) : null;
}

const BYTES_PER_TOKEN = 4;
const TOKENS_PER_ATTACHMENT = 1500;
const ATTACHMENT = Buffer.from(";base64,");
const QUOTE = 0x22;

/** Estimates a prompt's tokens by its size, for requests
 *  that only count them and for answers that report none. */
export function estimateInputTokens(body: Uint8Array): number {
  const bytes = asBuffer(body);
  let attached = 0;
  let attachments = 0;
  for (let at = bytes.indexOf(ATTACHMENT); at >= 0; at = bytes.indexOf(ATTACHMENT, at)) {
    const close = bytes.indexOf(QUOTE, at);
    const end = close < 0 ? bytes.length : close;
    attached += end - at;
    attachments += 1;
    at = end;
  }
  return Math.ceil((bytes.length - attached) / BYTES_PER_TOKEN) + attachments * TOKENS_PER_ATTACHMENT;
}
