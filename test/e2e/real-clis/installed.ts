// The released tools on this machine, and how tests start them.

import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { TOOLS } from "../../../src/cli/tools/programs/tools.ts";

/** Empty: the tests of this folder are skipped. "1": the tools are downloaded. Otherwise the folder of the tools. */
export const WANTED = process.env["REAL_CLIS"] ?? "";

const PACKAGES = [
  "@anthropic-ai/claude-code",
  "@openai/codex",
  "@google/gemini-cli",
  "opencode-ai",
  "@qwen-code/qwen-code",
  "@github/copilot",
  "@earendil-works/pi-coding-agent",
  "@continuedev/cli",
  "cline",
];
/** These scripts fetch the program for this machine; npm does not run them by itself. */
const SCRIPTS = ["@anthropic-ai/claude-code/install.cjs", "opencode-ai/postinstall.mjs"];

const PROGRAMS = "node_modules/.bin";
const IS_READY = WANTED !== "1" && existsSync(join(WANTED, PROGRAMS));

/** False if the user's folder has other tools, but not this one. */
export function hasTool(name: string): boolean {
  return !IS_READY || existsSync(join(WANTED, PROGRAMS, TOOLS.get(name)?.program?.name ?? name));
}

/** Returns the folder of the tools. Nothing is added to a folder that has some. */
export async function findTools(download: string): Promise<string> {
  if (IS_READY) return WANTED;
  const tools = WANTED === "1" ? download : WANTED;
  mkdirSync(tools, { recursive: true });
  await Bun.write(join(tools, "package.json"), "{}");
  await finish(tools, ["npm", "install", "--no-audit", "--no-fund", ...PACKAGES]);
  for (const script of SCRIPTS) await finish(tools, ["node", join(tools, "node_modules", script)]);
  return tools;
}

async function finish(cwd: string, command: string[]): Promise<void> {
  const child = Bun.spawn(command, { cwd, stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  const complaint = await child.stderr.text();
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")}: ${complaint}`);
}

export interface Surroundings {
  readonly tools: string;
  /** Of the user who starts the tool: the home, the temporary files, the work. */
  readonly folder: string;
  readonly env?: Readonly<Record<string, string>>;
  /** The tool is ended after this time. */
  readonly mostMs?: number;
}

export interface Finished {
  readonly stdout: string;
  readonly stderr: string;
  readonly status: number;
  /** It did not end by itself in time. */
  readonly wasEnded: boolean;
}

export async function startProgram(command: readonly string[], around: Surroundings): Promise<Finished> {
  const { tools, folder, env = {}, mostMs } = around;
  const [work, home] = [join(folder, "work"), join(folder, "home")];
  mkdirSync(work, { recursive: true });
  mkdirSync(home, { recursive: true });
  const child = Bun.spawn([...command], {
    cwd: work,
    // A group of its own, because some tools start others.
    detached: true,
    env: {
      PATH: `${join(tools, PROGRAMS)}:${process.env["PATH"]}`,
      HOME: home,
      TMPDIR: folder,
      XDG_RUNTIME_DIR: folder,
      TERM: "xterm-256color",
      ...env,
    },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  let wasEnded = false;
  const end = (): void => {
    wasEnded = true;
    process.kill(-child.pid, "SIGKILL");
  };
  const timer = mostMs === undefined ? undefined : setTimeout(end, mostMs);
  const [stdout, stderr, status] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ]);
  clearTimeout(timer);
  return { stdout, stderr, status, wasEnded };
}
