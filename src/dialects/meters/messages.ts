// The usage of a messages answer.
// https://platform.claude.com/docs/en/build-with-claude/streaming

import { type CallListener, type Part, type Reading, sumUsage, type Usage } from "../../billing/usage.ts";
import { getCount, getField, isObject, getList, getName, getText, parseJson } from "../../lib/json/json.ts";
import { CalledTools } from "../prompt/calls.ts";
import { reportCall } from "../prompt/same-call.ts";
import { listNeedles, meterOf, sizeOf, type UsageReader, type UsageReport } from "./meter.ts";
import { CountReader, dropZeros, readTariff, Reports } from "../../billing/counts.ts";

type Counters = Readonly<Record<string, unknown>>;

// Signatures, and results of server tools, are read:
// in a sample of events, they would count as output.
const NEEDLES = listNeedles("message_", 'error"', "block_start", "signature_");

const ONLY_TEXT =
  /^event: \w+\ndata: \{"type":"content_block_delta","index":\d+,"delta":\{"type":"text_delta","text":"([^"\\\p{Cc}]*)"\} *\}\n\n$/u;

export class MessagesReader implements UsageReader {
  readonly onlyText = ONLY_TEXT;
  readonly needles: readonly Buffer[];
  readonly isFollowed: boolean;

  /** Null: nobody listens to calls. */
  readonly #calls: CallReader | null;
  #model: string | null = null;
  /** Reports are running totals: never add them. */
  readonly #reports = new Reports(countPrompt);
  #end: Reading["end"] = "open";
  #final = false;
  /** The last report does not count the output. */
  #lacksOutput = false;
  #awaitsReport = false;
  #refusal: Reading["refusal"];
  #cacheReason: Reading["cacheReason"];
  #hasContent = false;
  readonly #called = new CalledTools();
  #isReported = false;

  constructor(listener: CallListener | null = null) {
    this.isFollowed = listener !== null;
    this.needles = listener === null ? NEEDLES : [...NEEDLES, ...listNeedles("content_block")];
    this.#calls = listener && new CallReader(listener);
  }

  learn(event: unknown): void {
    const type = getField(event, "type");
    this.#calls?.learn(event, type);
    if (type === "message_start") {
      this.#start(getField(event, "message"));
      this.#awaitsReport = true;
    } else if (type === "message_delta") {
      const delta = getField(event, "delta");
      const hasReason = getName(getField(delta, "stop_reason")) !== undefined;
      this.#learnReport(getField(event, "usage"), hasReason);
      this.#learnStop(delta);
    } else if (type === "content_block_start") this.#beginBlock(getField(event, "content_block"));
    else if (type === "message_stop") this.#end = "complete";
    else if (type === "message") {
      this.#start(event);
      const blocks = getList(getField(event, "content"));
      for (const block of blocks) this.#called.add(block);
      this.#hasContent = blocks.length > 0;
      this.#learnStop(event);
    } else if (type === "error" || (type === undefined && isObject(getField(event, "error"))))
      this.#end = "error";
    if (this.#end === "complete") this.#final = true;
  }

  measureText(event: unknown): number {
    const type = getField(event, "type");
    if (type === "content_block_delta") return measureBlock(getField(event, "delta"));
    if (type === "content_block_start") return measureBlock(getField(event, "content_block"));
    let size = 0;
    for (const block of getList(getField(event, "content"))) size += measureBlock(block);
    return size;
  }

  report(): UsageReport {
    const counts = new CountReader();
    const last = this.#reports.last ?? {};
    const usage = this.#reports.read(counts, getList(last["iterations"]).length > 0) ?? {};
    const parts = readParts(usage, counts);
    noteUnknown(last, counts);
    const awaited = parts.length > 0 && this.#awaitsReport;
    const unreported = awaited && this.#hasContent && this.#end === "complete";
    if (this.#lacksOutput || unreported) counts.note("output_missing", "output_tokens");
    return {
      model: this.#model,
      parts,
      faults: counts.faults,
      rawUsage: this.#reports.last,
      tariff: readTariff(last, TARIFF),
      end: this.#end,
      final: this.#final,
      cacheReason: this.#cacheReason,
      loops: hasServerCalls(last),
      refusal: this.#hasContent ? undefined : this.#refusal,
      called: this.#called.list(),
    };
  }

  #learnStop(delta: unknown): void {
    if (getField(delta, "stop_reason") !== "refusal") return;
    this.#refusal = { category: getName(getField(getField(delta, "stop_details"), "category")) ?? null };
  }

  /** A new block shows that an earlier report was not the last one. */
  #beginBlock(block: unknown): void {
    this.#called.add(block);
    this.#hasContent = true;
    this.#awaitsReport = true;
    this.#final = this.#end === "complete";
  }

  #learnReport(usage: unknown, isLast: boolean): void {
    const isReport = this.#merge(usage, { isLate: this.#isReported || this.#end === "complete" });
    this.#final ||= isReport && isLast;
    if (!isObject(usage)) return;
    this.#lacksOutput = (usage["output_tokens"] ?? null) === null;
    this.#isReported ||= isLast && !this.#lacksOutput;
    this.#awaitsReport = false;
  }

  #start(message: unknown): void {
    this.#model = getName(getField(message, "model")) ?? this.#model;
    this.#merge(getField(message, "usage"), { isStart: true });
    const diagnostics = getField(message, "diagnostics");
    const reason = readCacheReason(getField(diagnostics, "cache_miss_reason"));
    this.#cacheReason = reason ?? this.#cacheReason;
  }

  /** A field that a report lacks keeps its value. */
  #merge(reported: unknown, how: { readonly isLate?: boolean; readonly isStart?: boolean }): boolean {
    if (!isObject(reported)) return false;
    const hasAll = !Object.values(reported).includes(null);
    const given = hasAll ? reported : Object.fromEntries(Object.entries(reported).filter(isGiven));
    if (Object.keys(given).length === 0) return false;
    const { last } = this.#reports;
    if (last === null) return this.#reports.add(given, how);
    // If the earlier split by lifetime exceeds this report's total, the split is out of date.
    const total = getCount(reported["cache_creation_input_tokens"]);
    const isOutdated = total !== undefined && total < sumLifetimes(last);
    const earlier = isOutdated ? { ...last, cache_creation: undefined } : last;
    return this.#reports.add({ ...earlier, ...given }, how);
  }
}

const isGiven = ([, value]: [string, unknown]): boolean => value !== null;

export const openMessagesMeter = meterOf((calls) => new MessagesReader(calls));

/** No tool has a longer input. */
const MAX_INPUT_LENGTH = 1024 * 1024;

/** In a stream, the input comes as pieces of JSON. */
class CallReader {
  readonly #listener: CallListener;
  #block: unknown = null;
  #input = "";

  constructor(listener: CallListener) {
    this.#listener = listener;
  }

  learn(event: unknown, type: unknown): void {
    const message = type === "message_start" ? getField(event, "message") : event;
    const id = getName(getField(message, "id"));
    if (id !== undefined) this.#listener.begin(id);
    for (const block of getList(getField(message, "content"))) reportCall(block, this.#listener);
    if (type === "content_block_start") {
      this.#block = getField(event, "content_block");
      this.#input = "";
    } else if (type === "content_block_delta" && this.#input.length < MAX_INPUT_LENGTH)
      this.#input += getText(getField(getField(event, "delta"), "partial_json"));
    else if (type === "content_block_stop" && isObject(this.#block)) {
      const input = this.#input === "" ? {} : { input: parseJson(this.#input) };
      reportCall({ ...this.#block, ...input }, this.#listener);
    }
  }
}

/** The model writes these blocks, so they are output.
 *  https://platform.claude.com/docs/en/build-with-claude/compaction */
const COMPACTIONS: ReadonlySet<string> = new Set(["compaction", "compaction_delta"]);

function measureBlock(block: unknown): number {
  if (!isObject(block)) return 0;
  const said = sizeOf(block["text"]) + sizeOf(block["thinking"]) + sizeOf(block["partial_json"]);
  const type = getName(block["type"]) ?? "";
  if (COMPACTIONS.has(type)) return said + sizeOf(block["content"]);
  return type.endsWith("tool_use") ? said + sizeOf(block["name"]) + sizeOf(block["input"]) : said;
}

function hasServerCalls({ server_tool_use: calls }: Counters): boolean {
  return isObject(calls) && Object.values(calls).some((count) => count !== 0);
}

/** The upstream could not compare the prompts. */
const NOT_COMPARED: ReadonlySet<string> = new Set(["previous_message_not_found", "unavailable"]);

/** https://platform.claude.com/docs/en/build-with-claude/cache-diagnostics */
function readCacheReason(reported: unknown): Reading["cacheReason"] {
  const because = getName(getField(reported, "type"));
  if (because === undefined || NOT_COMPARED.has(because)) return undefined;
  return { because, missed: getCount(getField(reported, "cache_missed_input_tokens")) ?? null };
}

/** `cache_creation` only splits what was written, by lifetime. */
function countPrompt(counters: Counters): number {
  const written = getCount(counters["cache_creation_input_tokens"]) ?? sumLifetimes(counters);
  const read = getCount(counters["cache_read_input_tokens"]) ?? 0;
  return (getCount(counters["input_tokens"]) ?? 0) + read + written;
}

function sumLifetimes({ cache_creation: split }: Counters): number {
  let sum = 0;
  if (isObject(split)) for (const name in split) sum += getCount(split[name]) ?? 0;
  return sum;
}

/** The totals leave out compaction, advisor and fallback passes. */
function readParts(counters: Counters, counts: CountReader): readonly Part[] {
  const whole = readUsage(counters, counts);
  if (whole === null) return [];
  if ("iterations" in counters) return readIterations(counters, whole, counts);
  return [{ model: null, pass: "message", usage: addExtras(whole, counters, counts) }];
}

function readIterations(counters: Counters, whole: Usage, counts: CountReader): readonly Part[] {
  const iterations = listIterations(counters, counts);
  if (iterations.some((pass) => pass["type"] !== "message" || getName(pass["model"]) !== undefined))
    return readPasses(iterations, counters, counts);
  const calls = readEqualCalls(iterations, whole);
  if (calls === null) counts.note("total_differs", "iterations");
  const [first, ...others] = calls ?? [];
  const part: Part = {
    model: null,
    pass: "message",
    usage: addExtras(whole, counters, counts),
  };
  if (first === undefined) return [part];
  return [{ ...part, calls: [addExtras(first, counters, new CountReader()), ...others] }];
}

const KNOWN_PASSES: ReadonlySet<unknown> = new Set([
  "message",
  "compaction",
  "advisor_message",
  "fallback_message",
]);

function listIterations({ iterations: listed }: Counters, counts: CountReader): Counters[] {
  const iterations = getList(listed).filter(isObject);
  if ((listed ?? null) !== null && (!Array.isArray(listed) || iterations.length < listed.length))
    counts.note("detail_unreadable", "iterations");
  for (const [index, pass] of iterations.entries()) {
    const { type, output_tokens: output } = pass;
    const isCounted = TOTALS.some((name) => (getCount(pass[name]) ?? 0) > 0);
    if (isCounted && !KNOWN_PASSES.has(type)) counts.note("unknown", `iterations[${index}]`);
    else if (output === 0 && index < iterations.length - 1) counts.note("refused", `iterations[${index}]`);
  }
  return iterations;
}

/** Reasoning and searches are only counted for the whole answer.
 *  They are added to the `message` pass with the most output. */
function readPasses(
  iterations: readonly Counters[],
  counters: Counters,
  counts: CountReader,
): readonly Part[] {
  const parts = iterations.map((pass): Part => ({
    model: getName(pass["model"]) ?? null,
    pass: getName(pass["type"]) ?? "message",
    usage: readUsage(pass, counts) ?? {},
  }));
  const own = parts.filter((part) => part.pass === "message");
  const [main] = (own.length > 0 ? own : parts).toSorted(
    (a, b) => (b.usage.output ?? 0) - (a.usage.output ?? 0),
  );
  if (main !== undefined) addExtras(main.usage, counters, counts);
  return parts;
}

/** The calls of a server tool's loop.
 *  Null if they do not add up to `whole`. */
function readEqualCalls(iterations: readonly Counters[], whole: Usage): Usage[] | null {
  // Claude Code logs an empty list.
  if (iterations.length === 0) return [];
  const calls = iterations.map((call) => readUsage(call, new CountReader()) ?? {});
  const sum = sumUsage(calls.map((usage) => ({ model: null, pass: "message", usage })));
  if (!Bun.deepEquals(dropZeros(sum), dropZeros(whole))) return null;
  return calls.length < 2 ? [] : calls;
}

export function readCalls(rawUsage: unknown): readonly Usage[] {
  if (!isObject(rawUsage) || !Array.isArray(rawUsage["iterations"])) return [];
  const [part, other] = readParts(rawUsage, new CountReader());
  return other === undefined ? (part?.calls ?? []) : [];
}

const TOTALS = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"];

function readUsage(counters: Counters, counts: CountReader): Usage | null {
  if (!TOTALS.some((name) => name in counters)) return null;
  const input = counts.readTotal(counters, "input_tokens");
  const output = counts.readTotal(counters, "output_tokens");
  const read = counts.readTotal(counters, "cache_read_input_tokens");
  const written = counts.readTotal(counters, "cache_creation_input_tokens");
  if (!("input_tokens" in counters)) counts.note("total_missing", "input_tokens");
  else if (!("output_tokens" in counters)) counts.note("output_missing", "output_tokens");
  const split = counters["cache_creation"];
  counts.readDetail(split, "ephemeral_5m_input_tokens");
  const named = sumLifetimes(counters);
  const all = written ?? named;
  counts.limitPart(named, all, "cache_creation");
  const long = counts.limitPart(counts.readDetail(split, "ephemeral_1h_input_tokens"), all, "cache_creation");
  const usage: Usage = { input: input ?? 0 };
  if (read) usage.cache_read = read;
  // Without a lifetime, writes last five minutes.
  if (all > long) usage.cache_write_5m = all - long;
  if (long > 0) usage.cache_write_1h = long;
  usage.output = output ?? 0;
  return usage;
}

function addExtras(usage: Usage, counters: Counters, counts: CountReader): Usage {
  const details = "output_tokens_details";
  const thoughts = counts.readDetail(counters[details], "thinking_tokens");
  const reasoning = counts.limitPart(thoughts, getCount(counters["output_tokens"]) ?? 0, details);
  const searches = counts.readDetail(counters["server_tool_use"], "web_search_requests");
  if (reasoning > 0) usage.reasoning = reasoning;
  if (searches > 0) usage.web_search = searches;
  return usage;
}

/** Known members, each with the members inside it, or null for a count. Web fetches and tool searches
 *  are free: https://docs.digitalocean.com/notes/2026/inference-tool-search/ */
const KNOWN: ReadonlyMap<string, ReadonlySet<string> | null> = new Map([
  // Some relays add names of Chat Completions.
  ...[...TOTALS, "prompt_tokens", "completion_tokens", "total_tokens"].map((name) => [name, null] as const),
  ["cache_creation", new Set(["ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"])],
  ["output_tokens_details", new Set(["thinking_tokens"])],
  ["server_tool_use", new Set(["web_search_requests", "web_fetch_requests", "tool_search_requests"])],
]);
/** https://platform.claude.com/docs/en/manage-claude/data-residency
 * A text in brackets is not a place. */
const KNOWN_PLACES = /^(?:us|global|not_available)?$|[^\w-]/;

function noteUnknown(counters: Counters, counts: CountReader): void {
  counts.noteMembers(counters, KNOWN, "_tokens");
  const place = getName(counters["inference_geo"]) ?? "";
  if (!KNOWN_PLACES.test(place)) counts.note("unknown", `inference_geo (${place})`);
}

const TARIFF = {
  service_tier: "service_tier",
  inference_geo: "inference_geo",
  speed: "speed",
};
