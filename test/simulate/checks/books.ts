// Compares the ledger with what really happened: every request that may have reached an upstream has exactly one line,
// the chain is unbroken, and every amount can be computed again.

import { createHash } from "node:crypto";
import { isObject, parseJson } from "../../../src/lib/json/json.ts";
import { modelOf, numberOf } from "../clients/requests.ts";
import type { Send } from "../clients/send.ts";
import { hasBadDisk } from "../plan/plan.ts";
import type { World } from "../run.ts";
import type { Arrival } from "../upstreams/upstream.ts";
import { HOME, LEDGER } from "../world/config.ts";
import { checkDurable } from "./durable.ts";
import { checkLimits, type Counted } from "./limits.ts";

interface Line extends Counted {
  readonly model: string;
  readonly basis: string;
  readonly usage: Readonly<Record<string, number>>;
  readonly attempts: ReadonlyArray<{ channel: string; status?: number; error?: string }>;
  readonly prev: string;
  readonly mark?: string;
}

export function checkBooks(world: World): void {
  const texts = readLedger(world);
  if (texts === null) return;
  const all = texts.map(parseLine);
  const lines = all.filter(({ mark }) => mark === undefined);
  checkChain(world, texts);
  if (world.accusations.every(({ check }) => check !== "chain")) checkVerify(world);
  checkOnce(world, lines);
  checkRequests(world, lines);
  checkLimits(world, lines);
  checkDurable(world, new Set(all.map(({ id }) => id)));
  checkJournal(world, lines);
}

/** Returns all lines of the ledger, those of the oldest file first, or null if a line is torn. */
function readLedger(world: World): string[] | null {
  // A month has a second file if more of its lines came after its first file was renamed.
  const rotated = world.disk
    .list(HOME)
    .flatMap((name) => /^(ledger-\d{4}-\d{2}(?:\.\d+)?)\.jsonl$/.exec(name)?.[1] ?? []);
  rotated.sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const texts: string[] = [];
  for (const path of [...rotated.map((name) => `${HOME}/${name}.jsonl`), LEDGER]) {
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
  const torn = texts.find((text) => !isObject(parseJson(text)));
  if (torn === undefined) return texts;
  world.accuse("torn line", `A line of the ledger cannot be read: ${JSON.stringify(torn.slice(0, 200))}`);
  return null;
}

function parseLine(text: string): Line {
  // A line that the gateway did not write lacks some of these fields.
  const line: Line = JSON.parse(text);
  return line;
}

function checkChain(world: World, texts: readonly string[]): void {
  let prev: string | null = null;
  for (const text of texts) {
    const line = parseLine(text);
    const isGap = line.prev !== (prev ?? "0".repeat(64));
    if (isGap && !(mayHaveGap(world) && line.id.startsWith("mark_"))) {
      world.accuse("chain", `The line ${line.id} does not follow the one before it.`);
      return;
    }
    prev = createHash("sha256").update(text).digest("hex");
  }
}

/** Whether lines may be missing before a mark: a power cut may have taken lines whose sync had failed. */
function mayHaveGap(world: World): boolean {
  return hasBadDisk(world.plan) && world.deaths.some(({ how }) => how === "without power");
}

function checkVerify(world: World): void {
  const findings = world.verifyLedger();
  const lost = world.deaths.some(({ how }) => how === "without power");
  const bad = findings.filter(
    (finding) =>
      !(lost && finding.includes("lines at the end are missing")) &&
      !(mayHaveGap(world) && finding.includes('"id":"mark_')),
  );
  if (bad.length > 0) world.accuse("verify", `\`gateway ledger verify\` finds: ${bad.join("; ")}`);
}

function checkOnce(world: World, lines: readonly Line[]): void {
  for (const [id, own] of Map.groupBy(lines, (line) => line.id)) {
    if (own.length > 1)
      world.accuse("one line", `The request ${id} (${own[0]?.model}) has ${own.length} lines.`);
  }
}

/** Whether the upstream answered with a status that costs nothing, and the gateway received this answer. */
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
  const lost = arrived.filter((own) => own.some((arrival) => mayBeLost(world, arrival)));
  const must = arrived.filter((own) => own.some((arrival) => !isRefusal(arrival)) && !lost.includes(own));
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
  for (const send of sends) checkComplete(world, send, lines);
}

/** Checks that a gateway that has stopped leaves no request in its journal, because none was in flight. */
function checkJournal(world: World, lines: readonly Line[]): void {
  if (!world.stopped) return;
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

/** Checks that no request is sent twice without a trace: each arrival at an upstream is an attempt that a line lists. */
function checkSeen(
  world: World,
  name: string,
  { arrived, lines, lost }: { arrived: readonly Arrival[]; lines: readonly Line[]; lost: number },
): void {
  if (lost > 0 || lines.some(({ outcome }) => outcome === "interrupted")) return;
  const worked = arrived.filter((arrival) => !isRefusal(arrival));
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

/** Checks that the cost of an answer is known exactly if its client received it completely. */
function checkComplete(world: World, send: Send, lines: readonly Line[]): void {
  const { reply, whole: source } = send;
  if (reply === null || source?.plan?.kind !== "answer" || mayBeLost(world, source)) return;
  const id = reply.fields.get("x-request-id");
  const line = lines.find((each) => each.id === id);
  if (line === undefined) {
    world.accuse("one line", `${send.name} received a complete answer with the id ${id}, which has no line.`);
    return;
  }
  if (line.outcome !== "interrupted") checkExact(world, send.name, line, source);
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

/** Whether a power cut may have taken the line of this request. */
function mayBeLost(world: World, arrival: Arrival): boolean {
  const sentAt = latestSending(arrival);
  // Every line from before a power cut may be lost here. checkDurable says which of them must be there.
  return world.deaths.some(({ at, how }) => how === "without power" && sentAt <= at);
}

/** Returns the latest time at which the gateway can have sent the request: its bytes may arrive after the gateway has died. */
function latestSending({ at, sender }: Arrival): number {
  return Math.min(at, sender.diedAt);
}
