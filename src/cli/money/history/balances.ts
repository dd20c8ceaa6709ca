// What accounts had at the last comparison and have now, beside what the ledger has for the time between. The readings are
// in a file beside the ledger. Only providers that tell an ordinary key their balance are asked, at their own address.

import { z } from "zod";
import {
  type Compared,
  conclude,
  isNear,
  type Reconciliation,
  sumUsd,
} from "../../../billing/history/reconcile.ts";
import type { OurLine } from "../../../billing/history/our-lines.ts";
import type { Channel } from "../../../config/catalog.ts";
import { askBalance, findSource } from "../../../gateway/channels/balance.ts";
import { redactText } from "../../../gateway/upstream/redact.ts";
import { getErrorMessage } from "../../../lib/errors.ts";
import { readOwn, replaceFile } from "../../../lib/files/own-file.ts";
import { createClient } from "../../../lib/http1/client/client.ts";
import { parseJson } from "../../../lib/json/json.ts";
import { type Decimal, parseNumber, subtractDecimals, ZERO_DECIMAL } from "../../../lib/money.ts";

const readingsSchema = z.lazy(() =>
  z.record(
    z.string(),
    z.object({
      at: z.iso.datetime(),
      left: z.string().nullable(),
      currency: z.string(),
      used: z.string().optional(),
    }),
  ),
);
type Readings = z.infer<typeof readingsSchema>;

interface BalanceQuery {
  /** Of the ledger. */
  readonly path: string;
  readonly channels: Iterable<Channel>;
  readonly readLines: (since: number) => Iterable<OurLine>;
}

export async function reconcileBalances({
  path,
  channels,
  readLines,
}: BalanceQuery): Promise<Reconciliation> {
  const file = `${path}.balances.json`;
  const { data: before = {} } = readingsSchema.safeParse(parseJson(readOwn(file) ?? ""));
  const notes: string[] = [];
  const now = await readBalances(channels, notes);
  replaceFile(file, JSON.stringify({ ...before, ...now }), { mode: 0o600 });
  const accounts = new Map<string, Account>();
  for (const [channel, reading] of Object.entries(now)) {
    const last = before[channel];
    const spent = measureSpent(last, reading);
    if (typeof spent === "string") notes.push(`${channel} ${spent}`);
    else if (last !== undefined)
      accounts.set(channel, { since: Date.parse(last.at), spent, usd: ZERO_DECIMAL });
  }
  if (accounts.size > 0) addLines(accounts, readLines);
  return conclude([...accounts].map(compareAccount), notes);
}

/** What is gone from the account of a channel, and what the ledger has for it. */
interface Account {
  readonly since: number;
  readonly spent: Decimal;
  usd: Decimal;
}

/** The ledger is read once for all. */
function addLines(accounts: ReadonlyMap<string, Account>, readLines: BalanceQuery["readLines"]): void {
  const first = Math.min(...[...accounts.values()].map(({ since }) => since));
  for (const { channel, time, official } of readLines(first)) {
    const account = accounts.get(channel);
    if (account !== undefined && time >= account.since)
      account.usd = sumUsd([account.usd, official]) ?? account.usd;
  }
}

function compareAccount([channel, { since, spent, usd }]: readonly [string, Account]): Compared {
  // A provider rounds what is left.
  const agrees = isNear(spent, usd, { units: 1n, scale: Math.max(2, spent.scale) });
  const sides = { ours: { usage: {}, usd }, theirs: { usage: {}, usd: spent } };
  return { time: since, id: channel, model: "all models", ...sides, because: null, agrees };
}

async function readBalances(channels: Iterable<Channel>, notes: string[]): Promise<Readings> {
  const client = createClient();
  const readings: Readings = {};
  try {
    for (const channel of channels) {
      const source = findSource(channel);
      if (source === null) continue;
      const asked = askBalance(channel, source, client).catch(
        (error: unknown) =>
          void notes.push(`${channel.name}: ${redactText(getErrorMessage(error), channel)}`),
      );
      const balance = await asked;
      if (balance === null) notes.push(`${channel.name} does not say what is left`);
      else if (balance !== undefined) readings[channel.name] = { at: new Date().toISOString(), ...balance };
    }
  } finally {
    client.close();
  }
  return readings;
}

/** Text: why it cannot be compared. */
function measureSpent(before: Readings[string] | undefined, now: Readings[string]): Decimal | string {
  const [had, left, used, more] = [before?.left, now.left, before?.used, now.used].map((text) =>
    parseNumber(text ?? ""),
  );
  // What a key has spent does not change when something is paid in.
  const [from, to] = used && more ? [more, used] : [had, left];
  if (before === undefined || !from || !to)
    return `${now.left === null ? `has used ${now.used}` : `has ${now.left}`} ${now.currency}: the next comparison begins here`;
  if (now.currency !== "USD") return `counts in ${now.currency}, which is not compared`;
  const spent = subtractDecimals(from, to);
  return spent.units < 0n ? `has more than at ${before.at}: something was paid in` : spent;
}
