// Nobody is refused without a reason: limits in the other direction. What a refusal says is compared with what clients have
// sent at most, and with what the ledger has, also after the clock was changed.

import type { Send } from "../clients/line.ts";
import { platformOf, sessionOf } from "../plan/plan.ts";
import type { World } from "../run.ts";
import { hasBadDisk } from "../plan/plan.ts";

/** A line's fields that limits count. */
export interface Counted {
  readonly id: string;
  readonly key: string;
  readonly group: string;
  readonly charge_usd: string | null;
  readonly limit_usd?: string;
  readonly replaces?: { readonly id: string };
}

const SECOND = 1_000_000;
const MINUTE_US = 61 * SECOND;
/** A clock that was set back refuses nobody for longer than a minute. */
const BENT_MINUTE_US = 130 * SECOND;
/** A request may be in flight, and its line be written, this long after its client has left. */
const MAY_RUN_ON_US = 30 * SECOND;
const NOTHING_USD = 1e-9;

const REFUSAL =
  /The (key|group|session) \\*"([^"\\]+)\\*" may (?:make|have) (\d+) requests? (a minute|at once)/;
const SPENT =
  /The (key|group) \\*"([^"\\]+)\\*" may spend .* has spent \$([\d.]+)(?: and \$([\d.]+) estimated)?/;

export function checkRefused(world: World, lines: readonly Counted[]): void {
  for (const send of world.sends) {
    const text = send.reply?.body.toString() ?? send.events?.join("\n") ?? "";
    if (text.includes("does not know this key") && send.request.bad !== "unknown key")
      world.accuse("refused", `The gateway does not know the key of ${send.name}, which every config has.`);
    const [, kind = "", name = "", limit = "", per] = REFUSAL.exec(text) ?? [];
    if (per !== undefined) checkCount(world, send, { kind, name, limit: Number(limit), per });
    const [, holder = "", whose = "", spent, estimated = "0"] = SPENT.exec(text) ?? [];
    if (spent === undefined || mayMissLines(world)) continue;
    const own = lines.filter((line) => (holder === "key" ? line.key : line.group) === whose);
    checkSpent(world, send, own, { spent: Number(spent), estimated: Number(estimated) });
  }
}

/** What counted once may be gone from the ledger, or wait for it. */
function mayMissLines(world: World): boolean {
  const isCut = world.deaths.some(({ how }) => how === "without power");
  return world.removed.length > 0 || isCut || hasBadDisk(world.plan) || world.stoodStill;
}

interface Refusal {
  readonly kind: string;
  readonly name: string;
  readonly limit: number;
  readonly per: string;
}

function checkCount(world: World, send: Send, { kind, name, limit, per }: Refusal): void {
  const isRate = per === "a minute";
  const before = !isRate ? MAY_RUN_ON_US : world.timeWasBent ? BENT_MINUTE_US : MINUTE_US;
  const others = world.sends.filter(
    (other) =>
      other !== send &&
      isOf(other, kind, name) &&
      other.at <= send.endedAt &&
      // Requests count when they are let in, and the others while they run.
      (isRate || other.endedAt > send.at - before) &&
      (!isRate || Math.min(other.endedAt, other.at + MAY_RUN_ON_US) > send.at - before),
  );
  if (others.length < limit)
    world.accuse(
      "refused",
      `${send.name} was refused because the ${kind} ${name} may have ${limit} requests ${per}, but there were ${others.length} others at most.`,
    );
}

function isOf({ client, request }: Send, kind: string, name: string): boolean {
  if (kind === "key") return client.key === name;
  return kind === "group" ? platformOf(client.dialect) === name : sessionOf(client, request.number) === name;
}

function checkSpent(
  world: World,
  send: Send,
  lines: readonly Counted[],
  said: { readonly spent: number; readonly estimated: number },
): void {
  const spent = lines.reduce((sum, line) => sum + Number(line.charge_usd ?? 0), 0);
  if (said.spent > spent + NOTHING_USD)
    world.accuse(
      "refused",
      `${send.name} was refused because $${said.spent} were spent, but all lines together have $${spent.toFixed(9)}.`,
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
