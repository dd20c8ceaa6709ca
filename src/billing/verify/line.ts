// Whether one line of the ledger is right in itself: its shape, and its amounts,
// derived again from its own usage and prices. verify.ts checks its place in the chain.

import type { z } from "zod";

import { isObject } from "../../lib/json/json.ts";
import { parseUsd, subtractUsd } from "../../lib/money.ts";
import { deriveAmounts, deriveAtLeast, deriveMissCost, type Derivable, REPORTED } from "../charge.ts";
import {
  BASES,
  cacheSchema,
  clientSchema,
  correctionSchema,
  lineSchema,
  OUTCOMES,
  PAYERS,
} from "../ledger/line.ts";

import { markSchema } from "../ledger/start/mark.ts";

type ParsedLine = Readonly<Record<string, unknown>>;

const KNOWN_OUTCOMES: ReadonlySet<unknown> = new Set(OUTCOMES);
const KNOWN_BASES: ReadonlySet<unknown> = new Set(BASES);
const KNOWN_PAYERS: ReadonlySet<unknown> = new Set(PAYERS);
const CLIENT_PARTS: ReadonlySet<string> = new Set(Object.keys(clientSchema.unwrap().shape));
const WITHOUT_AMOUNT: ReadonlySet<unknown> = new Set(["unpriced", "unknown"]);

/** What is wrong with a line; null if nothing is. */
export function findFault(line: ParsedLine): string | null {
  if (line["mark"] !== undefined) return findIssue(markSchema, line);
  const isCorrection = line["corrects"] !== undefined;
  const fault = findShapeFault(line, isCorrection);
  if (fault !== null) return fault;
  if (!isCorrection && (line["official_usd"] === null) !== WITHOUT_AMOUNT.has(line["basis"])) {
    return `basis is ${String(line["basis"])}, but official_usd is ${String(line["official_usd"])}`;
  }
  return findAmountFault(line);
}

/** The schema is precise but slow: it checks only lines in which a quick look finds something odd. */
function findShapeFault(line: ParsedLine, isCorrection: boolean): string | null {
  if (isCorrection) return findIssue(correctionSchema, line);
  return looksRight(line) ? null : findIssue(lineSchema, line);
}

function findIssue(schema: z.ZodType, line: ParsedLine): string | null {
  const issue = schema.safeParse(line).error?.issues[0];
  return issue === undefined ? null : `${issue.path.join(".") || "the line"}: ${issue.message}`;
}

const TEXTS = ["id", "time", "key", "group", "platform", "channel", "model", "endpoint", "prev"];

function looksRight(line: ParsedLine): boolean {
  return (
    line["v"] === 1 &&
    TEXTS.every((name) => typeof line[name] === "string") &&
    KNOWN_OUTCOMES.has(line["outcome"]) &&
    KNOWN_BASES.has(line["basis"]) &&
    typeof line["stream"] === "boolean" &&
    (line["limit_usd"] === undefined || isPaid(line)) &&
    (line["provider_usd"] === undefined || typeof line["provider_usd"] === "string") &&
    line["replaces"] === undefined &&
    hasRightClient(line) &&
    Array.isArray(line["attempts"])
  );
}

function isPaid({ paid_by: payer, limit_usd: limit }: ParsedLine): boolean {
  return KNOWN_PAYERS.has(payer) && typeof limit === "string";
}

function hasRightClient({ client, upstream_request_id: id }: ParsedLine): boolean {
  if (id !== undefined && typeof id !== "string") return false;
  if (client === undefined) return true;
  if (!isObject(client)) return false;
  for (const part in client) {
    const isRight = part === "inferred" ? client[part] === true : typeof client[part] === "string";
    if (!isRight || !CLIENT_PARTS.has(part)) return false;
  }
  return true;
}

function findAmountFault(line: ParsedLine): string | null {
  const derivable = readDerivable(line);
  if (derivable === null) return "usage, prices, multiplier or parts are not what they should be";
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

function compareAmounts(line: ParsedLine, derivable: Derivable): string | null {
  const { official, charge, parts } = deriveAmounts(derivable);
  if (official !== line["official_usd"]) return differ("official_usd", line["official_usd"], official);
  if (charge !== line["charge_usd"]) return differ("charge_usd", line["charge_usd"], charge);
  return line["parts"] === undefined ? null : findPartFault(line["usage"], line["parts"], parts);
}

/** Checks what an unpriced line says about the usage with a price and without one. Older lines say nothing. */
function findLeastFault(line: ParsedLine, derivable: Derivable): string | null {
  const { at_least_usd: recorded, unpriced_usage: usage } = line;
  if (recorded === undefined && usage === undefined) return null;
  const { atLeast, unpriced } = deriveAtLeast(derivable);
  if (recorded !== atLeast) return differ("at_least_usd", recorded, atLeast);
  const [counted, derived] = [sumCounts([usage]), sumCounts([unpriced])];
  const odd = [...counted.keys(), ...derived.keys()].find((kind) => counted.get(kind) !== derived.get(kind));
  return odd === undefined
    ? null
    : `unpriced_usage.${odd} is ${counted.get(odd) ?? 0}, but usage and prices give ${derived.get(odd) ?? 0}`;
}

/** Limits count at least the official amount of what a plan pays for. */
function findLimitFault(
  { paid_by: payer, limit_usd: limit }: ParsedLine,
  derivable: Derivable,
): string | null {
  if (payer === undefined) return null;
  const { charge: least } = deriveAmounts({ ...derivable, multiplier: "1" });
  if (least === null) return null;
  if (typeof limit !== "string") return "paid_by needs limit_usd, and there is none";
  return subtractUsd(parseUsd(limit), parseUsd(least)) < 0n
    ? `limit_usd is ${limit}, but usage and prices give ${least}`
    : null;
}

/** Checks what a line says about the cost of what its request missed in the cache. */
function findMissFault({ cache }: ParsedLine, derivable: Derivable): string | null {
  if (cache === undefined) return null;
  const parsed = cacheSchema.safeParse(cache);
  if (!parsed.success) return `cache: ${parsed.error.issues[0]?.message ?? "is not what it should be"}`;
  const { missed, usd } = parsed.data;
  const derived = deriveMissCost(derivable, missed);
  return usd === derived ? null : differ("cache.usd", usd, derived);
}

function differ(name: string, recorded: unknown, derived: string | null): string {
  return `${name} is ${String(recorded)}, but usage, prices and multiplier give ${String(derived)}`;
}

function findPartFault(usage: unknown, value: unknown, derived: readonly (string | null)[]): string | null {
  const parts = (Array.isArray(value) ? value : []).filter(isObject);
  for (const [index, amount] of derived.entries()) {
    const official = parts[index]?.["official_usd"];
    if (official !== amount) return differ(`part ${index + 1}: official_usd`, official, amount);
  }
  const sums = sumCounts(parts.map((part) => part["usage"]));
  const all = sumCounts([usage]);
  const odd = [...all.keys(), ...sums.keys()].find((kind) => (sums.get(kind) ?? 0) !== (all.get(kind) ?? 0));
  return odd === undefined
    ? null
    : `usage.${odd} is ${all.get(odd) ?? 0}, but the parts have ${sums.get(odd) ?? 0}`;
}

function sumCounts(usages: readonly unknown[]): Map<string, number> {
  const sums = new Map<string, number>();
  for (const usage of usages.filter(isUsage)) {
    for (const [kind, count] of Object.entries(usage)) sums.set(kind, (sums.get(kind) ?? 0) + count);
  }
  return sums;
}

function readDerivable(line: ParsedLine): Derivable | null {
  const { usage, prices, multiplier, parts, price_source: source, provider_usd: named } = line;
  if (!isUsage(usage) || !isRates(prices) || typeof multiplier !== "string") return null;
  const reported = source === REPORTED && typeof named === "string" ? named : undefined;
  if (parts === undefined) return { usage, prices, multiplier, reported };
  const read = (Array.isArray(parts) ? parts : []).map((part) => {
    const [own, rates] = isObject(part) ? [part["usage"], part["prices"]] : [];
    return isUsage(own) && isRates(rates) ? { usage: own, prices: rates } : null;
  });
  const known = read.filter((part) => part !== null);
  return known.length === 0 || known.length < read.length
    ? null
    : { usage, prices, multiplier, parts: known, reported };
}

function isUsage(value: unknown): value is Readonly<Record<string, number>> {
  if (!isObject(value)) return false;
  for (const kind in value) {
    const count = value[kind];
    if (typeof count !== "number" || !Number.isSafeInteger(count) || count < 0) return false;
  }
  return true;
}

function isRates(value: unknown): value is Readonly<Record<string, string>> | null {
  if (value === null) return true;
  if (!isObject(value)) return false;
  for (const kind in value) if (typeof value[kind] !== "string") return false;
  return true;
}
