// Ledgers that the old executables write, and the documents that commands print of them.

import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { answered } from "./dialects.ts";
import { envOf, type Scenario, Side } from "./side.ts";
import { listScenarios } from "./traffic.ts";
import type { Script } from "./wire.ts";

/** The scenarios whose requests every version served. */
const FIRST =
  /^(?:messages|responses|bridged|content|relay-m)-(?:whole|stream)-(?:fine|cut-in-body)$|^messages-whole-s500$|^bill-messages$|^responses-leaves$/;
/** The scenarios whose lines have fields that 0.2.0 added. */
const LATER =
  /^(?:chat-stream-fine|cache-misses|codex|gemini|limit-unpriced-allow|over-messages-whole-s529|login-claude|background|messages-by-(?:responses|chat)-stream|chat-by-content-stream|bill-(?:responses|reported|free|content))$/;
/** The scenarios for a ledger that needs few lines, because it shows one thing only. */
const FEW = /^(?:messages|responses)-(?:whole|stream)-fine$|^bill-messages$/;

const DAY_MS = 86_400_000;
const TIMES = /"(?:time|request_time)":"([^"]+)"/;

const sha256 = (text: string): string => new Bun.CryptoHasher("sha256").update(text).digest("hex");

/** Returns the lines with a valid chain, after `change` has edited the text of each. */
function chain(lines: readonly string[], change: (line: string, index: number) => string): string[] {
  let prev = "0".repeat(64);
  return lines.map((line, index) => {
    const changed = change(line, index).replace(/"prev":"[0-9a-f]{64}"\}$/, `"prev":"${prev}"}`);
    prev = sha256(changed);
    return changed;
  });
}

function readLines(folder: string): string[] {
  return readFileSync(join(folder, "ledger.jsonl"), "utf8").trim().split("\n");
}

/** Removes all files next to the ledger except the config: a gateway can make them again. */
function removeRest(folder: string): void {
  for (const name of readdirSync(folder))
    if (name !== "gateway.yaml" && !/^ledger.*\.jsonl$/.test(name))
      rmSync(join(folder, name), { recursive: true });
}

/** Moves the lines to the days from `first` on, and begins a file for each month. */
function spread(folder: string, first: string, everyMs: number): void {
  const lines = readLines(folder);
  const at = (index: number): string => new Date(Date.parse(first) + index * everyMs).toISOString();
  const moved = chain(lines, (line, index) => line.replace(TIMES, `"time":"${at(index)}"`));
  const months = Map.groupBy(moved, (line) => (TIMES.exec(line)?.[1] ?? "").slice(0, 7));
  removeRest(folder);
  const last = [...months.keys()].at(-1);
  for (const [month, list] of months)
    writeFileSync(
      join(folder, month === last ? "ledger.jsonl" : `ledger-${month}.jsonl`),
      `${list.join("\n")}\n`,
      { mode: 0o600 },
    );
}

const SETTINGS = { prices: { "claude-unheard-of": { input: 3, output: 15 } } };

export type Run = (words: readonly string[], folder: string) => Promise<{ status: number; stdout: string }>;

export function runOf(executable: string): Run {
  return async (words, folder) => {
    const child = Bun.spawn([executable, ...words, "--config", join(folder, "gateway.yaml")], {
      env: envOf(folder),
      stdin: "ignore",
      stderr: "ignore",
    });
    const stdout = await new Response(child.stdout).text();
    return { status: await child.exited, stdout };
  };
}

export interface Old {
  readonly version: string;
  readonly executable: string;
}

/** Makes a ledger of each version over three months, with a correction. Also makes three of the last version:
 *  one has an accepted mark, one is damaged, and the journal of one names a request in flight. */
export async function makeSmall(olds: readonly Old[], folder: string): Promise<void> {
  const all = listScenarios();
  const pick = (pattern: RegExp): Scenario[] => all.filter(({ name }) => pattern.test(name));
  for (const { version, executable } of olds) {
    const later = version.startsWith("0.1") ? [] : pick(LATER);
    const side = await makePast(version, executable, folder, [
      ...pick(version === "0.1.1" ? FEW : FIRST),
      ...later,
    ]);
    await side.restart(SETTINGS);
    await side.runSome(/^messages-whole-fine$/);
    await side.end("SIGTERM");
    await runOf(executable)(["ledger", "reprice", "--since", "2026-09-01"], side.folder);
    await side.stop();
    tidy(side);
  }
  const { executable } = olds.at(-1)!;
  const marked = await makePast("marked", executable, folder, pick(FEW));
  await marked.restart({});
  await marked.end("SIGTERM");
  // A line that the gateway has not written.
  const last = readLines(marked.folder).at(-1) ?? "";
  const forged = last
    .replace(/"id":"[^"]*"/, '"id":"forged"')
    .replace(/"prev":"[0-9a-f]{64}"/, `"prev":"${sha256(last)}"`);
  appendFileSync(join(marked.folder, "ledger.jsonl"), `${forged}\n`);
  await marked.restart({});
  await marked.runSome(/^messages/);
  await marked.end("SIGTERM");
  await runOf(executable)(["ledger", "accept"], marked.folder);
  await marked.restart({});
  await marked.runSome(/^responses/);
  await marked.stop();
  tidy(marked);
  const damaged = await makePast("damaged", executable, folder, pick(FEW));
  damage(damaged);
  await damaged.stop();
  tidy(damaged);
  const killed = await makePast("killed", executable, folder, pick(FEW));
  await killed.restart({});
  const [first] = pick(FEW);
  const held: Script = { ...answered("messages", true), pieces: [": ping\n\n"], ending: "hold" };
  const asked = killed.run({ ...first!, steps: [{ ...first!.steps[0]!, scripts: [held] }] });
  await killed.asked(first!.name);
  await killed.end("SIGKILL");
  await asked;
  await killed.stop();
  tidy(killed);
}

/** Changes an amount, removes a line, writes a line twice, and adds a line that is not JSON. */
function damage({ folder }: Side): void {
  const path = join(folder, "ledger-2026-10.jsonl");
  const [first = "", second = "", third = "", fourth = "", ...rest] = readFileSync(path, "utf8")
    .trim()
    .split("\n");
  const changed = first.replace(/"charge_usd":"[^"]*"/, '"charge_usd":"1"');
  writeFileSync(path, `${[changed, third, fourth, fourth, "no JSON", ...rest].join("\n")}\n`);
  if (second === "" || changed === first) throw new Error("there is nothing to damage");
}

async function makePast(
  name: string,
  executable: string,
  folder: string,
  scenarios: readonly Scenario[],
): Promise<Side> {
  const side = new Side(name, executable, join(folder, name));
  await side.start(scenarios, {});
  await side.runSome(/^/);
  await side.end("SIGTERM");
  spread(side.folder, "2026-09-20T21:30:00.000Z", Math.floor((62 * DAY_MS) / readLines(side.folder).length));
  return side;
}

/** Removes files that a gateway can make again, or that belong to this machine alone. */
function tidy({ folder }: Side): void {
  for (const name of readdirSync(folder))
    if (/\.(?:lock|lock\.holder|txt|index.*|hours|json)$|^\./.test(name))
      rmSync(join(folder, name), { recursive: true });
}

/** A ledger of many lines over 90 days: the lines of a small ledger again and again, with new ids, sessions and keys. */
export function makeLarge(from: string, folder: string, count: number): void {
  mkdirSync(folder, { recursive: true });
  cpSync(join(from, "gateway.yaml"), join(folder, "gateway.yaml"));
  const names = readdirSync(from).filter((name) => /^ledger.*\.jsonl$/.test(name));
  const lines = names
    .flatMap((name) => readFileSync(join(from, name), "utf8").trim().split("\n"))
    .filter((line) => !/"(?:corrects|replaces|mark|accepts)":/.test(line));
  const first = Date.parse("2026-08-25T00:00:00.000Z");
  const list = Array.from({ length: count }, (_, index) => lines[index % lines.length] ?? "");
  const made = chain(list, (line, index) =>
    line
      .replace(/"id":"req_[^"]*"/, `"id":"req_${String(index).padStart(23, "0")}"`)
      .replace(TIMES, `"time":"${new Date(first + Math.floor((index * 90 * DAY_MS) / count)).toISOString()}"`)
      .replace(/"session":"[^"]*"/, `"session":"session-${Math.floor(index / 90)}"`)
      .replace(/"key":"[^"]*"/, `"key":"key-${index % 11}"`),
  );
  writeFileSync(join(folder, "ledger.jsonl"), `${made.join("\n")}\n`, { mode: 0o600 });
}

/** The period ends on the day on which the ledgers were made: without an end, reports would have a row for each later day, too. */
const PERIOD = "--since 2026-09-01 --until 2026-11-28";

const LANES = 6;

/** Works on LANES elements at the same time, and begins them in their order. */
export async function inLanes<T>(list: readonly T[], work: (each: T) => Promise<void>): Promise<void> {
  const left = list.values();
  const lane = async (): Promise<void> => {
    for (const each of left) await work(each);
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}

export const STORED = join(import.meta.dir, "ledgers");
export const listStored = (): readonly string[] => (existsSync(STORED) ? readdirSync(STORED).toSorted() : []);

/** Copies a ledger's folder, so that a program may write into it. */
export function copyLedger(from: string, to: string): void {
  cpSync(from, to, { recursive: true });
  for (const name of readdirSync(to)) chmodSync(join(to, name), name.endsWith(".context") ? 0o700 : 0o600);
}

/** Lists commands that read a ledger. Snapshots use `most` for the ledger of 0.2.0, and `few` for others. */
export function listCommands(folder: string, which: "all" | "most" | "few"): readonly string[] {
  const lines = readLines(folder);
  const read = (pattern: RegExp): string =>
    lines.map((line) => pattern.exec(line)?.[1]).findLast((found) => found !== undefined) ?? "none";
  const missed = read(/"session":"([^"]+)".*"cache":\{/);
  const session = missed === "none" ? read(/"session":"([^"]+)"/) : missed;
  const by = (words: string): string[] => words.split(" ").map((word) => `usage ${PERIOD} --by ${word}`);
  const few = [
    ...by("day"),
    "ledger verify",
    "ledger anchor",
    `ledger show ${read(/"id":"(req_[^"]+)"(?!.*"corrects")/)}`,
    `sessions ${PERIOD}`,
  ];
  const more = [
    ...by("month key,model group channel,tool session label agent"),
    `usage ${PERIOD} --by model --as claude-sonnet-4-5`,
    `sessions show ${session}`,
    `cache ${PERIOD}`,
    "prices check",
  ];
  if (which !== "all") return which === "few" ? few : [...few, ...more];
  const periods = "2026-10 2026-10-25 last-month month week last-week today yesterday 7d 2w";
  const filters = `key messages-whole-fine|group chat-stream-fine|model gpt-5.4|channel content-whole-fine-a|tool claude-code|session ${session}|label messages-whole-fine.1`;
  const shown = `basis":"exact basis":"partial basis":"unknown basis":"unpriced suspect provider_usd cache":. converted parts paid_by limit_usd windows mark accepts replaces`;
  return [
    ...few,
    ...more,
    ...by("hour week model tool key day,model session,agent label,tool month,channel agent,label"),
    ...periods.split(" ").map((period) => `usage ${period}`),
    ...filters.split("|").map((filter) => `usage ${PERIOD} --by model --${filter}`),
    ...shown.split(" ").map((member) => `ledger show ${read(new RegExp(`"id":"([^"]+)".*"${member}"?`))}`),
    "usage --since 2026-10-01 --until 2026-10-31",
    `usage ${PERIOD} --by day --as gpt-5.4`,
    `sessions --all ${PERIOD}`,
    `sessions ${PERIOD} --tool claude-code`,
    `sessions show ${session} --turns`,
    "sessions show last",
    `cache ${PERIOD} --tool claude-code`,
    "cache 2026-10",
    `context ${session}`,
    `context servers ${PERIOD}`,
    "ledger verify --partial",
    "ledger show last",
    "ledger show last --key messages-stream-fine",
    "ledger show nothing",
    `ledger show ${read(/"corrects":"([^"]+)"/)}`,
    `ledger reprice ${PERIOD} --dry-run`,
    "keys list",
    "keys show messages-whole-fine",
    "groups list --all",
    "plans list",
    "channels",
    "recordings list",
    "prices show claude-haiku-4-5",
    "top",
  ];
}

/** Commands that show what a gateway's start has done to a ledger. */
export const AFTER_START: readonly string[] = [
  "ledger verify",
  "ledger show last",
  `usage ${PERIOD} --by day,key`,
];

export interface Printed {
  readonly status: number;
  readonly document: unknown;
}

/** Returns the document that a command prints with --json. */
export async function print(run: Run, command: string, folder: string): Promise<Printed> {
  const { status, stdout } = await run([...command.split(" "), "--json"], folder);
  const text = stdout.replaceAll(folder, "FOLDER");
  try {
    return { status, document: JSON.parse(text) };
  } catch {
    return { status, document: text };
  }
}
