// The released tools on this machine, and how tests start them.

import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { TOOLS } from "../../../src/cli/tools/programs/tools.ts";

/** The folder in which they are installed. Empty: the tests of this folder are skipped. */
export const WANTED = process.env["REAL_CLIS"] ?? "";

const PROGRAMS = "node_modules/.bin";

/** The folder may have some of the tools. */
export function hasTool(name: string): boolean {
  return existsSync(join(WANTED, PROGRAMS, TOOLS.get(name)?.program?.name ?? name));
}

export interface Surroundings {
  /** Of the user who starts the tool: the home, the temporary files, the work. */
  readonly folder: string;
  readonly env?: Readonly<Record<string, string>>;
  /** The tool is ended after this time. */
  readonly mostMs?: number;
  /** Its user stops it then. */
  readonly stopped?: Promise<void>;
}

export interface Finished {
  readonly stdout: string;
  readonly stderr: string;
  readonly status: number;
  /** It did not end by itself in time. */
  readonly wasEnded: boolean;
}

export async function startProgram(command: readonly string[], around: Surroundings): Promise<Finished> {
  const { folder, env = {}, mostMs, stopped } = around;
  const [work, home] = [join(folder, "work"), join(folder, "home")];
  mkdirSync(work, { recursive: true });
  mkdirSync(home, { recursive: true });
  const child = Bun.spawn([...command], {
    cwd: work,
    // A group of its own, because some tools start others.
    detached: true,
    env: {
      PATH: `${join(WANTED, PROGRAMS)}:${process.env["PATH"]}`,
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
  const signal = (name: NodeJS.Signals): void => {
    try {
      process.kill(-child.pid, name);
    } catch {
      // It has just ended.
    }
  };
  const end = (): void => {
    wasEnded = true;
    signal("SIGKILL");
  };
  void stopped?.then(() => signal("SIGINT"));
  const timer = mostMs === undefined ? undefined : setTimeout(end, mostMs);
  const [stdout, stderr, status] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ]);
  clearTimeout(timer);
  return { stdout, stderr, status, wasEnded };
}
