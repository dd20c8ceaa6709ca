// Checks the shape of one line, and derives its amounts again.
// The writer does this before it writes a line.
// `verify` does it for each line of a ledger.

import { z } from "zod";
import { isObject } from "../../lib/json/json.ts";
import { parseUsd, subtractUsd } from "../../lib/money.ts";
import { deriveAmounts, deriveAtLeast, deriveMissCost, type Derivable, REPORTED } from "../charge.ts";
import { addCounts } from "../usage.ts";
import type { Correction, Draft, Line, Mark } from "./line.ts";
import { correctionSchema, GENESIS, lineSchema, markSchema } from "./line.ts";

type Fields = Readonly<Record<string, unknown>>;

type Amounts = Pick<Line, Exclude<keyof Line & keyof Correction, "v" | "prev">> &
  Partial<Pick<Line, "basis" | "provider_usd" | "at_least_usd" | "unpriced_usage" | "cache">>;

const MANY = 3000;
let checked = 0;
let schema = lineSchema;
/** TypeScript guarantees these fields of a draft. */
const TEXTS = new Set(
  `v id time key group platform channel endpoint model upstream_model stream outcome basis price_source
  tier paid_by client upstream_request_id converted suspect transport path requested_model estimated
  priced_as unpriced_because tariff recording traceparent prev`.split(/\s+/),
);
const checkedFields = Object.entries(lineSchema.shape).filter(([name]) => !TEXTS.has(name));
let draftSchema = z.looseObject(Object.fromEntries(checkedFields));

/** Takes a while, and makes later checks fast. */
export function compileDraftCheck(): void {
  draftSchema = z.compile(draftSchema);
}

function isLine(value: Fields): value is Line {
  checked += 1;
  if (checked === MANY) schema = z.compile(schema);
  return z.validate(schema, value);
}

/** A draft is a line without a place in the chain. */
export function findDraftFault(draft: Draft): string | null {
  const isRight = "raw_usage" in draft && z.validate(draftSchema, draft);
  return isRight ? findAmountFault(draft) : findFault({ v: 1, ...draft, prev: GENESIS });
}

export function findFault(fields: Fields): string | null {
  if (fields["mark"] !== undefined) return describeIssue(markSchema.safeParse(fields));
  if (fields["corrects"] !== undefined) {
    const checked = correctionSchema.safeParse(fields);
    return checked.success ? findAmountFault(checked.data) : describeIssue(checked);
  }
  return isLine(fields) ? findAmountFault(fields) : describeIssue(lineSchema.safeParse(fields));
}

/** Null: the shape is wrong. */
export function readLine(value: unknown): Line | Correction | Mark | null {
  if (!isObject(value)) return null;
  if (value["mark"] !== undefined) return markSchema.safeParse(value).data ?? null;
  if (value["corrects"] !== undefined) return correctionSchema.safeParse(value).data ?? null;
  return isLine(value) ? value : null;
}

function describeIssue({ error }: z.ZodSafeParseResult<unknown>): string | null {
  const issue = error?.issues[0];
  return issue === undefined ? null : `${issue.path.join(".") || "the line"}: ${issue.message}`;
}

function findAmountFault(line: Amounts): string | null {
  const { basis, official_usd: official } = line;
  const isWithout = basis === "unpriced" || basis === "unknown";
  if (basis !== undefined && (official === null) !== isWithout)
    return `basis is ${basis}, but official_usd is ${String(official)}`;
  const { usage, prices, multiplier, parts, price_source: source, provider_usd: named } = line;
  const reported = source === REPORTED ? named : undefined;
  const derivable: Derivable = { usage, prices, multiplier, parts, reported };
  try {
    return (
      compareAmounts(line, derivable) ??
      findLeastFault(line, derivable) ??
      findLimitFault(line, derivable) ??
      findMissFault(line, derivable)
    );
  } catch (error) {
    return `its amounts cannot be derived: ${String(error)}`;
  }
}

function compareAmounts(line: Amounts, derivable: Derivable): string | null {
  const { official, charge, parts } = deriveAmounts(derivable);
  if (official !== line.official_usd) return differ("official_usd", line.official_usd, official);
  if (charge !== line.charge_usd) return differ("charge_usd", line.charge_usd, charge);
  return line.parts === undefined ? null : findPartFault(line.usage, line.parts, parts);
}

/** Older lines lack these two fields. */
function findLeastFault(line: Amounts, derivable: Derivable): string | null {
  const { at_least_usd: recorded, unpriced_usage: usage } = line;
  if (recorded === undefined && usage === undefined) return null;
  const { atLeast, unpriced } = deriveAtLeast(derivable);
  if (recorded !== atLeast) return differ("at_least_usd", recorded, atLeast);
  return compareCounts("unpriced_usage", usage ?? {}, "usage and prices give", unpriced ?? {});
}

/** Limits count at least the official amount of a request that a plan pays. */
function findLimitFault({ paid_by: payer, limit_usd: limit }: Amounts, derivable: Derivable): string | null {
  if (payer === undefined) return null;
  const { charge: least } = deriveAmounts({ ...derivable, multiplier: "1" });
  if (least === null) return null;
  if (limit === undefined) return "paid_by needs limit_usd, and there is none";
  return subtractUsd(parseUsd(limit), parseUsd(least)) < 0n
    ? `limit_usd is ${limit}, but usage and prices give ${least}`
    : null;
}

function findMissFault({ cache }: Amounts, derivable: Derivable): string | null {
  if (cache === undefined) return null;
  const derived = deriveMissCost(derivable, cache.missed);
  return cache.usd === derived ? null : differ("cache.usd", cache.usd, derived);
}

function differ(name: string, recorded: unknown, derived: string | null): string {
  return `${name} is ${String(recorded)}, but usage, prices and multiplier give ${String(derived)}`;
}

function findPartFault(
  usage: Line["usage"],
  parts: Line["parts"] & {},
  derived: readonly (string | null)[],
): string | null {
  for (const [index, amount] of derived.entries()) {
    const official = parts[index]?.official_usd;
    if (official !== amount) return differ(`part ${index + 1}: official_usd`, official, amount);
  }
  const sum = addCounts(parts.flatMap((part) => Object.entries(part.usage)));
  return compareCounts("usage", usage, "the parts have", sum);
}

function compareCounts(name: string, recorded: Line["usage"], words: string, derived: Line["usage"]) {
  const [own, other] = [new Map(Object.entries(recorded)), new Map(Object.entries(derived))];
  const kinds = [...own.keys(), ...other.keys()];
  const odd = kinds.find((kind) => (own.get(kind) ?? 0) !== (other.get(kind) ?? 0));
  if (odd === undefined) return null;
  return `${name}.${odd} is ${own.get(odd) ?? 0}, but ${words} ${other.get(odd) ?? 0}`;
}
