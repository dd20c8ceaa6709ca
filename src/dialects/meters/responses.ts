// The usage of a responses answer, and its tool calls.

import type { CallKind, CallListener, Part, Reading, Usage } from "../../billing/usage.ts";
import { getCount, getField, getList, getName, isObject, textOf } from "../../lib/json/json.ts";
import { CalledTools } from "../prompt/calls.ts";
import { listNeedles, meterOf, sizeOf, type UsageReader, type UsageReport } from "./meter.ts";
import { reportCall } from "../prompt/same-call.ts";
import { CountReader, Reports } from "../../billing/counts.ts";
import { countsServerTools, PAINTING, readOpenaiUsage, readToolUsage } from "./openai.ts";

/** The text members of an item, or of an event about a part. */
const TEXTS = ["text", "refusal", "name", "arguments", "input", "code"] as const;
const ACTIONS = ["action", "actions", "operation"] as const;
const ACTING_CALLS: ReadonlySet<string> = new Set([
  "local_shell_call",
  "shell_call",
  "computer_call",
  "apply_patch_call",
]);
/** More event types are not measured. */
const MAX_TYPES = 64;

/** More calls are not counted. */
const MAX_CALLS = 10_000;
const MAX_ID_LENGTH = 1024;

interface BilledCall {
  readonly kind: CallKind;
  /** The id of the call's container: calls in one container are paid once.
   *  Empty: none. */
  readonly feeKey: string;
}

// These also find repeated text, hidden reasoning and pictures,
// which would count as output if a sample had them.
const NEEDLES = listNeedles('"response"', '.done"', '"error"', 'output_item.added"', 'partial_image"');

export class ResponsesReader implements UsageReader {
  readonly needles = NEEDLES;
  readonly isFollowed: boolean;

  /** Null: nobody listens to calls. */
  readonly #listener: CallListener | null;
  #model: string | null = null;
  #tier: string | undefined;
  readonly #reports = new Reports();
  #end: Reading["end"] = "open";
  #stored: Reading["stored"];
  #cacheReason: Reading["cacheReason"];
  #preview = false;
  /** The model that makes pictures. */
  #painter: string | null = null;
  /** OpenAI's counts of calls of its own tools. */
  #toolUsage: unknown;
  #unknownItem: string | null = null;
  /** Deltas came: later events repeat their text. */
  #sawDeltas = false;
  /** How much text came in each type of event:
   *  several types repeat the same text. */
  readonly #textBytes = new Map<string, number>();
  #mostTextBytes = 0;
  #lacksUsage = false;
  readonly #called = new CalledTools();
  readonly #calls = new Map<string, BilledCall>();
  /** From a call's kind and output index to its key in `#calls`. */
  readonly #positions = new Map<string, string>();

  constructor(listener: CallListener | null = null) {
    this.#listener = listener;
    this.isFollowed = listener !== null;
  }

  learn(event: unknown): void {
    const type = getName(getField(event, "type"));
    const response = getField(event, "response");
    const ended = type === "response.completed" || type === "response.incomplete";
    if (isObject(response)) {
      // Some relays report the usage next to the response.
      const beside = this.#learnUsage(event);
      const inside = this.#learnResponse(response);
      if (ended) this.#lacksUsage = !beside && !inside;
    } else if (getName(getField(event, "object"))?.startsWith("response") === true)
      this.#learnResponse(event);
    else if (isObject(getField(event, "error"))) this.#end = "error";
    if (type === "response.output_item.done")
      this.#learnItem(getField(event, "item"), getField(event, "output_index"));
    else if (ended) this.#end = "complete";
    else if (type === "response.failed" || type === "error") this.#end = "error";
  }

  /** Some relays send no deltas. */
  measureText(event: unknown): number {
    const type = getName(getField(event, "type")) ?? "";
    // The size of sound says nothing of tokens.
    if (type.endsWith("audio.delta")) return 0;
    if (type.endsWith(".delta")) {
      this.#sawDeltas = true;
      return sizeOf(getField(event, "delta"));
    }
    const size = this.#sawDeltas ? 0 : measureWhole(event, type);
    if (size === 0 || (this.#textBytes.size >= MAX_TYPES && !this.#textBytes.has(type))) return 0;
    const sum = size + (this.#textBytes.get(type) ?? 0);
    this.#textBytes.set(type, sum);
    const before = this.#mostTextBytes;
    this.#mostTextBytes = Math.max(before, sum);
    return this.#mostTextBytes - before;
  }

  report(): UsageReport {
    const counts = new CountReader();
    const tokens = readOpenaiUsage(this.#reports.read(counts), "responses", counts);
    if (tokens !== null && this.#lacksUsage) counts.note("usage_early", "usage");
    const parts = this.#listParts(tokens, counts);
    return {
      model: this.#model,
      parts,
      faults: counts.faults,
      rawUsage: this.#reports.last,
      tariff: this.#tier === undefined ? {} : { service_tier: this.#tier },
      end: this.#end,
      final: this.#end === "complete",
      stored: this.#stored,
      called: this.#called.list(),
      cacheReason: this.#cacheReason,
    };
  }

  #listParts(tokens: Usage | null, counts: CountReader): Part[] {
    const isCounted = tokens !== null && countsServerTools(this.#reports.last);
    const search = this.#preview ? "web_search_preview" : "web_search";
    const calls = isCounted ? {} : this.#countCalls(search);
    const tools = readToolUsage(this.#toolUsage, { calls, search }, counts);
    if (!isCounted && this.#unknownItem !== null) counts.note("unknown", this.#unknownItem);
    if (tokens === null && Object.keys(tools.calls).length === 0) return [];
    const part: Part = { model: null, pass: "message", usage: { ...tokens, ...tools.calls } };
    if (tools.pictures === null) return [part];
    return [part, { model: this.#painter ?? PAINTING, pass: PAINTING, usage: tools.pictures }];
  }

  #learnUsage(holder: unknown): boolean {
    return this.#reports.add(getField(holder, "usage"), { isLate: this.#end !== "open" });
  }

  #learnResponse(response: unknown): boolean {
    this.#model = getName(getField(response, "model")) ?? this.#model;
    this.#tier = getName(getField(response, "service_tier")) ?? this.#tier;
    const hasUsage = this.#learnUsage(response);
    const id = getName(getField(response, "id"));
    const status = getField(response, "status");
    if (id !== undefined) this.#listener?.begin(id);
    const goesOn = status === "queued" || status === "in_progress";
    if (id !== undefined) this.#stored = { id, goesOn };
    if (status === "failed") this.#end = "error";
    const reason = readCacheReason(getField(response, "prompt_cache_diagnostics"));
    this.#cacheReason = reason ?? this.#cacheReason;
    this.#toolUsage = getField(response, "tool_usage") ?? this.#toolUsage;
    for (const tool of getList(getField(response, "tools"))) this.#learnTool(tool);
    for (const [index, item] of getList(getField(response, "output")).entries()) this.#learnItem(item, index);
    return hasUsage;
  }

  #learnTool(tool: unknown): void {
    const type = getName(getField(tool, "type"));
    if (type?.startsWith("web_search_preview") === true) this.#preview = true;
    if (type === PAINTING) this.#painter = getName(getField(tool, "model")) ?? this.#painter;
  }

  /** An item may come twice, with two ids. */
  #learnItem(item: unknown, index: unknown): void {
    this.#called.add(item);
    if (this.#listener !== null) reportCall(item, this.#listener);
    if (isUnknownCall(item)) this.#unknownItem ??= shorten(getField(item, "type"));
    const call = readBilledCall(item);
    if (call === null || this.#calls.size >= MAX_CALLS || this.#positions.size >= MAX_CALLS) return;
    const id = shorten(getField(item, "id")) || textOf(index);
    const position = typeof index === "number" ? `${call.kind} ${index}` : id;
    const key = this.#calls.has(id) ? id : (this.#positions.get(position) ?? id);
    this.#positions.set(position, key);
    this.#calls.set(key, call);
  }

  #countCalls(search: CallKind): Usage {
    const counts: Usage = {};
    const fees = new Set<string>();
    for (const [key, { kind, feeKey }] of this.#calls) {
      const fee = `${kind} ${feeKey === "" ? key : feeKey}`;
      if (fees.has(fee)) continue;
      fees.add(fee);
      const named = kind === "web_search" ? search : kind;
      counts[named] = (counts[named] ?? 0) + 1;
    }
    return counts;
  }
}

export const openResponsesMeter = meterOf((calls) => new ResponsesReader(calls));

function measureWhole(event: unknown, type: string): number {
  const item = getField(event, "item");
  if (item !== undefined) return measureItem(item);
  if (type.endsWith(".done")) return measureItem(event) + measureItem({ content: [getField(event, "part")] });
  const output = getList(getField(getField(event, "response") ?? event, "output"));
  return output.reduce<number>((sum, each) => sum + measureItem(each), 0);
}

function measureItem(item: unknown): number {
  const parts = [...getList(getField(item, "content")), ...getList(getField(item, "summary"))];
  const texts = parts.flatMap((part) => [getField(part, "text"), getField(part, "refusal")]);
  texts.push(getName(getField(item, "content")), ...TEXTS.map((name) => getField(item, name)));
  // The model writes these actions, too, but not the results of searches.
  if (ACTING_CALLS.has(getName(getField(item, "type")) ?? ""))
    texts.push(...ACTIONS.map((name) => getField(item, name)));
  return texts.reduce<number>((sum, text) => sum + sizeOf(text), 0);
}

/** https://developers.openai.com/api/docs/guides/prompt-caching/diagnostics */
function readCacheReason(reported: unknown): Reading["cacheReason"] {
  const because = getName(getField(reported, "reason"));
  if (because === undefined || getField(reported, "type") !== "cache_miss") return undefined;
  return { because, missed: getCount(getField(reported, "cache_missed_tokens")) ?? null };
}

/** Calls that upstreams run, perhaps for a fee. */
const FEES: ReadonlyMap<unknown, CallKind> = new Map([
  ["web_search_call", "web_search"],
  ["x_search_call", "x_search"],
  ["file_search_call", "file_search"],
  ["image_generation_call", "image_generation"],
  ["code_interpreter_call", "code_interpreter"],
  ["shell_call", "hosted_shell"],
]);
const KNOWN_CALLS: ReadonlySet<unknown> = new Set([
  ...FEES.keys(),
  ...ACTING_CALLS,
  "function_call",
  "custom_tool_call",
  "tool_search_call",
  "mcp_call",
]);

/** An unknown call may have a fee. */
function isUnknownCall(item: unknown): boolean {
  const type = getName(getField(item, "type")) ?? "";
  return type.endsWith("_call") && !KNOWN_CALLS.has(type) && getField(item, "call_id") === undefined;
}

function shorten(id: unknown): string {
  return getName(id)?.slice(0, MAX_ID_LENGTH) ?? "";
}

/** Opening a page, searching in it and a client's shell are free. */
function readBilledCall(item: unknown): BilledCall | null {
  const kind = FEES.get(getField(item, "type"));
  if (kind === undefined) return null;
  const action = getName(getField(getField(item, "action"), "type")) ?? "search";
  if (kind === "web_search" && action !== "search") return null;
  const environment = getField(item, "environment");
  const isHosted = getField(environment, "type") === "container_reference";
  if (kind === "hosted_shell" && !isHosted) return null;
  const container = getField(kind === "hosted_shell" ? environment : item, "container_id");
  return { kind, feeKey: shorten(container) };
}
