// Compares the ledger with what really happened: every request that may have reached an upstream has exactly one line,
// the chain is unbroken, and every amount can be computed again.

import { createHash } from "node:crypto";
import { modelOf, numberOf } from "../clients/requests.ts";
import type { Send } from "../clients/send.ts";
import { hasBadDisk } from "../plan/plan.ts";
import type { World } from "../run.ts";
import type { Arrival } from "../upstreams/upstream.ts";
import { HOME, LEDGER } from "../world/config.ts";
import { type Billed, checkAmounts } from "./amounts.ts";
import { checkDurable, isAtRisk } from "./durable.ts";
import { checkRefused, mayMissLines } from "./refused.ts";

interface Line extends Billed {
  readonly id: string;
  readonly time: string;
  readonly request_time?: string;
  readonly key: string;
  readonly group: string;
  readonly outcome: string;
  readonly status: number | null;
  readonly attempts: ReadonlyArray<{ channel: string; status?: number; error?: string }>;
  readonly prev: string;
  readonly mark?: string;
  readonly limit_usd?: string;
  readonly replaces?: { readonly id: string };
}

export function checkBooks(world: World): void {
  const texts = readLedger(world);
  if (texts === null) return;
  const moved = world.disk.list(HOME).filter((name) => name.endsWith(".bak"));
  const elsewhere = moved.flatMap(
    (name) => world.disk.find(`${HOME}/${name}`)?.content.toString().split("\n").filter(isObject) ?? [],
  );
  const all = [...elsewhere, ...texts].map(parseLine);
  const lines = all.filter(({ mark }) => mark === undefined);
  checkChain(world, texts);
  if (world.accusations.every(({ check }) => check !== "chain")) checkVerify(world);
  checkOnce(world, lines);
  checkAmounts(world, lines);
  checkRequests(world, lines);
  checkExtra(world, lines);
  checkRefused(world, all);
  checkDurable(world, new Set(lines.map(({ id }) => id)));
  checkJournal(world, lines);
}

/** Rotated files first, the growing file last. */
function readLedger(world: World): string[] | null {
  const rotated = world.disk.list(HOME).filter((name) => /^ledger-\d{4}-\d{2}(?:\.\d+)?\.jsonl$/.test(name));
  const order = (name: string): string => {
    const [, month = "", number = "1"] = /^ledger-(\d{4}-\d{2})(?:\.(\d+))?/.exec(name) ?? [];
    return `${month} ${number.padStart(9, "0")}`;
  };
  rotated.sort((a, b) => (order(a) < order(b) ? -1 : 1));
  const texts: string[] = [];
  for (const path of [...rotated.map((name) => `${HOME}/${name}`), LEDGER]) {
    const content = world.disk.find(path)?.content.toString() ?? "";
    if (content !== "" && !content.endsWith("\n")) {
      world.accuse(
        "torn line",
        `${path} ends in the middle of a line: ${JSON.stringify(content.slice(-120))}`,
      );
      return null;
    }
    texts.push(...content.split("\n").slice(0, -1));
  }
  const torn = texts.find((text) => !isObject(text));
  if (torn === undefined) return texts;
  world.accuse("torn line", `A line of the ledger cannot be read: ${JSON.stringify(torn.slice(0, 200))}`);
  return null;
}

function parseLine(text: string): Line {
  // A line that the gateway did not write lacks some of these fields.
  const line: Line = JSON.parse(text);
  return line;
}

function isObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null;
  } catch {
    return false;
  }
}

function checkChain(world: World, texts: readonly string[]): void {
  let prev: string | null = null;
  // If somebody removed a file, the chain has a gap.
  let gaps = world.removed.length;
  for (const text of texts) {
    const line = parseLine(text);
    if (line.prev !== (prev ?? "0".repeat(64)) && gaps-- <= 0) {
      world.accuse("chain", `The line ${line.id} does not follow the one before it.`);
      return;
    }
    prev = createHash("sha256").update(text).digest("hex");
  }
  if (gaps > 0 && gaps === world.removed.length && mustShowGap(world, texts))
    world.accuse("chain", "Somebody removed the ledger, and its chain shows no gap.");
}

/** A line has followed the removed ones, which the gateway had noted before. A power cut may take its notes. */
function mustShowGap(world: World, texts: readonly string[]): boolean {
  const { removed, deaths, plan } = world;
  const last = removed.at(-1);
  if (last === undefined || hasBadDisk(plan) || world.stoodStill) return false;
  if (deaths.some(({ how }) => how === "without power")) return false;
  const noted = world.written.some(
    ({ at, inode }) =>
      inode === last.inode &&
      at + NOTED_US < last.at &&
      !deaths.some((death) => death.at >= at && death.at <= at + NOTED_US),
  );
  const there = new Set(texts.map((text) => parseLine(text).id));
  return noted && world.written.some(({ id, at }) => at > last.at + NOTED_US && there.has(id));
}

function checkVerify(world: World): void {
  if (world.removed.length > 0) return;
  const findings = world.verifyLedger();
  const lost = world.deaths.some(({ how }) => how === "without power") && world.plan.sync !== "always";
  const bad = findings.filter((finding) => !(lost && finding.includes("lines at the end are missing")));
  if (bad.length > 0) world.accuse("verify", `\`gateway ledger verify\` finds: ${bad.join("; ")}`);
}

function checkOnce(world: World, lines: readonly Line[]): void {
  for (const [id, own] of Map.groupBy(lines, (line) => line.id)) {
    // If somebody removed the file with its line, the next start cannot know of that line.
    const isTakenAway = world.removed.length > 0 && own.some(({ outcome }) => outcome === "interrupted");
    if (own.length > 1 && !isTakenAway)
      world.accuse("one line", `The request ${id} (${own[0]?.model}) has ${own.length} lines.`);
  }
}

/** The upstream answered with a status that costs nothing, and the gateway received it. */
function isRefusal({ status, plan }: Arrival): boolean {
  return status >= 300 && plan?.kind !== "silence";
}

function checkRequests(world: World, lines: readonly Line[]): void {
  const byNumber = Map.groupBy(lines, ({ model }) => numberOf(model));
  const sends = Map.groupBy(world.sends, ({ request }) => request.number);
  const arrivals = Map.groupBy(world.arrivals, ({ send }) => send);
  for (const [number, own] of sends)
    checkRequest(world, { number, sends: own, lines: byNumber.get(number) ?? [], arrivals });
  for (const [number, strays] of byNumber) {
    if (number === null || !sends.has(number))
      world.accuse("one line", `The line ${strays[0]?.id} belongs to no request: ${strays[0]?.model}.`);
  }
}

/** A request that was answered without any upstream, long before its gateway died, is not interrupted. */
function checkExtra(world: World, lines: readonly Line[]): void {
  if (mayMissLines(world)) return;
  const interrupted = new Set(lines.flatMap(({ id, outcome }) => (outcome === "interrupted" ? [id] : [])));
  for (const { name, reply, end, at: sentAt, endedAt } of world.sends) {
    const id = reply?.fields.get("x-request-id");
    if (id === undefined || !interrupted.has(id) || end !== "reply" || world.bySend.has(name)) continue;
    const killed = world.deaths.find(({ at }) => at >= sentAt);
    if (killed !== undefined && killed.at > endedAt + 1_000_000)
      world.accuse(
        "one line",
        `${name} never left the gateway, got its answer, and has an interrupted line.`,
      );
  }
}

interface Case {
  readonly number: number;
  readonly sends: readonly Send[];
  readonly lines: readonly Line[];
  readonly arrivals: ReadonlyMap<string, readonly Arrival[]>;
}

function checkRequest(world: World, { number, sends, lines, arrivals }: Case): void {
  const [first] = sends;
  if (first === undefined) return;
  const name = `${first.name.replace(/s\d+$/, "")} (${modelOf(first.client.dialect, number)})`;
  const arrived = sends.map((send) => arrivals.get(send.name) ?? []);
  // Their lines were in a file that is gone.
  const lost = arrived.filter((own) => own.some((arrival) => mayBeLost(world, arrival)));
  const must = arrived.filter(
    (own) => own.some((arrival) => arrival.fetches === null && !isRefusal(arrival)) && !lost.includes(own),
  );
  if (lines.length < must.length) {
    const shown = must
      .flat()
      .map(({ channel, attempt, at, plan }) => `${channel} attempt ${attempt} at ${at} (${plan?.kind})`);
    world.accuse(
      "one line",
      `${name} reached an upstream and has ${lines.length} of ${must.length} lines: ${shown.join(", ")}.`,
    );
  }
  if (new Set(lines.map(({ id }) => id)).size > sends.length)
    world.accuse("one line", `${name} was sent ${sends.length} times and has ${lines.length} lines.`);
  const other = lines.find(({ key }) => key !== first.client.key);
  if (other !== undefined)
    world.accuse("one line", `${name} of the key ${first.client.key} has a line of the key ${other.key}.`);
  checkSeen(world, name, { arrived: arrived.flat(), lines, lost: lost.length });
  for (const send of sends.filter(({ request }) => !request.background)) checkComplete(world, send, lines);
  if (first.request.background) checkBackground(world, name, sends, lines);
}

/** The cost of a background response is unknown at first. The first request that fetches it finished is billed, once. */
function checkBackground(world: World, name: string, sends: readonly Send[], lines: readonly Line[]): void {
  const begun = sends.filter(({ fetches, whole }) => fetches === null && whole?.goesOn === true);
  for (const { name: send, reply, whole } of begun) {
    if (whole === null || mayBeLost(world, whole)) continue;
    const line = lines.find(({ id }) => id === reply?.fields.get("x-request-id"));
    if (line === undefined || line.basis !== "unknown")
      world.accuse(
        "one line",
        `${send} continues in the background, but the basis of its line is ${line?.basis ?? "missing"}.`,
      );
  }
  const paid = Map.groupBy(
    lines.flatMap(({ replaces }) => (replaces === undefined ? [] : [replaces.id])),
    (id) => id,
  );
  for (const [id, own] of paid)
    if (own.length > 1)
      world.accuse("one line", `The response that ${id} started was billed ${own.length} times.`);
  for (const send of sends) checkFetched(world, name, send, { sends, lines });
}

/** One gateway ran all the time, and wrote the lines of what ended then. Only the gateway that started a background response
 *  knows of it, until that gateway ends. */
export function isOneGateway(world: World, from: number, to: number): boolean {
  const isForgotten = world.boots.some((at) => at > from && at <= to);
  // Its line waits until the disk works again, or until the next start finds another ledger.
  const waitsUs =
    hasBadDisk(world.plan) || isLedgerGone(world, to) ? Number.POSITIVE_INFINITY : MAY_TRAVEL_US;
  return !isForgotten && !world.deaths.some(({ at }) => at > from && at <= to + waitsUs);
}

function checkFetched(
  world: World,
  name: string,
  { fetches, whole, request }: Send,
  { sends, lines }: { readonly sends: readonly Send[]; readonly lines: readonly Line[] },
): void {
  if (fetches === null || whole === null || whole.goesOn || mayBeLost(world, whole)) return;
  const beginner = sends.find((send) => send.fetches === null && fetches.startsWith(`resp_${send.name}a`));
  const began = beginner?.whole?.at;
  if (began === undefined || !isOneGateway(world, began, whole.endedAt)) return;
  const billed = lines.filter(({ basis, usage }) => basis === "exact" && Object.keys(usage).length > 0);
  if (billed.length === 0 && mayLackLine(world, { number: request.number, from: whole.at }, lines)) return;
  if (billed.length === 1) checkExact(world, name, billed[0]!, whole);
  else
    world.accuse(
      "one line",
      `${name} finished in the background, was fetched, and was billed ${billed.length} times.`,
    );
}

/** Its line had to wait until the gateway stopped, and the log says so. Or a power cut took it before the disk had it: no
 *  journal names such a request, so the next start adds no line. */
function mayLackLine(
  world: World,
  { number, from }: { readonly number: number; readonly from: number },
  lines: readonly Line[],
): boolean {
  if (world.notices.some((text) => text.includes("could not be written"))) return true;
  const written = world.written.filter((each) => each.number === number && each.at >= from);
  return written.some((each) => lines.every(({ id }) => id !== each.id) && isAtRisk(world, each));
}

/** A gateway that has stopped leaves no request in its journal: none was in flight. */
function checkJournal(world: World, lines: readonly Line[]): void {
  if (!world.stopped || world.removed.length > 0) return;
  const there = new Set(lines.map(({ id }) => id));
  const records = world.disk.find(`${LEDGER}.open`)?.content.toString() ?? "";
  const open = new Set([...records.matchAll(/^\{"open":\{"id":"([^"]+)"/gm)].map(([, id]) => id));
  for (const [, id] of records.matchAll(/^\{"discard":"([^"]+)"/gm)) open.delete(id);
  const left = [...open].filter((id) => id !== undefined && !there.has(id));
  if (left.length > 0)
    world.accuse(
      "released",
      `The gateway has stopped, but its journal has open requests: ${left.join(", ")}`,
    );
}

/** A record that was written this long before a kill was seen by the next gateway. */
const RECORDED_US = 100_000;

/** Somebody has removed the ledger, and no gateway has started since: nothing can be recorded. */
function isLedgerGone({ removed, boots }: World, at: number): boolean {
  return removed.some(
    (removal) => removal.at <= at && !boots.some((boot) => boot > removal.at && boot <= at),
  );
}

/** A gateway that is killed leaves the name of every channel that has its request. */
function checkInterrupted(
  world: World,
  name: string,
  { arrived, lines }: { arrived: readonly Arrival[]; lines: readonly Line[] },
): void {
  if (hasBadDisk(world.plan) || world.deaths.some(({ how }) => how === "without power")) return;
  const named = new Set(lines.flatMap(({ attempts }) => attempts.map(({ channel }) => channel)));
  const unseen = arrived.find(
    ({ channel, fetches, at, sender }) =>
      fetches === null &&
      at < sender.ranUntil - RECORDED_US &&
      !named.has(channel) &&
      !isLedgerGone(world, at),
  );
  if (unseen !== undefined)
    world.accuse(
      "sent twice unseen",
      `${name} reached ${unseen.channel} at ${unseen.at / 1000} ms, before its gateway was killed, but its lines name only ${[...named].join(", ")}.`,
    );
}

/** No request is sent twice without a trace: whatever reached an upstream is an attempt of some line. */
function checkSeen(
  world: World,
  name: string,
  { arrived, lines, lost }: { arrived: readonly Arrival[]; lines: readonly Line[]; lost: number },
): void {
  if (lost > 0) return;
  if (lines.some(({ outcome }) => outcome === "interrupted")) {
    checkInterrupted(world, name, { arrived, lines });
    return;
  }
  const worked = arrived.filter((arrival) => arrival.fetches === null && !isRefusal(arrival));
  const recorded = lines
    .flatMap(({ attempts }) => attempts)
    .filter(({ status, error }) => status === undefined || status < 300 || error !== undefined);
  if (worked.length > recorded.length) {
    const shown = worked.map(({ channel, at }) => `${channel} at ${(at / 1000).toFixed(1)} ms`).join(", ");
    world.accuse(
      "sent twice unseen",
      `${name} reached upstreams ${worked.length} times (${shown}), but its lines have ${recorded.length} attempts.`,
    );
  }
}

/** If a client received a complete answer, its cost is known exactly. */
function checkComplete(world: World, send: Send, lines: readonly Line[]): void {
  const { reply, whole: source } = send;
  if (reply === null || source?.plan?.kind !== "answer" || mayBeLost(world, source)) return;
  if (source.counts.input < 0) return;
  if (send.events !== null) {
    checkCompleteEvents(world, send, source, lines);
    return;
  }
  const id = reply.fields.get("x-request-id");
  const line = lines.find((each) => each.id === id);
  if (line === undefined) {
    world.accuse("one line", `${send.name} received a complete answer with the id ${id}, which has no line.`);
    return;
  }
  if (line.outcome !== "interrupted") checkExact(world, send.name, line, source);
}

/** Responses on a WebSocket carry no request id, so only their number is compared: as many exact lines as complete responses. */
function checkCompleteEvents(
  world: World,
  { name }: Send,
  { counts: { input, cacheRead, output } }: Arrival,
  lines: readonly Line[],
): void {
  const fits = lines.some(
    ({ usage, basis, outcome }) =>
      outcome === "complete" &&
      basis === "exact" &&
      (usage["input"] ?? 0) === input &&
      (usage["cache_read"] ?? 0) === cacheRead &&
      (usage["output"] ?? 0) === output,
  );
  if (fits || lines.some(({ outcome }) => outcome === "interrupted")) return;
  const found = lines.map(({ outcome, basis, usage }) => `${outcome}, ${basis}, ${JSON.stringify(usage)}`);
  world.accuse(
    "amounts",
    `${name} received a complete answer of ${input} + ${cacheRead} + ${output} tokens over a WebSocket, but its lines have ${found.join("; ") || "nothing"}.`,
  );
}

function checkExact(world: World, name: string, line: Line, { counts }: Arrival): void {
  const { input, cacheRead, output } = counts;
  const counted = [line.usage["input"], line.usage["cache_read"], line.usage["output"]].map(
    (count = 0) => count,
  );
  if (
    line.basis === "exact" &&
    line.outcome === "complete" &&
    counted.join() === [input, cacheRead, output].join()
  )
    return;
  world.accuse(
    "amounts",
    `${name} received a complete answer of ${input} + ${cacheRead} + ${output} tokens, but its line has ${line.outcome}, ${line.basis}, ${JSON.stringify(line.usage)}.`,
  );
}

/** Lines that a power cut may lose according to the documentation of `sync`, and lines in files that somebody removed. */
function mayBeLost(world: World, arrival: Arrival): boolean {
  const sentAt = latestSending(arrival);
  if (world.removed.some(({ at }) => sentAt <= at + NOTICED_US)) return true;
  // checkDurable looks for the lines that a sync has covered, or should have.
  if (world.plan.sync === "always") return false;
  return world.deaths.some(({ at, how }) => how === "without power" && sentAt <= at);
}

/** An upstream may still read the bytes of a gateway that has died in the meantime. */
function latestSending({ at, sender }: Arrival): number {
  return Math.min(at, sender.diedAt);
}

/** The gateway may write into a removed file for this long before it notices. checkDurable checks those lines. */
const NOTICED_US = 1_500_000;
/** The end of the ledger is noted at the latest after a sync, which may be slow. */
const NOTED_US = 3_000_000;
/** A request may still be in the network when its sender dies. */
const MAY_TRAVEL_US = 1_000_000;
