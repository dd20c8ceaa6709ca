// What each key and group has been charged per day, per month and in total. The
// sums are computed from the ledger's lines and kept in memory, because every
// request with a limit needs them. Days and months are those of the config's time
// zone, by the request's `time`. A checkpoint beside the ledger saves the next start from reading every
// line. If it is lost or damaged, it is computed again from the ledger.

import { z } from "zod";

import { createNamer, UTC, type Zone } from "../../../lib/text/zone.ts";
import type { Usd } from "../../../lib/money.ts";
import { addUsd, formatUsd, parseUsd, subtractUsd, ZERO_USD } from "../../../lib/money.ts";
import { type NotedEnd, positionSchema } from "../noted-end.ts";
import { amountSchema, readCheckpoint, writeCheckpoint } from "./checkpoint.ts";
import { holdLedgerFiles, locate, readChunksFrom } from "../rotation.ts";
import type { ClientIdentity } from "../line.ts";
import { eachLine, type Source } from "../reader.ts";
import { readRow, type Row } from "../row.ts";
import { type SessionSum, sessionSchema, SessionSums } from "./session-sums.ts";

export type Window = "day" | "month" | "total";

export interface Holder {
  readonly kind: "key" | "group" | "session";
  readonly name: string;
}

/** Late lines and corrections change earlier days. Before this, only months and totals are kept. */
const MAX_DAYS = 40;

interface Tally {
  total: Usd;
  readonly months: Map<string, Usd>;
  readonly days: Map<string, Usd>;
}

/** A request's ISO time → the name of its day and of its month. */
interface SpanNames {
  readonly day: (time: string) => string;
  readonly month: (time: string) => string;
}

interface Sum {
  lastUsed: string | null;
  readonly charged: Tally;
  /** What limits count in addition: estimates of requests whose cost is not known. */
  readonly estimated: Tally;
}

/** Whose request it is, and when it came. */
interface RequestOwner {
  readonly time: string;
  readonly key: string;
  readonly group: string;
  readonly model: string;
  readonly client?: ClientIdentity | null | undefined;
}

const amounts = z.record(z.string(), amountSchema);
const tallyFields = { total: amountSchema, months: amounts, days: amounts };
const tallySchema = z.lazy(() => z.object(tallyFields));
const sumSchema = z.lazy(() =>
  z.object({
    ...tallyFields,
    last_used: z.string().nullable(),
    estimated: tallySchema.optional(),
  }),
);
const checkpointSchema = z.lazy(() =>
  z.object({
    /** Whose days and months they are. */
    zone: z.string().default("UTC"),
    from: positionSchema,
    /** Version 0.1 noted neither. */
    synced: positionSchema.nullable().optional(),
    boot: z.string().nullable().optional(),
    key: z.record(z.string(), sumSchema),
    group: z.record(z.string(), sumSchema),
    /** Version 0.1 knew no sessions. */
    sessions: z.array(sessionSchema).optional(),
  }),
);

type StoredSums = z.infer<typeof checkpointSchema>;

interface SavedSums extends StoredSums {
  readonly noted: NotedEnd;
  /** A gateway wrote it that notes the end of the ledger in its journal, too. */
  readonly hasJournal: boolean;
}

export class Sums {
  readonly zone: Zone;
  readonly #sums = { key: new Map<string, Sum>(), group: new Map<string, Sum>() };
  readonly #sessions = new SessionSums();
  readonly #names: SpanNames;

  constructor(zone: Zone = UTC) {
    this.zone = zone;
    this.#names = { day: createNamer("day", zone), month: createNamer("month", zone) };
  }

  /** Adds a line's charge, or the difference that a correction makes, at the request's time. */
  add(request: RequestOwner, amount: Usd): void {
    const key = this.#sumOf("key", request.key);
    if (key.lastUsed === null || request.time > key.lastUsed) key.lastUsed = request.time;
    this.#addAt(key.charged, request.time, amount);
    this.#addAt(this.#sumOf("group", request.group).charged, request.time, amount);
    const session = request.client?.session;
    if (session !== undefined) this.#sessions.add(session, amount);
  }

  /** Counts a request and its tokens. To be called before its amounts are added. */
  addRequest(request: RequestOwner, usage: Readonly<Record<string, number>>): void {
    const session = request.client?.session;
    if (session !== undefined) this.#sessions.addRequest(session, request, usage);
  }

  /** Adds what limits count beyond a line's charge. */
  addEstimate({ key, group, time, client }: RequestOwner, amount: Usd): void {
    this.#addAt(this.#sumOf("key", key).estimated, time, amount);
    this.#addAt(this.#sumOf("group", group).estimated, time, amount);
    if (client?.session !== undefined) this.#sessions.addEstimate(client.session, amount);
  }

  /** Removes the estimate of a request that came at `time`: its real cost is known now. */
  dropEstimate(request: Omit<RequestOwner, "time">, time: string, amount: Usd): void {
    this.addEstimate({ ...request, time }, subtractUsd(ZERO_USD, amount));
  }

  /** What was charged. Of a session, only the total is known. */
  spentOf({ kind, name }: Holder, window: Window, now: number): Usd {
    if (kind === "session") return this.#sessions.get(name)?.charged ?? ZERO_USD;
    const sum = this.#sums[kind].get(name);
    return sum === undefined ? ZERO_USD : this.#readTally(sum.charged, window, now);
  }

  /** The estimates that limits count in addition. */
  estimatedOf({ kind, name }: Holder, window: Window, now: number): Usd {
    if (kind === "session") return this.#sessions.get(name)?.estimated ?? ZERO_USD;
    const sum = this.#sums[kind].get(name);
    return sum === undefined ? ZERO_USD : this.#readTally(sum.estimated, window, now);
  }

  /** Null: no line has this session, or it was used too long ago. */
  sessionOf(id: string): SessionSum | null {
    return this.#sessions.get(id);
  }

  /** The sum of all groups, including those that the config no longer has. */
  spentTogether(window: Window, now: number): Usd {
    const names = [...this.#sums.group.keys()];
    return names.reduce(
      (sum, name) => addUsd(sum, this.spentOf({ kind: "group", name }, window, now)),
      ZERO_USD,
    );
  }

  lastUsed(key: string): string | null {
    return this.#sums.key.get(key)?.lastUsed ?? null;
  }

  /** Loads the checkpoint, if one is given, then the lines after it. False: the line at which it was made is gone. */
  load(files: readonly Source[], checkpointPath: string | null): boolean {
    const checkpoint = checkpointPath === null ? null : readSavedSums(checkpointPath);
    const place = checkpoint === null ? null : locate(files, checkpoint.from);
    // Days of another time zone cannot be divided: all lines are read again.
    const isUsable = checkpoint?.sessions !== undefined && checkpoint.zone === this.zone.name;
    const from = isUsable ? place : null;
    if (checkpoint !== null && from !== null) this.#take(checkpoint);
    for (const bytes of readChunksFrom(files, from ?? undefined))
      eachLine(bytes, (start, end) => this.#addLine(bytes.toString("utf8", start, end)));
    return checkpoint === null || place !== null;
  }

  #take(checkpoint: SavedSums): void {
    this.#sessions.decode(checkpoint.sessions ?? []);
    for (const kind of ["key", "group"] as const) {
      for (const [name, sum] of Object.entries(checkpoint[kind])) this.#sums[kind].set(name, decodeSum(sum));
    }
  }

  /** Lines that are not in the files yet. */
  addLines(lines: readonly string[]): void {
    for (const line of lines) this.#addLine(line);
  }

  #addLine(text: string): void {
    const row = readRow(text);
    if (row !== null) this.#addRow(row);
  }

  /** Writes a checkpoint and returns its size. If that fails, only the next start is slower. */
  save(path: string, { end, synced, boot }: NotedEnd): number {
    return writeCheckpoint(path, {
      zone: this.zone.name,
      from: end,
      synced,
      boot,
      key: encodeSums(this.#sums.key),
      group: encodeSums(this.#sums.group),
      sessions: this.#sessions.encode(),
    });
  }

  #addRow(row: Row): void {
    const { time, key, group, model, client, usage } = row;
    const request: RequestOwner = { time, key, group, model, client };
    const charge = row.charge ?? ZERO_USD;
    const before = row.was?.charge ?? ZERO_USD;
    if (row.was === null) this.addRequest(request, Object.fromEntries(usage));
    this.add(request, subtractUsd(charge, before));
    if (row.limit !== null) this.addEstimate(request, subtractUsd(row.limit, charge));
    if (row.replaced !== null)
      this.dropEstimate(request, row.replaced.time, subtractUsd(row.replaced.limit, before));
  }

  #readTally(tally: Tally, window: Window, now: number): Usd {
    if (window === "total") return tally.total;
    const today = this.#names[window](new Date(now).toISOString());
    return (window === "day" ? tally.days : tally.months).get(today) ?? ZERO_USD;
  }

  #addAt(sum: Tally, time: string, amount: Usd): void {
    sum.total = addUsd(sum.total, amount);
    const month = this.#names.month(time);
    sum.months.set(month, addUsd(sum.months.get(month) ?? ZERO_USD, amount));
    const day = this.#names.day(time);
    const known = sum.days.get(day);
    sum.days.set(day, addUsd(known ?? ZERO_USD, amount));
    if (known === undefined && sum.days.size > MAX_DAYS)
      sum.days.delete([...sum.days.keys()].sort()[0] ?? day);
  }

  #sumOf(kind: "key" | "group", name: string): Sum {
    const known = this.#sums[kind].get(name);
    if (known !== undefined) return known;
    const sum: Sum = { lastUsed: null, charged: openTally(), estimated: openTally() };
    this.#sums[kind].set(name, sum);
    return sum;
  }
}

/** The sums of a ledger that another process may be writing. */
export function readSums(path: string, zone: Zone): Sums {
  const sums = new Sums(zone);
  using held = holdLedgerFiles(path);
  sums.load(held.sources, `${path}.sums`);
  return sums;
}

function openTally(): Tally {
  return { total: ZERO_USD, months: new Map(), days: new Map() };
}

function encodeSums(sums: ReadonlyMap<string, Sum>): Record<string, z.infer<typeof sumSchema>> {
  return Object.fromEntries(
    [...sums].map(([name, sum]) => [
      name,
      {
        ...encodeTally(sum.charged),
        last_used: sum.lastUsed,
        estimated: sum.estimated.days.size === 0 ? undefined : encodeTally(sum.estimated),
      },
    ]),
  );
}

function encodeTally({ total, months, days }: Tally): z.infer<typeof tallySchema> {
  return { total: formatUsd(total), months: encodeAmounts(months), days: encodeAmounts(days) };
}

function encodeAmounts(sums: ReadonlyMap<string, Usd>): Record<string, string> {
  return Object.fromEntries([...sums].map(([name, amount]) => [name, formatUsd(amount)]));
}

function decodeSum(sum: z.infer<typeof sumSchema>): Sum {
  return {
    lastUsed: sum.last_used,
    charged: decodeTally(sum),
    estimated: sum.estimated === undefined ? openTally() : decodeTally(sum.estimated),
  };
}

function decodeTally({ total, months, days }: z.infer<typeof tallySchema>): Tally {
  return { total: parseUsd(total), months: decodeAmounts(months), days: decodeAmounts(days) };
}

function decodeAmounts(sums: Readonly<Record<string, string>>): Map<string, Usd> {
  return new Map(Object.entries(sums).map(([name, amount]) => [name, parseUsd(amount)]));
}

/** Null if there is none, or if it is not what `save` wrote. */
export function readSavedSums(path: string): SavedSums | null {
  const saved = readCheckpoint(path);
  const stored = saved === null ? undefined : checkpointSchema.safeParse(saved).data;
  if (stored === undefined) return null;
  const { from: end, synced = null, boot = null } = stored;
  return { ...stored, noted: { end, synced, boot }, hasJournal: stored.synced !== undefined };
}
