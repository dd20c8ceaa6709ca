// Limits in the other direction: a refusal never names more than the ledger has, also after the clock was changed.

import type { Send } from "../clients/send.ts";
import { hasBadDisk } from "../plan/plan.ts";
import type { World } from "../run.ts";

/** A line's fields that limits count. */
export interface Counted {
  readonly id: string;
  readonly time: string;
  readonly request_time?: string;
  readonly key: string;
  readonly charge_usd: string | null;
  readonly limit_usd?: string;
  readonly replaces?: { readonly id: string };
}

const SECOND = 1_000_000;
const NOTHING_USD = 1e-9;

const SPENT =
  /The key \\*"([^"\\]+)\\*" may spend \$[\d.]+ \(usd_(?:per_)?(\w+)\) and has spent \$([\d.]+)(?: and \$([\d.]+) estimated)?/;

export function checkRefused(world: World, lines: readonly Counted[]): void {
  if (mayMissLines(world)) return;
  for (const send of world.sends) {
    const spent = SPENT.exec(send.reply?.body.toString() ?? "");
    if (spent) checkSpent(world, send, lines, spent);
  }
}

/** What counted once may be gone from the ledger, or wait for it. */
export function mayMissLines(world: World): boolean {
  const isCut = world.deaths.some(({ how }) => how === "without power");
  return isCut || hasBadDisk(world.plan) || world.stoodStill;
}

/** When the day or month of a refusal began. What was spent before does not count. */
function findStart({ plan, bends }: World, { at, endedAt }: Send, span: "day" | "month"): number {
  if (bends.some((bend) => bend.at >= at && bend.at <= endedAt)) return Number.NEGATIVE_INFINITY;
  const moved = bends.filter((bend) => bend.at < at).reduce((sum, { byMs }) => sum + byMs, 0);
  return findBegin(plan.wall + at / 1000 + moved, span);
}

/** When the day or month began in UTC, by the wall clock. */
export function findBegin(wall: number, span: "day" | "month"): number {
  return Date.parse(new Date(wall).toISOString().slice(0, span === "day" ? 10 : 7));
}

function checkSpent(world: World, send: Send, all: readonly Counted[], refusal: RegExpExecArray): void {
  const [, key, span, saidSpent, saidEstimated = "0"] = refusal;
  const said = { spent: Number(saidSpent), estimated: Number(saidEstimated) };
  const from = span === "day" || span === "month" ? findStart(world, send, span) : Number.NEGATIVE_INFINITY;
  const lines = all.filter((line) => line.key === key && Date.parse(line.request_time ?? line.time) >= from);
  const spent = lines.reduce((sum, line) => sum + Number(line.charge_usd ?? 0), 0);
  if (said.spent > spent + NOTHING_USD)
    world.accuse(
      "refused",
      `${send.name} was refused because $${said.spent} were spent (${span}), but all lines together have $${spent.toFixed(9)}.`,
    );
  const known = world.written.filter(({ at }) => at < send.at - SECOND).map(({ id }) => id);
  const early = new Set(known);
  const replaced = new Set(
    lines.flatMap(({ id, replaces }) => (replaces && early.has(id) ? [replaces.id] : [])),
  );
  const open = lines.filter(({ id, replaces }) => replaces === undefined && !replaced.has(id));
  const estimated = open.reduce((sum, line) => sum + Number(line.limit_usd ?? 0), 0);
  if (said.estimated > estimated + NOTHING_USD)
    world.accuse(
      "refused",
      `${send.name} was refused because of $${said.estimated} estimated, but lines without known usage have $${estimated.toFixed(9)}.`,
    );
}
