// Nobody is refused without a reason: limits in the other direction. What a refusal says is compared with what clients have
// sent at most, and with what the ledger has, also after the clock was changed.

import type { Send } from "../clients/send.ts";
import { listMarks } from "../upstreams/answers.ts";
import { hasBadDisk, platformOf, sessionOf } from "../plan/plan.ts";
import type { World } from "../run.ts";

/** A line's fields that limits count. */
export interface Counted {
  readonly id: string;
  readonly time: string;
  readonly request_time?: string;
  readonly key: string;
  readonly group: string;
  readonly charge_usd: string | null;
  readonly limit_usd?: string;
  readonly replaces?: { readonly id: string };
}

const SECOND = 1_000_000;
const MINUTE_US = 61 * SECOND;
/** If the process stood still. And what a gateway that starts reads in the ledger is as much younger as the clock was set back. */
const BENT_MINUTE_US = 130 * SECOND;
/** A request may be in flight, and its line be written, this long after its client has left. */
const MAY_RUN_ON_US = 30 * SECOND;
const NOTHING_USD = 1e-9;

const REFUSAL =
  /The (key|group|session) \\*"([^"\\]+)\\*" may (?:make|have) (\d+) requests? (a minute|at once)/;
const SPENT =
  /The (key|group) \\*"([^"\\]+)\\*" may spend \$[\d.]+ \(usd_(?:per_)?(\w+)\) and has spent \$([\d.]+)(?: and \$([\d.]+) estimated)?/;

export function checkRefused(world: World, lines: readonly Counted[]): void {
  const isWhole = !mayMissLines(world);
  for (const send of world.sends) {
    const text = textOf(send);
    checkTried(world, send, text);
    if (text.includes("does not know this key") && send.request.bad !== "unknown key")
      world.accuse("refused", `The gateway does not know the key of ${send.name}, which every config has.`);
    const refusal = REFUSAL.exec(text);
    if (refusal) checkCount(world, send, refusal);
    const spent = isWhole ? SPENT.exec(text) : null;
    if (spent) checkSpent(world, send, lines, spent);
  }
}

function textOf({ reply, events }: Send): string {
  return reply?.body.toString() ?? events?.join("\n") ?? "";
}

/** During a cooldown, one request at a time tries the channel. When it has ended, or its client has left, another one may. */
function checkTried(world: World, send: Send, text: string): void {
  const { plan, boots, bySend } = world;
  const isRepeated = (send.reply?.status ?? 0) >= 400 && listMarks(text).length > 0;
  if (bySend.has(send.name) || !(isRepeated || text.includes("No channel of the group"))) return;
  if (world.timeWasBent || boots.length > 1 || plan.happenings.some(({ kind }) => OFF.has(kind))) return;
  const platform = platformOf(send.client.dialect);
  const others = world.sends.filter(({ client }) => platformOf(client.dialect) === platform);
  const since = send.at - plan.drainMs * 1000 - SECOND / 2;
  if (others.some((other) => other !== send && other.at <= send.endedAt && other.endedAt >= since)) return;
  world.accuse(
    "refused",
    `Nobody tried a channel of ${platform}, but ${send.name} was not let through: ${text.slice(0, 200)}`,
  );
}

const OFF = new Set(["channel off", "standstill"]);

/** What counted once may be gone from the ledger, or wait for it. */
export function mayMissLines(world: World): boolean {
  const isCut = world.deaths.some(({ how }) => how === "without power");
  return isCut || hasBadDisk(world.plan) || world.stoodStill;
}

function checkCount(world: World, send: Send, refusal: RegExpExecArray): void {
  const [, kind = "", name = "", limit = "", per = ""] = refusal;
  const isRate = per === "a minute";
  const setBack = isRate ? findSetBack(world, send.at) : null;
  const back = world.bends.reduce((sum, { byMs }) => sum + Math.max(0, -byMs) * 1000, 0);
  const before = !isRate ? MAY_RUN_ON_US : world.timeWasBent ? BENT_MINUTE_US + back : MINUTE_US;
  const others = world.sends.filter(
    (other) =>
      other !== send &&
      isOf(other, kind, name, send) &&
      other.at <= send.endedAt &&
      (setBack === null || other.endedAt >= setBack.at || other.at <= send.endedAt - setBack.by) &&
      // Requests count when they are let in, and the others while they run.
      (isRate || other.endedAt > send.at - before) &&
      (!isRate || mayBeLetInUntil(other) > send.at - before),
  );
  if (others.length < Number(limit))
    world.accuse(
      "refused",
      `${send.name} was refused because the ${kind} ${name} may have ${limit} requests ${per}, but there were ${others.length} others at most.`,
    );
}

/** A request whose client has left may still be on its way. */
function mayBeLetInUntil({ at, end, endedAt }: Send): number {
  const latest = at + MAY_RUN_ON_US;
  return end === "left" ? latest : Math.min(endedAt, latest);
}

/**
 * Since when the clock is set back, and by how much, if that was its last change. What came before it is in the future for as
 * long, and does not count, until a gateway that starts reads it in the ledger.
 */
function findSetBack(
  { plan, boots }: World,
  at: number,
): { readonly at: number; readonly by: number } | null {
  const changes = plan.happenings.flatMap((each) =>
    each.kind === "clock" && each.atMs * 1000 <= at ? [{ at: each.atMs * 1000, by: -each.byMs * 1000 }] : [],
  );
  const last = changes.toSorted((a, b) => a.at - b.at).at(-1);
  if (last === undefined || last.by < MINUTE_US) return null;
  return boots.some((boot) => boot >= last.at && boot <= at) ? null : last;
}

/** Those of a key's requests that name no session are one: all clients here are the same tool. */
function isOf({ client, request }: Send, kind: string, name: string, refused: Send): boolean {
  if (kind === "key") return client.key === name;
  if (kind === "group") return platformOf(client.dialect) === name;
  const session = sessionOf(client, request.number);
  return name.startsWith("inferred-")
    ? session === null && client.key === refused.client.key
    : session === name;
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
  const [, holder, whose, span, saidSpent, saidEstimated = "0"] = refusal;
  const said = { spent: Number(saidSpent), estimated: Number(saidEstimated) };
  const from = span === "day" || span === "month" ? findStart(world, send, span) : Number.NEGATIVE_INFINITY;
  const lines = all.filter(
    (line) =>
      (holder === "key" ? line.key : line.group) === whose &&
      Date.parse(line.request_time ?? line.time) >= from,
  );
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
