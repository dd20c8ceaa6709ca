// Finds the released tools on this machine, and starts them for tests.

import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { TOOLS } from "../../../src/cli/tools/tools.ts";

/** The folder in which the tools are installed. Empty: the tests of this folder are skipped. */
export const WANTED = process.env["REAL_CLIS"] ?? "";

const PROGRAMS = "node_modules/.bin";

/** The time limit for a test that hangs by itself. A tool that hangs is ended much earlier. */
export const TEST_MS = 3_600_000;
const MOST_IDLE_MS = 180_000;
const LOOK_MS = 250;
/** How long a tool on a terminal goes on after its answer, because it may still be sending other requests. */
const LEFT_AFTER_MS = 3000;

/** Whether the folder has this tool: it may have only some of the tools. */
export function hasTool(name: string): boolean {
  return existsSync(join(WANTED, PROGRAMS, TOOLS.get(name)?.program?.name ?? name));
}

export interface Surroundings {
  /** The folder of the user who starts the tool: the home, the temporary files, the work. */
  readonly folder: string;
  readonly env?: Readonly<Record<string, string>>;
  /** The tool is killed when it was idle this long in all. While it waits for a processor, it is not idle, so
   *  that no tool is killed only because the machine is busy. */
  readonly mostIdleMs?: number;
  /** When this resolves, the tool's user stops it. */
  readonly stopped?: Promise<void>;
  /** The tool gets a terminal. Its user leaves a moment after the tool has shown these words. */
  readonly leftAfter?: RegExp;
}

export interface Finished {
  readonly stdout: string;
  readonly stderr: string;
  readonly status: number;
  /** The test ended the tool, which did not end by itself in time. */
  readonly wasEnded: boolean;
}

export async function startProgram(command: readonly string[], around: Surroundings): Promise<Finished> {
  const { folder, env = {}, mostIdleMs = MOST_IDLE_MS, stopped, leftAfter } = around;
  const [work, home] = [join(folder, "work"), join(folder, "home")];
  mkdirSync(work, { recursive: true });
  mkdirSync(home, { recursive: true });
  let shown = "";
  const see = (bytes: Uint8Array): void => {
    const isFirst = leftAfter?.test(shown) === false;
    shown += Buffer.from(bytes).toString();
    if (isFirst && leftAfter.test(shown)) setTimeout(() => signal("SIGTERM"), LEFT_AFTER_MS);
  };
  const data = (terminal: Bun.Terminal, bytes: Uint8Array): void => {
    see(bytes);
    // Codex waits until it knows where the cursor is.
    if (Buffer.from(bytes).includes("\u001b[6n")) terminal.write("\u001b[1;1R");
  };
  const child = Bun.spawn([...command], {
    cwd: work,
    // The tool gets a group of processes of its own, because some tools start others.
    detached: true,
    env: {
      PATH: `${join(WANTED, PROGRAMS)}:${process.env["PATH"]}`,
      HOME: home,
      TMPDIR: folder,
      XDG_RUNTIME_DIR: folder,
      TERM: "xterm-256color",
      ...env,
    },
    ...(leftAfter === undefined
      ? { stdin: "ignore", stdout: "pipe", stderr: "pipe" }
      : { terminal: { cols: 100, rows: 30, data } }),
  });
  let wasEnded = false;
  const signal = (name: NodeJS.Signals): void => {
    try {
      process.kill(-child.pid, name);
    } catch {
      // Nobody gets the signal: the tool has just ended.
    }
  };
  const end = (): void => {
    wasEnded = true;
    signal("SIGKILL");
  };
  void stopped?.then(() => signal("SIGINT"));
  let idleMs = 0;
  const timer = setInterval(() => {
    idleMs += isBusy(child.pid) ? 0 : LOOK_MS;
    if (idleMs >= mostIdleMs) end();
  }, LOOK_MS);
  const [stdout, stderr, status] = await Promise.all([
    child.stdout?.text() ?? "",
    child.stderr?.text() ?? "",
    child.exited,
  ]);
  clearInterval(timer);
  return { stdout: stdout + shown, stderr, status, wasEnded };
}

/** Whether a thread of this group of processes runs, or waits for a processor or a disk. False if the system does not say it. */
function isBusy(group: number): boolean {
  const list = (path: string): string[] => {
    try {
      return readdirSync(path);
    } catch {
      return [];
    }
  };
  const readStat = (path: string): string[] => {
    try {
      // The process's name, which comes first, may have any characters.
      return readFileSync(`${path}/stat`, "utf8")
        .replace(/^.*\) /s, "")
        .split(" ");
    } catch {
      return [];
    }
  };
  return list("/proc").some((pid) => {
    if (!/^\d+$/.test(pid) || readStat(`/proc/${pid}`)[2] !== String(group)) return false;
    const threads = list(`/proc/${pid}/task`);
    return threads.some((thread) => /[RD]/.test(readStat(`/proc/${pid}/task/${thread}`)[0] ?? ""));
  });
}
