// The action of `gateway run`: starts the tool as a child process that owns the terminal.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { connect, findTool, type ToolFlags } from "./connection.ts";
import { tryGateway } from "../control.ts";
import { openConfig } from "../config-access.ts";
import type { ToolEnvironment } from "./overlay.ts";
import { prepare } from "./prepare.ts";
import { fail, refuseUsage, tell } from "../terminal.ts";
import type { Tool } from "./tools.ts";

interface Program {
  readonly program: string;
  readonly args: readonly string[];
}

/** Returns the tool's exit status, with 128 + N for signal N, as shells do. */
export async function runTool(name: string, words: readonly string[], flags: ToolFlags): Promise<number> {
  const tool = findTool(name);
  const start = findProgram(tool, words);
  const connected = await connect(tool, null, flags);
  if (connected.running === false) {
    tell("No gateway is running for this config: start it with `gateway serve`, or the tool finds nothing.");
  }
  if (connected.key?.isNew === true && connected.running === true)
    await waitUntilKeyIsKnown(connected.key.name, flags);
  return startTool(tool, prepare(tool, connected.connection, process.env), start);
}

async function startTool(tool: Tool, setting: ToolEnvironment, { program, args }: Program): Promise<number> {
  const env = { ...omitVariables(process.env, setting.unset), ...setting.env };
  const { overlay } = tool;
  if (overlay === undefined || overlay.find(process.env, setting) === null)
    return runProgram(program, [...setting.args, ...args], env);
  const folder = mkdtempSync(join(tmpdir(), "gateway-run-"));
  try {
    const more = overlay.write(process.env, setting, folder);
    return await runProgram(program, [...more.args, ...setting.args, ...args], { ...env, ...more.env });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function findProgram(tool: Tool, args: readonly string[]): Program {
  const [first, ...rest] = args;
  if (tool.program === null && first === undefined) {
    return refuseUsage(
      `${tool.title} is a library: name the command that uses it, as in \`gateway run ${tool.name} -- python app.py\`.`,
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

function omitVariables(env: NodeJS.ProcessEnv, names: readonly string[]): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !names.includes(name)));
}

const spendSchema = z.object({ spend: z.object({ by_key: z.record(z.string(), z.unknown()) }) });
const KEY_RELOAD_WAIT_MS = 3000;

/** A running gateway refuses the new key until it has reloaded its config. */
async function waitUntilKeyIsKnown(key: string, flags: ToolFlags): Promise<void> {
  const { catalog } = openConfig(flags);
  const deadline = performance.now() + KEY_RELOAD_WAIT_MS;
  while (performance.now() < deadline) {
    const state = spendSchema.safeParse(
      await tryGateway({ ledgerPath: catalog.ledger.path }, "GET", "/state"),
    );
    if (!state.success || Object.hasOwn(state.data.spend.by_key, key)) return;
    await Bun.sleep(50);
  }
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
  const child = Bun.spawn([program, ...args], {
    env,
    stdin: "inherit",
    stdout: "inherit",
    stderr: "inherit",
  });
  send = (signal) => child.kill(signal);
  waiting.forEach(send);
  return child.exited;
}
