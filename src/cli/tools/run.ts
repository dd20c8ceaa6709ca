// `gateway run`: starts a tool as a child process that owns the terminal.

import { spawn } from "node:child_process";
import { closeSync, constants, mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { z } from "zod";
import type { Group } from "../../config/catalog.ts";
import { stateFolder } from "../../config/file/find.ts";
import type { LoadedConfig } from "../../config/file/load.ts";
import { explainRetired } from "../../config/file/retired.ts";
import { RECORDING_NAME } from "../../config/yaml/scalars.ts";
import { ENV_TOOLS } from "../../dialects/platforms.ts";
import { nameRun, type RunReport } from "../../gateway/intake/runs.ts";
import { openOwn, readOwn, removeFolder, replaceFile } from "../../lib/files/own-file.ts";
import { PLATFORM } from "../../lib/files/platform.ts";
import { parseJson } from "../../lib/json/json.ts";
import { parseDecimal } from "../../lib/money.ts";
import { quoteWord } from "../../lib/text/shell-word.ts";
import { NOT_RUNNING, readDocument } from "../access/control.ts";
import { findRunning, formatBaseUrl, type Address } from "../access/running.ts";
import { type Columns, drawRows } from "../terminal/listing.ts";
import { findOwnCommand } from "../terminal/own-command.ts";
import {
  askYes,
  canPrompt,
  fail,
  printJson,
  printLines,
  printNote,
  refuseUsage,
} from "../terminal/terminal.ts";
import { formatCents, formatCount } from "../terminal/text.ts";
import { connect, type ToolConnection, type ToolFlags } from "./connection.ts";
import { prepare } from "./environment.ts";
import { describeForeignModel, fetchList, findNamedModel, type Given, mainModelOf } from "./models.ts";
import { findStart } from "./shells.ts";
import type { Connection, Tool, ToolEnvironment } from "./tool.ts";
import { TOOLS, findTool } from "./tools.ts";

export interface RunFlags extends ToolFlags {
  readonly yes?: true;
  readonly list?: true;
  readonly statusline?: true;
  readonly record?: string;
  readonly budget?: string;
  readonly quiet?: true;
  readonly json?: true;
}

export async function runTool(
  name: string | undefined,
  words: readonly string[],
  flags: RunFlags,
): Promise<number> {
  const { env } = process;
  if (flags.list === true) return showTools(flags);
  if (name === undefined) return refuseUsage("Name a tool. `gateway run --list` shows them.");
  const retired = explainRetired(`run ${name}`);
  if (retired !== null) refuseUsage(retired);
  const budget = readBudget(flags.budget);
  const tool = findTool(name, RUNNABLE);
  checkFlags(tool, flags);
  // Scripts may still have the `--` of version 0.1.
  const { program, args } = findProgram(tool, words[0] === "--" ? words.slice(1) : words);
  const connected = await connect(tool, null, flags, {
    onMetered: (plan) => agreeToMeteredBilling(tool, { yes: flags.yes === true, plan }, env),
    label: basename(process.cwd()),
    onAbsent: offerStart,
  });
  // For an SDK, no tool is named: the user agent may name the program.
  const run = { session: `run-${crypto.randomUUID()}`, tool: tool.program === null ? null : tool.name };
  const secret = await nameSecret(connected, run.session, flags, budget);
  const connection = { ...connected.connection, secret, run };
  const here = { ...connected, connection };
  explainRun(here, args);
  const started = Date.now();
  const statusline = planStatusline(connected, flags);
  let endRecording = async (): Promise<void> => {};
  try {
    const setting = { ...prepare(tool, connection, env), ...(statusline !== null && { statusline }) };
    if (flags.record !== undefined) endRecording = await record(flags.record, connected, run.session);
    const all = [...nameModel(tool, connection, args), ...args];
    return await startTool(here, setting, program, all);
  } finally {
    await endRecording();
    const ended = { session: run.session, budget, started };
    const text = flags.quiet === true ? "" : await describeEnd(here, flags, ended);
    if (text !== "") printNote(text, "dim");
  }
}

const NEEDS_CONFIG = "needs the config file of a gateway on this machine.";

function checkFlags({ title, hasStatusline }: Tool, { record: recording, statusline }: RunFlags): void {
  if (recording !== undefined && !RECORDING_NAME.test(recording))
    refuseUsage("--record: the name of a recording is letters, digits, - and _.");
  if (statusline === true && hasStatusline !== true)
    refuseUsage(`--statusline: ${title} has no status line that can be set.`);
}

/** Names the run in the key. Older gateways refuse such a key,
 *  so they get it only with a budget. */
async function nameSecret(
  { connection: { secret }, loaded }: ToolConnection,
  id: string,
  flags: RunFlags,
  budget: string | null,
): Promise<string> {
  const isKnown = isHere(flags) && loaded !== null && (await readRun(id, loaded)) !== null;
  return isKnown || budget !== null ? nameRun(secret, id, budget) : secret;
}

function readBudget(text: string | undefined): string | null {
  if (text === undefined) return null;
  const usd = text.replace(/^\$/, "").replace(/^\./, "0.");
  if (/^(?=.*[1-9])\d{1,9}(?:\.\d{1,9})?$/.test(usd)) return usd;
  return refuseUsage("--budget is an amount in USD, as in --budget 0.50.");
}

/** Asks the private socket: a key alone must not make the gateway write files. */
async function record(
  name: string,
  { loaded }: ToolConnection,
  session: string,
): Promise<() => Promise<void>> {
  if (loaded === null) return refuseUsage(`--record ${NEEDS_CONFIG}`);
  const ask = (wanted: string | null) => {
    const call = { ledgerPath: loaded.catalog.ledger.path, body: { session, name: wanted } };
    return readDocument<{ folder: string; requests: number }>(call, "POST", "actions/record-run");
  };
  const { folder } = (await ask(name)) ?? fail(NOT_RUNNING);
  printNote(`● recording: prompts and answers of this run are written to ${folder}`, "yellow");
  return async () => {
    const ended = await ask(null).catch(() => null);
    if (ended === null) return printNote(`recorded as long as the gateway answered, in ${folder}`);
    const { requests } = ended;
    const advice = `No request was recorded. Put \`record: ${name}\` on the tool's key instead.`;
    printNote(requests === 0 ? advice : `recorded: ${formatCount(requests, "request")} in ${folder}`);
  };
}

export async function agreeToMeteredBilling(
  tool: Tool,
  { yes, plan }: { readonly yes: boolean; readonly plan: string | null },
  env: NodeJS.ProcessEnv,
): Promise<void> {
  const login = tool.findLogin?.(env) ?? null;
  const path = join(stateFolder(env), "agreed-tools.json");
  const agreed = z.array(z.string()).safeParse(parseJson(readOwn(path) ?? "")).data ?? [];
  if (login === null || agreed.includes(tool.name)) return;
  const notice =
    `${tool.title} is signed in to ${login} with a subscription. ` +
    "Through the gateway, an API credential pays for every request.";
  const instead = plan === null ? "" : ` For the plan, add --group ${plan}.`;
  if (!yes && !canPrompt())
    refuseUsage(`${notice} If you want that, add --yes before the tool's name.${instead}`);
  if (!yes && !(await askYes(`${notice} Go on?`))) fail("Nothing was started.");
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  replaceFile(path, `${JSON.stringify([...agreed, tool.name])}\n`);
}

function explainRun({ tool, connection, key }: ToolConnection, words: readonly string[]): void {
  const given = { words, env: process.env };
  for (const text of tool.describe?.(connection, given.env, words) ?? []) if (text !== false) printNote(text);
  if (key === null) return;
  printNote(describeRoute(tool, key), "dim");
  const model = describeForeignModel(tool, connection, key.group, given);
  if (model !== null) printNote(model, "dim");
  const lacking = explainModels(tool, connection, key.group, given);
  if (lacking !== null) printNote(lacking, "yellow");
}

function describeRoute(
  tool: Tool,
  { name, group }: { readonly name: string; readonly group: Group },
): string {
  const hosts = [...new Set(group.channels.map(({ baseUrl }) => baseUrl.host))];
  const title = tool.title.replace(/^the /, "The ");
  const start = `${title}: key ${name}, group ${group.name}`;
  if (hosts.length === 0) return `${start}. Its channels are disabled, so each request is refused.`;
  return `${start} (${hosts.join(", ")}), ${describeCost(group)}.`;
}

function describeCost({ usesLogin, channels, multiplier }: Group): string {
  if (usesLogin) return "with its own login, which is passed on: a plan pays";
  const paid = channels.filter(({ free }) => !free).map(({ name }) => name);
  if (paid.length === 0) return "free of charge";
  const where = paid.length === channels.length ? "" : ` on ${paid.join(", ")}`;
  const rate = multiplier === "1" ? "" : ` × ${multiplier}`;
  return `billed by use at official prices${rate}${where}`;
}

function explainModels(
  { title, ownModels, needsModels }: Tool,
  { foreign, models }: Connection,
  group: Group,
  given: Given,
): string | null {
  const [first] = group.channels;
  if (first === undefined) return null;
  if (ownModels !== undefined && findNamedModel(ownModels, given) !== null) return null;
  if (models.length > 0 || (needsModels !== true && foreign?.main !== null)) return null;
  const advice = `gateway channels set ${first.name} models=NAME`;
  return `No model of the group ${group.name} is known, and ${title} needs their names: ${advice}`;
}

function nameModel({ ownModels }: Tool, connection: Connection, words: readonly string[]): string[] {
  const model = mainModelOf(connection);
  if (ownModels?.isFixed !== true || connection.foreign === undefined || model === null) return [];
  const isNamed = findNamedModel(ownModels, { words, env: process.env }) !== null;
  return isNamed ? [] : [ownModels.flags[0] ?? "", model];
}

function planStatusline({ tool, key, loaded }: ToolConnection, flags: RunFlags): string | null {
  if (tool.hasStatusline !== true) return null;
  const isWanted = flags.statusline === true;
  if (loaded === null && isWanted) refuseUsage(`--statusline ${NEEDS_CONFIG}`);
  if (loaded === null || (!isWanted && !loaded.catalog.statusline)) return null;
  const words = [...findOwnCommand(), "statusline", "--ledger", loaded.catalog.ledger.path];
  return [...words, ...(key === null ? [] : ["--key", key.name])].map(quoteWord).join(" ");
}

const RUNNABLE = [...TOOLS.keys()].filter((name) => !ENV_TOOLS.has(name));

function showTools(flags: RunFlags): number {
  const rows = RUNNABLE.map((name) => findTool(name)).map(({ name, title, program, platforms }) => ({
    name,
    title,
    platforms,
    program: program?.name ?? null,
    path: program === null ? null : Bun.which(program.name),
    install: program?.install ?? null,
  }));
  const columns: Columns<(typeof rows)[number]> = [
    ["TOOL", "name"],
    ["NAME", ({ title }) => title.replace(/^the /, ""), "text", { spare: 1 }],
    ["PLATFORMS", "platforms", "text", { spare: 2 }],
    ["WHERE IT IS, OR HOW TO INSTALL IT", ({ path, install }) => path ?? install ?? "a library"],
  ];
  if (flags.json === true) printJson(rows);
  else printLines(drawRows(rows, columns));
  return 0;
}

async function startTool(
  { tool, connection }: ToolConnection,
  setting: ToolEnvironment,
  program: string,
  args: readonly string[],
): Promise<number> {
  const kept = Object.entries(process.env).filter(([name]) => !setting.unset.includes(name));
  const env = { ...Object.fromEntries(kept), ...setting.env };
  const isEnough =
    setting.statusline === undefined && (tool.file?.(connection, setting, process.env) ?? null) === null;
  if (tool.overlay === undefined || isEnough) return runProgram(program, [...setting.args, ...args], env);
  const folder = mkdtempSync(join(tmpdir(), "gateway-run-"));
  try {
    const more = tool.overlay(connection, setting, process.env, folder);
    return await runProgram(program, [...more.args, ...setting.args, ...args], { ...env, ...more.env });
  } finally {
    tool.keep?.(process.env, folder);
    removeFolder(folder);
  }
}

function findProgram({ name, title, program }: Tool, args: readonly string[]) {
  const [first, ...rest] = args;
  if (program === null && first === undefined)
    return refuseUsage(`${title} is a library: name a command: \`gateway run ${name} python app.py\`.`);
  const wanted = program?.name ?? first ?? "";
  const way = program === null ? "" : ` Install it with \`${program.install}\`.`;
  const found = Bun.which(wanted) ?? fail(`There is no program ${wanted} on the PATH.${way}`);
  return { program: found, args: program === null ? rest : args };
}

/** A terminal sends these to the process group: the tool gets them. */
const TERMINAL_SIGNALS = ["SIGINT", "SIGQUIT"] as const;
const FORWARDED_SIGNALS = ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"] as const;

async function runProgram(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  // Listens before the tool starts:
  // otherwise a signal could end this process alone.
  const waiting: NodeJS.Signals[] = [];
  let send = (signal: NodeJS.Signals): void => void waiting.push(signal);
  const pass = (signal: NodeJS.Signals): void => send(signal);
  const ignore = (): void => {};
  for (const signal of FORWARDED_SIGNALS) process.on(signal, pass);
  for (const signal of TERMINAL_SIGNALS) process.on(signal, process.stdin.isTTY ? ignore : pass);
  const child = Bun.spawn([...findStart(program), ...args], {
    env,
    stdin: "inherit",
    stdout: "inherit",
    stderr: "inherit",
  });
  send = (signal) => child.kill(signal);
  waiting.forEach(send);
  return child.exited;
}

export async function offerStart(loaded: LoadedConfig): Promise<Address> {
  const absent = `No gateway is running with ${loaded.path}. Start it with \`gateway serve\``;
  if (!canPrompt()) return fail(`${absent}, or \`gateway service install --enable\`.`);
  if (!(await askYes("The gateway is not running. Start it in the background?", true)))
    return fail(`${absent}.`);
  return startInBackground(loaded);
}

const START_WAIT_MS = 30_000;

async function startInBackground({ path, catalog }: LoadedConfig): Promise<Address> {
  const log = join(stateFolder(process.env), "gateway.log");
  const { pid, hasEnded } = spawnDetached(path, log);
  const deadline = performance.now() + START_WAIT_MS;
  while (!hasEnded() && performance.now() < deadline) {
    const running = await findRunning(catalog.ledger.path);
    if (running !== null) {
      const base = formatBaseUrl(running.address);
      const stop = `\`${PLATFORM.end(pid)}\` stops it`;
      printNote(`The gateway runs on ${base} (process ${pid}; ${stop}). Its log: ${log}`);
      return running.address;
    }
    await Bun.sleep(30);
  }
  const last = readFileSync(log, "utf8").trimEnd().split("\n").slice(-3).join("\n");
  return fail(`The gateway did not start. The end of its log ${log}:\n${last}`);
}

function spawnDetached(configPath: string, log: string): { pid: number; hasEnded: () => boolean } {
  mkdirSync(dirname(log), { recursive: true, mode: 0o700 });
  const output = openOwn(log, { flags: constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT });
  const [program = "", ...first] = findOwnCommand();
  const child = spawn(program, [...first, "serve", "--config", configPath], {
    cwd: dirname(configPath),
    detached: true,
    stdio: ["ignore", output, output],
  });
  closeSync(output);
  let ended = false;
  child.once("exit", () => (ended = true));
  child.once("error", () => (ended = true));
  child.unref();
  return { pid: child.pid ?? 0, hasEnded: () => ended };
}

const TIMEOUT_MS = 2000;

function readRun(id: string, { catalog }: LoadedConfig): Promise<RunReport | null> {
  const call = { ledgerPath: catalog.ledger.path, timeoutMs: TIMEOUT_MS };
  return readDocument<RunReport>(call, "GET", `reports/run?id=${id}`).catch(() => null);
}

interface EndedRun {
  readonly session: string;
  readonly budget: string | null;
  readonly started: number;
}

async function describeEnd(
  { connection, key, loaded }: ToolConnection,
  flags: RunFlags,
  run: EndedRun,
): Promise<string> {
  if (loaded === null || !isHere(flags)) {
    if (run.budget === null) return "";
    const { status } = await fetchList(connection);
    const states: Readonly<Record<string, string>> = { 200: "is not spent", 429: "is spent" };
    const state = states[`${status}`] ?? "was the limit";
    return `This run: its budget of $${run.budget} ${state}. Only its gateway knows the cost.`;
  }
  const report = await readRun(run.session, loaded);
  const list = `gateway sessions${key === null ? "" : ` --key ${quoteWord(key.name)}`}`;
  if (report !== null) return describeRun(report, run, list);
  return `This run: the gateway does not answer, and cannot tell the cost. ${list}`;
}

function isHere({ url, record: recording }: RunFlags): boolean {
  return url === undefined || recording !== undefined;
}

function describeRun(report: RunReport, { budget, started }: EndedRun, list: string): string {
  const { requests, unknown, unpriced, refused, is_spent, charge_usd: charge, misses, sessions } = report;
  const isPart = Date.parse(report.since) > started;
  const isFree = parseDecimal(charge).units === 0n && unknown === 0 && unpriced === null;
  if (isFree && !is_spent && !isPart) return "";
  const what = isPart ? "This run, since the gateway started again" : "This run";
  const { cache_hit_rate: rate } = report;
  const cached = rate === null ? "" : `, ${Math.floor(100 * rate)} % from the cache`;
  const refusals = refused === 0 ? "" : `: ${formatCount(refused, "request")} refused`;
  const end = is_spent ? ` The budget of $${budget} is spent${refusals}.` : "";
  const lack = unpriced === null ? "" : ` "${unpriced}" has no price: \`gateway prices set\` gives it one.`;
  const shows = sessions.map((session) => ` gateway sessions show ${session}`).join("");
  const more = sessions.length > 1 ? ` ${sessions.length} sessions: ${list}` : shows;
  const spent = `${formatCount(requests, "request")}, ${describeSpent(report)}`;
  return `${what}: ${spent}${cached}${describeMisses(misses)}.${end}${lack}${more}`;
}

function describeSpent({ requests, unknown, charge_usd: charge }: RunReport): string {
  if (unknown === 0) return formatCents(charge);
  const doubt = "of unknown cost";
  if (unknown === requests) return doubt;
  return `${formatCents(charge)} without ${formatCount(unknown, "request")} ${doubt}`;
}

function describeMisses({ count, usd, cause }: RunReport["misses"]): string {
  if (cause === "") return "";
  return count === 1
    ? `; one miss cost ${formatCents(usd)} (${cause})`
    : `; ${count} misses cost ${formatCents(usd)} (mostly: ${cause})`;
}
