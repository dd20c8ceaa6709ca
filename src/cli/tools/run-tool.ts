// `gateway run`: the tool as a child that has the terminal to itself.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { connect, findTool, type ToolFlags } from "./connection.ts";
import { tryGateway } from "../control.ts";
import { openConfig } from "../config-access.ts";
import type { Prepared } from "./overlay.ts";
import { prepare } from "./prepare.ts";
import { fail, refuseUsage, tell } from "../terminal.ts";
import type { Tool } from "./tools.ts";

interface Start {
  readonly program: string;
  readonly args: readonly string[];
}

/** The tool's exit status; a signal that ended it counts as shells count it. */
export async function runTool(name: string, words: readonly string[], flags: ToolFlags): Promise<number> {
  const tool = findTool(name);
  const start = findProgram(tool, words);
  const connected = await connect(tool, null, flags);
  if (connected.running === false) {
    tell("No gateway is running for this config: start it with `gateway serve`, or the tool finds nothing.");
  }
  if (connected.key?.isNew === true && connected.running === true)
    await untilTaken(connected.key.name, flags);
  return startTool(tool, prepare(tool, connected.connection, process.env), start);
}

async function startTool(tool: Tool, setting: Prepared, { program, args }: Start): Promise<number> {
  const env = { ...leaveOut(process.env, setting.unset), ...setting.env };
  const { overlay } = tool;
  if (overlay === undefined || overlay.find(process.env, setting) === null)
    return wait(program, [...setting.args, ...args], env);
  const folder = mkdtempSync(join(tmpdir(), "gateway-run-"));
  try {
    const more = overlay.make(process.env, setting, folder);
    return await wait(program, [...more.args, ...setting.args, ...args], { ...env, ...more.env });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function findProgram(tool: Tool, args: readonly string[]): Start {
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

function leaveOut(env: NodeJS.ProcessEnv, names: readonly string[]): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !names.includes(name)));
}

const spendSchema = z.object({ spend: z.object({ by_key: z.record(z.string(), z.unknown()) }) });
const TAKEN_WITHIN_MS = 3000;

/** A running gateway looks at its config once in a while: until then it would refuse the new key. */
async function untilTaken(key: string, flags: ToolFlags): Promise<void> {
  const { catalog } = openConfig(flags);
  const deadline = performance.now() + TAKEN_WITHIN_MS;
  while (performance.now() < deadline) {
    const state = spendSchema.safeParse(
      await tryGateway({ ledgerPath: catalog.ledger.path }, "GET", "/state"),
    );
    if (!state.success || Object.hasOwn(state.data.spend.by_key, key)) return;
    await Bun.sleep(50);
  }
}

/** Keys pressed on the terminal go to the whole group of processes, the tool included: it decides what they mean. */
const FROM_TERMINAL = ["SIGINT", "SIGQUIT"] as const;
const PASSED_ON = ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"] as const;

async function wait(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  // Before the tool is there: a signal in between would end this process and leave the tool behind.
  const waiting: NodeJS.Signals[] = [];
  let send = (signal: NodeJS.Signals): void => void waiting.push(signal);
  const pass = (signal: NodeJS.Signals): void => send(signal);
  const ignore = (): void => {};
  for (const signal of PASSED_ON) process.on(signal, pass);
  for (const signal of FROM_TERMINAL) process.on(signal, process.stdin.isTTY ? ignore : pass);
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
