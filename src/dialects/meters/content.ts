// The usage of a content answer. The last snapshot counts.

import type { Usage } from "../../billing/usage.ts";
import { getField, isObject, getList, getName, textOf } from "../../lib/json/json.ts";
import { CalledTools } from "../prompt/calls.ts";
import { listNeedles, meterOf, sizeOf, type UsageReader, type UsageReport } from "./meter.ts";
import { CountReader, dropZeros, Reports, readTariff } from "../../billing/counts.ts";

/** More queries are not counted. */
const MAX_QUERIES = 1000;
const MAX_QUERY_LENGTH = 1024;

const NEEDLES = listNeedles(
  '"usageMetadata"',
  '"inlineData"',
  '"functionCall"',
  '"finishReason"',
  '"groundingMetadata"',
  '"promptFeedback"',
  '"error"',
);

export class ContentReader implements UsageReader {
  readonly needles = NEEDLES;
  /** Some models send a finish reason with every chunk. */
  readonly mayGoOn = true;

  #model: string | null = null;
  readonly #reports = new Reports();
  #finished = false;
  #failed = false;
  #mapped = false;
  /** If the answer names no query, the cost of its search is unknown. */
  #foundWeb = false;
  #soughtImages = false;
  /** The model read pages that the request names: they cost only tokens. */
  #hasRead = false;
  /** The answer ended without usage. */
  #awaitsUsage = false;
  /** There was output other than thoughts. */
  #hasSpoken = false;
  readonly #queries = new Set<string>();
  readonly #called = new CalledTools();

  learn(chunk: unknown): void {
    this.#model = getName(getField(chunk, "modelVersion")) ?? this.#model;
    // A snapshot before the end is provisional.
    const hasUsage = this.#reports.add(getField(chunk, "usageMetadata"), { mayShrink: !this.#finished });
    this.#awaitsUsage &&= !hasUsage;
    if (isReason(getField(getField(chunk, "promptFeedback"), "blockReason"))) this.#finished = true;
    if (isObject(getField(chunk, "error"))) this.#failed = true;
    for (const candidate of getList(getField(chunk, "candidates"))) {
      if (isReason(getField(candidate, "finishReason"))) {
        this.#finished = true;
        this.#awaitsUsage = !hasUsage;
      }
      for (const part of getList(getField(getField(candidate, "content"), "parts"))) this.#called.add(part);
      if (getField(candidate, "urlContextMetadata") !== undefined) this.#hasRead = true;
      this.#learnGrounding(getField(candidate, "groundingMetadata"));
    }
  }

  measureText(chunk: unknown): number {
    let bytes = 0;
    for (const candidate of getList(getField(chunk, "candidates")))
      for (const part of getList(getField(getField(candidate, "content"), "parts"))) {
        const size = measurePart(part);
        if (size > 0 && getField(part, "thought") !== true) this.#hasSpoken = true;
        bytes += size;
      }
    return bytes;
  }

  report(): UsageReport {
    const counts = new CountReader();
    const tokens = readUsage(this.#reports.read(counts), counts);
    if (tokens !== null) this.#doubt(tokens, counts);
    const calls = this.#countCalls();
    const counted = tokens !== null || Object.keys(calls).length > 0;
    return {
      model: this.#model,
      parts: counted ? [{ model: null, pass: "message", usage: { ...tokens, ...calls } }] : [],
      faults: counts.faults,
      rawUsage: this.#reports.last,
      tariff: readTariff(this.#reports.last, { service_tier: "serviceTier", traffic_type: "trafficType" }),
      end: this.#failed ? "error" : this.#finished ? "complete" : "open",
      final: this.#finished,
      called: this.#called.list(),
    };
  }

  #doubt({ output = 0 }: Usage, counts: CountReader): void {
    if (this.#awaitsUsage) counts.note("usage_early", "usageMetadata");
    // Google's price list has no price for these searches.
    if (this.#soughtImages) counts.note("unknown", "groundingMetadata.imageSearchQueries");
    if (this.#foundWeb && !this.#hasRead && this.#queries.size === 0)
      counts.note("unknown", "groundingMetadata.groundingChunks");
    // The snapshot counts only thoughts.
    const isMissing = (getField(this.#reports.last, "candidatesTokenCount") ?? null) === null;
    if (this.#hasSpoken && isMissing && output > 0) counts.note("output_missing", "candidatesTokenCount");
  }

  /** Empty queries are free. */
  #learnGrounding(grounding: unknown): void {
    if (!isObject(grounding)) return;
    for (const query of getList(getField(grounding, "webSearchQueries"))) {
      if (typeof query !== "string" || query.trim() === "") continue;
      if (this.#queries.size < MAX_QUERIES) this.#queries.add(query.slice(0, MAX_QUERY_LENGTH));
    }
    if (getList(getField(grounding, "imageSearchQueries")).length > 0) this.#soughtImages = true;
    const chunks = getList(getField(grounding, "groundingChunks"));
    if (chunks.some((piece) => isObject(getField(piece, "maps")))) this.#mapped = true;
    if (chunks.some((piece) => isObject(getField(piece, "web")))) this.#foundWeb = true;
  }

  /** Before Gemini 3, a prompt with searches costs a fee. Since then, each query does. */
  #countCalls(): Usage {
    return {
      ...(this.#queries.size > 0 ? { google_search: this.#queries.size, google_search_prompt: 1 } : {}),
      ...(this.#mapped ? { maps_grounding: 1 } : {}),
    };
  }
}

export const openContentMeter = meterOf(() => new ContentReader());

/** The members of a call that the model wrote. */
const CALLED = ["name", "args", "partialArgs"] as const;

/** A picture's bytes say nothing of tokens. */
function measurePart(part: unknown): number {
  if (!isObject(part)) return 0;
  const { text, executableCode, functionCall: call, inlineData } = part;
  const called = call === undefined ? 0 : CALLED.reduce((sum, name) => sum + sizeOf(getField(call, name)), 0);
  const shown = sizeOf(getField(executableCode, "code")) + sizeOf(getField(inlineData, "mimeType"));
  return sizeOf(text) + called + shown;
}

/** An enum is a number if the client asks for `enum-encoding=int`. */
function isReason(value: unknown): boolean {
  if (typeof value === "number") return value > 0;
  return getName(value) !== undefined && value !== "FINISH_REASON_UNSPECIFIED";
}

/** Each medium has a word and a number. */
const MEDIA = [
  { names: ["AUDIO", 4], fresh: "input_audio", cached: "cache_read_audio", made: "output_audio" },
  { names: ["IMAGE", 2], fresh: "input_image", cached: "cache_read_image", made: "output_image" },
  { names: ["VIDEO", 3], fresh: "input_video", cached: "cache_read_video", made: "output_video" },
] as const;

const TOTALS = ["promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "toolUsePromptTokenCount"];

const DETAILS = [
  "promptTokensDetails",
  "promptTokenDetails",
  "cacheTokensDetails",
  "candidatesTokensDetails",
  "toolUsePromptTokensDetails",
];
const KNOWN = new Map(
  [...TOTALS, "totalTokenCount", "cachedContentTokenCount"].map((name) => [name, null] as const),
);
const KNOWN_MODALITIES: ReadonlySet<unknown> = new Set([
  "TEXT",
  "DOCUMENT",
  1,
  5,
  ...MEDIA.flatMap(({ names }) => names),
]);

function noteUnknown(snapshot: unknown, counts: CountReader): void {
  if (isObject(snapshot)) counts.noteMembers(snapshot, KNOWN, "TokenCount");
  for (const name of DETAILS) {
    const listed = getField(snapshot, name) ?? null;
    if (listed !== null && !Array.isArray(listed)) counts.note("detail_unreadable", name);
    for (const detail of getList(listed)) {
      const modality = getField(detail, "modality");
      if (!KNOWN_MODALITIES.has(modality) && counts.readDetail(detail, "tokenCount") > 0)
        counts.note("unknown", `${name} of ${textOf(modality).slice(0, 60)}`);
    }
  }
}

function readUsage(snapshot: unknown, counts: CountReader): Usage | null {
  if (!TOTALS.some((name) => (getField(snapshot, name) ?? null) !== null)) return null;
  // Google omits zero counts, but every prompt has tokens.
  const totals = TOTALS.map((name) => counts.readTotal(snapshot, name));
  const [prompt, candidates, thoughts, tools] = totals;
  if ((getField(snapshot, "promptTokenCount") ?? null) === null)
    counts.note("total_missing", "promptTokenCount");
  counts.compareTotal(snapshot, "totalTokenCount", totals);
  noteUnknown(snapshot, counts);
  return dropZeros({
    ...readInputs(snapshot, prompt ?? 0, counts),
    tool_prompt: tools ?? 0,
    ...readOutputs(snapshot, { candidates, thoughts: thoughts ?? 0 }, counts),
    reasoning: thoughts ?? 0,
  });
}

function readOutputs(
  snapshot: unknown,
  { candidates, thoughts }: { readonly candidates: number | undefined; readonly thoughts: number },
  counts: CountReader,
): Usage {
  const name = "candidatesTokensDetails";
  const listed = MEDIA.map(({ names, made }) => ({
    made,
    count: countModality(getField(snapshot, name), names, counts),
  }));
  let text = candidates ?? listed.reduce((sum, { count }) => sum + count, 0);
  const usage: Usage = {};
  for (const { made, count } of listed) {
    const part = counts.limitPart(count, text, name);
    usage[made] = part;
    text -= part;
  }
  return { output: text + thoughts, ...usage };
}

/** Tokens are text unless their medium is in MEDIA. */
function readInputs(snapshot: unknown, prompt: number, counts: CountReader): Usage {
  const cachedCount = counts.readDetail(snapshot, "cachedContentTokenCount");
  const cached = counts.limitPart(cachedCount, prompt, "cachedContentTokenCount");
  // The second name is for embeddings.
  const details = getField(snapshot, "promptTokensDetails") ?? getField(snapshot, "promptTokenDetails");
  const cacheDetails = getField(snapshot, "cacheTokensDetails");
  const usage: Usage = {};
  let text = prompt;
  let textCached = cached;
  for (const { names, fresh, cached: cachedKind } of MEDIA) {
    const all = counts.limitPart(countModality(details, names, counts), text, "promptTokensDetails");
    const most = Math.min(all, textCached);
    const hit = counts.limitPart(countModality(cacheDetails, names, counts), most, "cacheTokensDetails");
    usage[fresh] = all - hit;
    usage[cachedKind] = hit;
    text -= all;
    textCached -= hit;
  }
  for (const { fresh, cached: cachedKind } of MEDIA) {
    const moved = Math.min(Math.max(0, textCached - text), usage[fresh] ?? 0);
    usage[fresh] = (usage[fresh] ?? 0) - moved;
    usage[cachedKind] = (usage[cachedKind] ?? 0) + moved;
    textCached -= moved;
  }
  return { input: text - textCached, cache_read: textCached, ...usage };
}

function countModality(details: unknown, names: readonly unknown[], counts: CountReader): number {
  let count = 0;
  for (const detail of getList(details))
    if (names.includes(getField(detail, "modality"))) count += counts.readDetail(detail, "tokenCount");
  return count;
}
