// What a meter has read goes to the ledger and the log. There, pieces of a secret are removed too, as from every text
// of the gateway's own.

import type { Channel } from "../../config/catalog.ts";
import type { Reading } from "../../billing/usage.ts";
import { parseJson } from "../../lib/json/json.ts";
import { isPlainName, redactText } from "./redact.ts";

/** No usage is nested this deeply. */
const MAX_DEPTH = 16;

/** The same object, if nothing in it holds a piece of a secret. */
export function cleanReading(reading: Reading, channel: Channel): Reading {
  const { model, raw, tariff, cacheReason, refusal } = reading;
  if (isClean([model, raw, tariff, cacheReason, refusal], channel, MAX_DEPTH)) return reading;
  return {
    ...reading,
    model: model === null || isPlainName(model, channel) ? model : redactText(model, channel),
    raw: isClean(raw, channel, MAX_DEPTH) ? raw : cleanRaw(raw, channel),
    tariff: isClean(tariff, channel, MAX_DEPTH) ? tariff : {},
    cacheReason: isClean(cacheReason, channel, MAX_DEPTH) ? cacheReason : undefined,
    refusal: isClean(refusal, channel, MAX_DEPTH) ? refusal : { category: null },
  };
}

function isClean(value: unknown, channel: Channel, depth: number): boolean {
  if (typeof value === "string") return isPlainName(value, channel);
  if (typeof value !== "object" || value === null) return true;
  if (depth === 0) return false;
  for (const name in value) {
    const each: unknown = Reflect.get(value, name);
    if (!isPlainName(name, channel) || !isClean(each, channel, depth - 1)) return false;
  }
  return true;
}

/** Null if it is no usage at all. */
function cleanRaw(raw: unknown, channel: Channel): unknown {
  const text = redactText(JSON.stringify(raw), channel);
  const clean = parseJson(text);
  return isClean(clean, channel, MAX_DEPTH) ? (clean ?? null) : null;
}
