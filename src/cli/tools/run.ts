// The action of `gateway run`: starts the tool as a child process that owns the terminal.

import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { ENV_TOOLS } from "../../dialects/platforms.ts";
import { hasLocalConfig, placeConfig } from "../../config/file/find.ts";
import { explainRetired } from "../../config/file/retired.ts";
import { nameRun } from "../../gateway/intake/runs.ts";
import { removeFolder } from "../../lib/files/own-file.ts";
import { quoteWord } from "../../lib/text/shell-word.ts";
import { findOwnCommand } from "../terminal/own-command.ts";
import { describeRun, readRun } from "./run-report.ts";
import { offerStart } from "./background.ts";
import { connect, findTool, type ToolConnection, type ToolFlags } from "./connection.ts";
import { agreeToMeteredBilling, findSubscriptionLogin } from "./logins.ts";
import type { Connection, Overlay, Tool, ToolEnvironment } from "./tool.ts";
import { prepare } from "./environment.ts";
import { printTable } from "../terminal/table.ts";
import { describeForeignModel, findNamedModel } from "./models.ts";
import { describeRoute, explainModels } from "./route.ts";
import { askYes, canPrompt, fail, printJson, printNote, refuseUsage } from "../terminal/terminal.ts";
import { measure } from "../terminal/text.ts";
import { mainModelOf } from "./model-choice.ts";
import { TOOLS } from "./tools.ts";
import { findStart } from "./shells.ts";

export interface RunFlags extends ToolFlags {
  readonly yes?: true;
  readonly list?: true;
  readonly statusline?: true;
  readonly record?: string;
  readonly budget?: string;
  readonly quiet?: true;
  readonly json?: true;
}

/** As `gateway init --login TOOL` does. */
type WriteConfig = (flags: { readonly login: string; readonly config?: string }) => Promise<void>;

interface Program {
  readonly program: string;
  readonly args: readonly string[];
}

/** Returns the tool's exit status, with 128 + N for signal N, as shells do. */
export async function runTool(
  name: string | undefined,
  words: readonly string[],
  flags: RunFlags,
  writeConfig: WriteConfig,
): Promise<number> {
  if (flags.list === true) return showTools(flags);
  if (name === undefined) return refuseUsage("Name a tool. `gateway run --list` shows them.");
  const retired = explainRetired(`run ${name}`);
  if (retired !== null) refuseUsage(retired);
  const budget = readBudget(flags.budget);
  const tool = findTool(name);
  // Scripts may still use the `--` that version 0.1 needed.
  const start = findProgram(tool, words[0] === "--" ? words.slice(1) : words);
  await offerLogin(tool, flags, writeConfig);
  const found = await connect(tool, null, flags, {
    owns: true,
    onMetered: (plan) => agreeToMeteredBilling(tool, { yes: flags.yes === true, plan }, process.env),
    label: basename(process.cwd()),
    onAbsent: offerStart,
  });
  // What a library's user agent says of a program is better than the library's name here.
  const run = { session: `run-${crypto.randomUUID()}`, tool: tool.program === null ? null : tool.name };
  const secret = await nameSecret(found, run.session, flags, budget);
  const connected = { ...found, connection: { ...found.connection, secret, run } };
  await explainRun(connected, start.args);
  const { connection } = connected;
  const statusline = planStatusline(connected, flags);
  let endRecording = async (): Promise<void> => {};
  try {
    const settings = prepare(tool, connection, process.env);
    endRecording = await startRecording(flags.record, connection.base, run.session);
    const setting = { ...settings, ...(statusline !== null && { statusline }) };
    const args = [...nameModel(tool, connection, start.args), ...start.args];
    return await startTool(tool.overlay?.(connection), setting, { ...start, args });
  } finally {
    await endRecording();
    if (flags.quiet !== true) await explainCost(found, run.session, budget);
  }
}

/** A gateway that does not know what a key with a name behind it is refuses the key, as it must for a budget. */
async function nameSecret(
  { connection: { secret }, loaded }: ToolConnection,
  id: string,
  { url }: RunFlags,
  budget: string | null,
): Promise<string> {
  const isKnown = url === undefined && loaded !== null && (await readRun(id, loaded)) !== null;
  return isKnown || budget !== null ? nameRun(secret, id, budget) : secret;
}

async function explainCost({ loaded }: ToolConnection, id: string, budget: string | null): Promise<void> {
  const report = loaded && (await readRun(id, loaded));
  const text = report && describeRun(report, budget);
  if (text !== null && text !== "") printNote(text, "dim");
}

/** In USD; null: there is none. */
function readBudget(text: string | undefined): string | null {
  if (text === undefined) return null;
  const usd = text.replace(/^\$/, "");
  if (/^(?=.*[1-9])\d{1,9}(?:\.\d{1,9})?$/.test(usd)) return usd;
  return refuseUsage("--budget is an amount in USD, as in --budget 0.50.");
}

/** Returns what ends the recording. */
async function startRecording(name: string | undefined, base: string, session: string) {
  return name === undefined ? async () => {} : (await import("./record.ts")).recordRun(name, base, session);
}

/** Somebody with a plan and no config yet: the tool's own login is enough. */
async function offerLogin(tool: Tool, flags: RunFlags, writeConfig: WriteConfig): Promise<void> {
  const place = placeConfig(flags.config, process.env);
  if (tool.login === undefined || flags.url !== undefined || existsSync(place)) return;
  const login = findSubscriptionLogin(tool, process.env);
  if (login === null || hasLocalConfig(place)) return;
  const offer = `${tool.title} is signed in to ${login}. A config that passes this login on gives you a measured ${tool.title}: the plan pays, as it does without the gateway.`;
  if (!canPrompt())
    refuseUsage(`There is no config file yet. ${offer} \`gateway init --login ${tool.name}\` writes it.`);
  if (!(await askYes(`${offer} Write it now?`, true))) return;
  await writeConfig({ login: tool.name, ...(flags.config !== undefined && { config: flags.config }) });
}

/** What the user has to know before the tool owns the terminal. */
async function explainRun(
  { tool, connection, key }: ToolConnection,
  words: readonly string[],
): Promise<void> {
  for (const loss of [tool.describeLoss?.(connection), tool.describeRun?.(process.env, words)])
    if (loss !== undefined && loss !== null) printNote(loss);
  if (key !== null) {
    printNote(describeRoute(tool, key), "dim");
    const given = { words, env: process.env };
    const model = describeForeignModel(tool, connection, key.group, given);
    if (model !== null) printNote(model, "dim");
    const lacking = await explainModels(tool, connection, key.group, given);
    if (lacking !== null) printNote(lacking, "yellow");
  }
}

/** The argument that names the model, where nothing else does and the user names none. */
function nameModel({ ownModels }: Tool, connection: Connection, words: readonly string[]): string[] {
  const model = mainModelOf(connection);
  if (ownModels?.isFixed !== true || connection.foreign === undefined || model === null) return [];
  const [flag] = ownModels.flags;
  return flag === undefined || findNamedModel(ownModels, { words, env: process.env }) !== null
    ? []
    : [flag, model];
}

/** The command for the tool's status line. Null: it gets none. */
function planStatusline({ tool, key, loaded }: ToolConnection, flags: RunFlags): string | null {
  const isWanted = flags.statusline === true;
  if (tool.hasStatusline !== true)
    return isWanted ? refuseUsage(`--statusline: ${tool.title} has no status line that can be set.`) : null;
  if (loaded === null)
    return isWanted ? refuseUsage("--statusline needs the config file of a gateway on this machine.") : null;
  if (!isWanted && !loaded.catalog.statusline) return null;
  const words = [...findOwnCommand(), "statusline", "--ledger", loaded.catalog.ledger.path];
  return [...words, ...(key === null ? [] : ["--key", key.name])].map(quoteWord).join(" ");
}

/** `gateway run --list`. */
function showTools(flags: RunFlags): number {
  const rows = [...TOOLS.values()]
    .filter(({ name }) => !ENV_TOOLS.has(name))
    .map(({ name, title, program, platforms }) => ({
      name,
      title,
      platforms,
      program: program?.name ?? null,
      path: program === null ? null : Bun.which(program.name),
      install: program?.install ?? null,
    }));
  // A command that is cut cannot be copied: other columns give way.
  const longest = Math.max(...rows.map(({ install }) => measure(install ?? "")));
  if (flags.json === true) printJson(rows);
  else
    printTable(rows, [
      { title: "TOOL", name: true, read: ({ name }) => name },
      { title: "NAME", spare: 1, least: longest, read: ({ title }) => title.replace(/^the /, "") },
      { title: "PLATFORMS", spare: 2, least: longest, read: ({ platforms }) => platforms.join(", ") },
      {
        title: "WHERE IT IS, OR HOW TO INSTALL IT",
        least: longest,
        read: ({ program, path, install }) =>
          program === null ? "a library: name the command that uses it" : (path ?? install ?? ""),
      },
    ]);
  return 0;
}

async function startTool(
  overlay: Overlay | undefined,
  setting: ToolEnvironment,
  { program, args }: Program,
): Promise<number> {
  const kept = Object.entries(process.env).filter(([name]) => !setting.unset.includes(name));
  const env = { ...Object.fromEntries(kept), ...setting.env };
  const isEnough = setting.statusline === undefined && overlay?.find(process.env, setting) === null;
  if (overlay?.write === undefined || isEnough) return runProgram(program, [...setting.args, ...args], env);
  const folder = mkdtempSync(join(tmpdir(), "gateway-run-"));
  try {
    const more = overlay.write(process.env, setting, folder);
    return await runProgram(program, [...more.args, ...setting.args, ...args], { ...env, ...more.env });
  } finally {
    overlay.keep?.(process.env, folder);
    removeFolder(folder);
  }
}

function findProgram(tool: Tool, args: readonly string[]): Program {
  const [first, ...rest] = args;
  if (tool.program === null && first === undefined) {
    return refuseUsage(
      `${tool.title} is a library: name the command that uses it, as in \`gateway run ${tool.name} python app.py\`.`,
    );
  }
  const name = tool.program?.name ?? first ?? "";
  const program = Bun.which(name);
  if (program === null) {
    const way = tool.program === null ? "" : ` Install it with \`${tool.program.install}\`.`;
    return fail(`There is no program ${name} on the PATH.${way}`);
  }
  return { program, args: tool.program === null ? rest : args };
}

/** The terminal sends these to the whole process group, so that the tool gets them anyway. */
const TERMINAL_SIGNALS = ["SIGINT", "SIGQUIT"] as const;
const FORWARDED_SIGNALS = ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"] as const;

async function runProgram(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  // Listen before the tool starts: otherwise a signal could end this process and leave the tool running.
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
