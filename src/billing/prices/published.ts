// The price package's data as entries of a book.
// Each number becomes its shortest decimal, which is what the authors wrote.

import { type core, z } from "zod";
import { getCount, getField } from "../../lib/json/json.ts";
import { USAGE_KINDS } from "../usage.ts";
import type { BookedModel, Period } from "./book.ts";

export const RELEASE_URL = "https://api.github.com/repos/pydantic/genai-prices/releases/latest";

export function placeOfData(tag: string): string {
  const path = tag.split("/").map(encodeURIComponent).join("/");
  return `https://raw.githubusercontent.com/pydantic/genai-prices/${path}/prices/new_data/v2/data.json`;
}

/** If one price is out of range, the whole book is refused:
 *  nobody would notice if only its model were left out. */
const OUT_OF_RANGE = { error: "a price must be 0, or a number from 1e-12 to 1e9" };
const amountSchema = z
  .number(OUT_OF_RANGE)
  .max(1e9, OUT_OF_RANGE)
  .refine((amount) => amount === 0 || amount >= 1e-12, OUT_OF_RANGE);
const tieredSchema = z.preprocess(
  (value) => (typeof value === "object" ? value : { base: value, tiers: [] }),
  z.looseObject({
    base: amountSchema,
    tiers: z
      .array(z.looseObject({ start: z.int().nonnegative(), price: amountSchema }))
      .refine((tiers) => tiers.every(({ start }, index) => start > (tiers[index - 1]?.start ?? -1)), {
        error: "tiers must be in ascending order",
      }),
  }),
);
const timeSchema = z
  .string()
  .regex(/^(?:[01]\d|2[0-3]):[0-5]\d/, "there is no such hour")
  .optional();
const constraintSchema = z
  .looseObject({
    start_date: z
      .string()
      .refine((day) => /^\d{4}-\d\d-\d\d/.test(day) && !Number.isNaN(Date.parse(day)), "there is no such day")
      .optional(),
    start_time: timeSchema,
    end_time: timeSchema,
  })
  .refine(
    ({ start_date: day, start_time: start, end_time: end }) => (day ?? (start && end)) !== undefined,
    "it does not say when the price applies",
  );
const modelSchema = z.looseObject({
  id: z.string().min(1).max(200),
  match: z.unknown(),
  prices: z.preprocess(
    (value) => (Array.isArray(value) ? value : [{ prices: value }]),
    z.array(
      z.looseObject({ constraint: constraintSchema.nullish(), prices: z.record(z.string(), tieredSchema) }),
    ),
  ),
});
export const publishedSchema = z
  .array(
    z.looseObject({
      id: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/),
      fallback_model_providers: z.array(z.string()).nullish(),
      models: z.array(modelSchema),
    }),
  )
  .min(1);

export type PublishedData = z.infer<typeof publishedSchema>;

export function describeFault(document: unknown, [issue]: readonly core.$ZodIssue[]): string {
  if (document === undefined || issue === undefined) return "it is not JSON";
  let value = document;
  const words = issue.path.map((key) => {
    value = Array.isArray(value) ? value[Number(key)] : getField(value, String(key));
    const id = typeof key === "number" ? getField(value, "id") : undefined;
    return typeof id === "string" ? id : String(key);
  });
  return `${words.join(" ") || "the document"}: ${issue.message}`;
}

type Model = z.infer<typeof modelSchema>;

const KINDS: Readonly<Record<string, string>> = {
  cache_audio_read_mtok: "cache_read_audio",
  cache_image_read_mtok: "cache_read_image",
  web_searches_kcount: "web_search_per_1k",
  storage_searches_kcount: "file_search_per_1k",
};

/** Only Anthropic's writes have a lifetime. */
function kindOf(key: string, provider: string): string | undefined {
  if (key === "cache_write_mtok") return provider === "anthropic" ? "cache_write_5m" : "cache_write";
  const kind = USAGE_KINDS.find((each) => each !== "reasoning" && key === `${each}_mtok`);
  return kind ?? KINDS[key];
}

function writeDecimal(value: number): string {
  const [digits = "", exponent] = String(value).split("e-");
  if (exponent === undefined) return digits;
  const [whole = "", fraction = ""] = digits.split(".");
  return `0.${"0".repeat(Number(exponent) - whole.length)}${whole}${fraction}`;
}

function periodOf({ constraint, prices }: Model["prices"][number], provider: string): Period {
  const { start_date: from, start_time: start, end_time: end } = constraint ?? {};
  const kinds = Object.entries(prices).map(([key, price]) => ({ kind: kindOf(key, provider) ?? key, price }));
  const rates = Object.fromEntries(kinds.map(({ kind, price }) => [kind, writeDecimal(price.base)]));
  const starts = new Set(kinds.flatMap(({ price }) => price.tiers.map((tier) => tier.start)));
  const tiers = [...starts]
    .toSorted((a, b) => a - b)
    .map((least) => {
      const own = kinds.map(({ kind, price }) => {
        const tier = price.tiers.findLast((each) => each.start <= least);
        return [kind, writeDecimal(tier?.price ?? price.base)];
      });
      // The package says 271,999, but OpenAI's long context begins above 272,000 tokens.
      return { over: least === 271_999 ? 272_000 : least, rates: Object.fromEntries(own) };
    });
  return {
    from,
    ...(start !== undefined && end !== undefined && { hours: [[start.slice(0, 5), end.slice(0, 5)]] }),
    rates,
    ...(tiers.length > 0 && { tiers }),
  };
}

const REVIEWED = new Set(["anthropic", "openai", "google"]);

/** Each text by which the package finds a model is an id of the model. */
function idsOf(model: Model): string[] {
  const ids = [model.id, ...wordsOf(model.match)].map((id) => id.replace(/[-@]+$/, ""));
  // Fine-tuned models are private, and half a version is not an id.
  return [...new Set(ids)].filter(
    (id) => id !== "" && !/^ft:|\.ft$|^claude-.*-20\d\d$|flash-0$|thinking$/.test(id),
  );
}

function wordsOf(match: unknown): string[] {
  if (typeof match !== "object" || match === null) return [];
  return Object.entries(match).flatMap(([how, what]) => {
    if (how === "or" || how === "and") return Array.isArray(what) ? what.flatMap(wordsOf) : [];
    return typeof what === "string" && how !== "regex" ? [what] : [];
  });
}

export function readProvider({ id: provider, models }: PublishedData[number]): BookedModel[] {
  const isWhole = ({ prices }: Model): boolean =>
    prices.every((each) => Object.keys(each.prices).every((key) => kindOf(key, provider) !== undefined));
  const entries = models.filter(isWhole).map((model): BookedModel => ({
    provider,
    ids: REVIEWED.has(provider) ? idsOf(model) : [...new Set([model.id, ...idsOf(model)])],
    periods: model.prices.map((each) => periodOf(each, provider)),
    context: getCount(model["context_window"]) || undefined,
  }));
  return REVIEWED.has(provider) ? entries : withoutTwins(entries);
}

/** If several models share an id, a model keeps it only as its first id. */
function withoutTwins(entries: readonly BookedModel[]): BookedModel[] {
  const owners = new Map<string, number>();
  for (const { ids } of entries) for (const id of ids) owners.set(id, (owners.get(id) ?? 0) + 1);
  const own = new Set(entries.map(({ ids }) => ids[0]));
  return entries.map((entry) => ({
    ...entry,
    ids: entry.ids.filter((id, index) => owners.get(id) === 1 || (index === 0 && own.has(id))),
  }));
}
