// The sums of the console's overview, in cells: the hours of today and yesterday, and the days before them. Each has sums
// by every name that the page divides them by. There are at most about eighty cells with a bounded number of names.

import { z } from "zod";

import {
  addUsd,
  formatDecimal,
  formatUsd,
  parseDecimal,
  parseUsd,
  subtractUsd,
  type Usd,
  ZERO_USD,
} from "../../lib/money.ts";
import { createNamer, nameSpan, startOfSpan, type Zone } from "../../lib/text/zone.ts";
import { amountSchema } from "../ledger/sums/checkpoint.ts";
import type { Row } from "../ledger/row.ts";
import { addRow, addTotals, openTotals, type Totals } from "./report.ts";

const CELL_DAYS = 30;
const DAY_MS = 86_400_000;
/** `2026-11-20` */
const DAY_CHARACTERS = 10;

const CELL_NAMES = ["model", "tool", "key", "group", "channel", "label"] as const;
export type CellName = (typeof CELL_NAMES)[number];

/** Clients choose labels. Beyond this number of names, a cell counts all further ones together. */
const MAX_NAMES = 300;
export const OTHERS = "others";

/** What one name of a cell stands for. */
export interface Share {
  charge: Usd;
  requests: number;
}

/** The requests of one local hour or day. */
export interface Cell {
  /** `2026-11-20 14:00` or `2026-11-20`. */
  readonly name: string;
  readonly totals: Totals;
  readonly by: Readonly<Record<CellName, Map<string, Share>>>;
  /** Model → its requests without a price. */
  readonly unpriced: Map<string, number>;
}

const count = z.int();
const counts = z.array(z.tuple([z.string(), count]));
const shares = z.array(z.tuple([z.string(), amountSchema, count]));
const cellSchema = z.lazy(() =>
  z.object({
    name: z.string().regex(/^\d{4}-\d\d-\d\d(?: \d\d:00)?$/),
    requests: count,
    official: amountSchema,
    charge: amountSchema,
    usage: counts,
    bases: counts,
    by: z.object({ model: shares, tool: shares, key: shares, group: shares, channel: shares, label: shares }),
    unpriced: counts,
  }),
);
export const cellsSchema = z.lazy(() =>
  z.object({
    zone: z.string(),
    since: z.string(),
    unreadable: count,
    cells: z.array(cellSchema),
  }),
);
export type SavedCells = z.infer<typeof cellsSchema>;
type SavedCell = z.infer<typeof cellSchema>;

export class Cells {
  readonly #zone: Zone;
  readonly #nameHour: (time: string) => string;
  readonly #cells = new Map<string, Cell>();
  #since: string;
  /** From this day on, hours have cells of their own. */
  #hoursFrom: string;
  unreadable = 0;

  constructor(zone: Zone, now: number) {
    this.#zone = zone;
    this.#nameHour = createNamer("hour", zone);
    this.#since = nameDay(zone, now, CELL_DAYS - 1);
    this.#hoursFrom = nameDay(zone, now, 1);
  }

  /** Null: they are of another time zone, or do not go back far enough. */
  static decode(saved: SavedCells, zone: Zone, now: number): Cells | null {
    const cells = new Cells(zone, now);
    if (saved.zone !== zone.name || saved.since > cells.#since) return null;
    cells.unreadable = saved.unreadable;
    for (const each of saved.cells) {
      const cell = decodeCell(each);
      cells.#cells.set(cell.name, cell);
    }
    cells.fold(now);
    return cells;
  }

  encode(): SavedCells {
    return {
      zone: this.#zone.name,
      since: this.#since,
      unreadable: this.unreadable,
      cells: [...this.#cells.values()].map(encodeCell),
    };
  }

  /** The day from which on they are complete when everything is read. */
  get since(): string {
    return this.#since;
  }

  add(row: Row): void {
    const hour = this.#nameHour(row.time);
    const cell = this.#cellOf(hour < this.#hoursFrom ? hour.slice(0, DAY_CHARACTERS) : hour);
    addRow(cell.totals, row);
    addShares(cell, row);
  }

  /** From a local day on, in no order. */
  *from(day: string): Generator<Cell, void> {
    for (const cell of this.#cells.values()) if (cell.name >= day) yield cell;
  }

  /** Adds the hours before yesterday to their days, and forgets what is older than thirty days. */
  fold(now: number): void {
    this.#since = nameDay(this.#zone, now, CELL_DAYS - 1);
    this.#hoursFrom = nameDay(this.#zone, now, 1);
    for (const cell of this.#cells.values()) {
      const isHour = cell.name.length > DAY_CHARACTERS;
      if (cell.name >= this.#since && !(isHour && cell.name < this.#hoursFrom)) continue;
      this.#cells.delete(cell.name);
      if (cell.name >= this.#since) mergeCell(this.#cellOf(cell.name.slice(0, DAY_CHARACTERS)), cell);
    }
  }

  #cellOf(name: string): Cell {
    const known = this.#cells.get(name);
    if (known !== undefined) return known;
    const cell = openCell(name);
    this.#cells.set(name, cell);
    return cell;
  }
}

/** The local day `ago` days before today. */
function nameDay(zone: Zone, now: number, ago: number): string {
  return nameSpan("day", startOfSpan("day", zone.toLocal(now)) - ago * DAY_MS);
}

function openCell(name: string): Cell {
  const open = (): Map<string, Share> => new Map();
  return {
    name,
    totals: openTotals(),
    by: { model: open(), tool: open(), key: open(), group: open(), channel: open(), label: open() },
    unpriced: new Map(),
  };
}

function addShares(cell: Cell, row: Row): void {
  const more = {
    charge: subtractUsd(row.charge ?? ZERO_USD, row.was?.charge ?? ZERO_USD),
    // A correction is not a request.
    requests: row.was === null ? 1 : 0,
  };
  const { tool = "", label = "" } = row.client ?? {};
  const { by } = cell;
  addShare(by.model, row.model, more);
  addShare(by.tool, tool, more);
  addShare(by.key, row.key, more);
  addShare(by.group, row.group, more);
  addShare(by.channel, row.channel, more);
  addShare(by.label, label, more);
  const pending = countUnpriced(row);
  if (pending !== 0) addCount(cell.unpriced, row.model, pending);
}

function mergeCell(cell: Cell, more: Cell): void {
  addTotals(cell.totals, more.totals);
  for (const dimension of CELL_NAMES)
    for (const [name, share] of more.by[dimension]) addShare(cell.by[dimension], name, share);
  for (const [model, requests] of more.unpriced) addCount(cell.unpriced, model, requests);
}

function addShare(all: Map<string, Share>, name: string, { charge, requests }: Readonly<Share>): void {
  const place = findPlace(all, name);
  const known = all.get(place);
  if (known === undefined) {
    all.set(place, { charge, requests });
    return;
  }
  known.charge = addUsd(known.charge, charge);
  known.requests += requests;
}

function addCount(all: Map<string, number>, name: string, more: number): void {
  const place = findPlace(all, name);
  all.set(place, (all.get(place) ?? 0) + more);
}

function findPlace(all: ReadonlyMap<string, unknown>, name: string): string {
  return all.size < MAX_NAMES || all.has(name) ? name : OTHERS;
}

/** -1: a correction has found the price. */
function countUnpriced({ was, official, basis }: Row): number {
  if (was === null) return basis === "unpriced" ? 1 : 0;
  return was.official === null && official !== null ? -1 : 0;
}

function encodeCell({ name, totals, by, unpriced }: Cell): SavedCell {
  return {
    name,
    requests: totals.requests,
    official: formatDecimal(totals.official),
    charge: formatUsd(totals.charge),
    usage: [...totals.usage],
    bases: [...totals.bases],
    by: {
      model: encodeShares(by.model),
      tool: encodeShares(by.tool),
      key: encodeShares(by.key),
      group: encodeShares(by.group),
      channel: encodeShares(by.channel),
      label: encodeShares(by.label),
    },
    unpriced: [...unpriced],
  };
}

function encodeShares(all: ReadonlyMap<string, Share>): SavedCell["by"]["model"] {
  return Array.from(all, ([name, { charge, requests }]) => [name, formatUsd(charge), requests]);
}

function decodeCell({ name, requests, official, charge, usage, bases, by, unpriced }: SavedCell): Cell {
  return {
    name,
    totals: {
      requests,
      official: parseDecimal(official),
      charge: parseUsd(charge),
      usage: new Map(usage),
      bases: new Map(bases),
    },
    by: {
      model: decodeShares(by.model),
      tool: decodeShares(by.tool),
      key: decodeShares(by.key),
      group: decodeShares(by.group),
      channel: decodeShares(by.channel),
      label: decodeShares(by.label),
    },
    unpriced: new Map(unpriced),
  };
}

function decodeShares(all: SavedCell["by"]["model"]): Map<string, Share> {
  return new Map(all.map(([name, charge, requests]) => [name, { charge: parseUsd(charge), requests }]));
}
