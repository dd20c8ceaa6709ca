// What an account still has, at providers that tell it to an ordinary key, free of charge. They are asked at the host of
// the channel's own address only.

import type { Channel } from "../../config/catalog.ts";
import type { Upstream } from "../../lib/http/upstream.ts";
import { Fields } from "../../lib/http/fields.ts";
import { getField, getList } from "../../lib/json/json.ts";
import { fetchWhole, hurry } from "../upstream/fetch.ts";
import { overrideFields } from "../upstream/headers.ts";
import { addressOf } from "../upstream/origin.ts";

export interface Balance {
  /** Null: without an end. */
  readonly left: string | null;
  readonly currency: string;
  /** By this key since it was made; absent: its provider does not say. */
  readonly used?: string;
}

interface Source {
  readonly path: string;
  /** The amount is checked afterwards. */
  readonly read: (body: unknown) => readonly [left: unknown, currency: unknown, used?: unknown];
}

function moonshot(currency: string): Source {
  const read = (body: unknown) => [getField(getField(body, "data"), "available_balance"), currency] as const;
  return { path: "/v1/users/me/balance", read };
}

/** By host. */
const SOURCES: Readonly<Record<string, Source>> = {
  // api-docs.deepseek.com/api/get-user-balance
  "api.deepseek.com": {
    path: "/user/balance",
    read: (body) => {
      const [first] = getList(getField(body, "balance_infos"));
      return [getField(first, "total_balance"), getField(first, "currency")];
    },
  },
  // platform.moonshot.ai/docs/api/balance
  "api.moonshot.ai": moonshot("USD"),
  "api.moonshot.cn": moonshot("CNY"),
  // openrouter.ai/docs/api-reference/limits: what the key may still spend, null if it has no limit; and what it has spent.
  "openrouter.ai": {
    path: "/api/v1/key",
    read: (body) => {
      const [left, used] = ["limit_remaining", "usage"].map((name) => getField(getField(body, "data"), name));
      return [left, "USD", used];
    },
  },
};

const WAIT_MS = 10_000;
const MAX_BYTES = 64 * 1024;

/** Null: its provider has no such endpoint, or the config says `balance: off`. */
export function findSource({ baseUrl, balance, usesLogin, disabled }: Channel): Source | null {
  const isAsked = balance === "on" && !usesLogin && !disabled;
  const { protocol, port, hostname } = baseUrl;
  const source = Object.hasOwn(SOURCES, hostname) ? SOURCES[hostname] : undefined;
  return isAsked && protocol === "https:" && port === "" ? (source ?? null) : null;
}

/** Null: the answer does not say. Rejects with UpstreamFault. */
export async function askBalance(
  channel: Channel,
  { path, read }: Source,
  client: Upstream,
): Promise<Balance | null> {
  const { origin, deadlines } = addressOf(channel);
  const fields = Fields.of([
    ["accept", "application/json"],
    ["accept-encoding", "identity"],
    ["authorization", `Bearer ${channel.credential}`],
  ]);
  const request = { origin, method: "GET", target: path, body: null, deadlines: hurry(deadlines, WAIT_MS) };
  const own = overrideFields(fields, channel.headers);
  const { response, body, isCut } = await fetchWhole(client, { ...request, fields: own }, MAX_BYTES);
  if (response.status !== 200 || isCut) return null;
  const [left, currency, used] = read(parseTexts(Buffer.from(body).toString()));
  const isKnown = (isAmount(left) || isAmount(used)) && isCurrency(currency);
  return isKnown ? { left: isAmount(left) ? left : null, currency, ...(isAmount(used) && { used }) } : null;
}

/** Numbers as they are written: an amount is never a float. */
function parseTexts(text: string): unknown {
  try {
    return JSON.parse(text, (_, value: unknown, { source }: { readonly source?: string }) =>
      typeof value === "number" ? source : value,
    );
  } catch {
    return undefined;
  }
}

function isAmount(value: unknown): value is string {
  return typeof value === "string" && /^-?\d{1,15}(?:\.\d{1,20})?$/.test(value);
}

function isCurrency(value: unknown): value is string {
  return typeof value === "string" && /^[A-Z]{3}$/.test(value);
}
