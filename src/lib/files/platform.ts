// What differs between the systems. Other files ask this table.

import { constants, readFileSync } from "node:fs";

import { quoteWord } from "../text/shell-word.ts";

interface Platform {
  /** Files have owners and modes, and folders can be synced. */
  readonly hasModes: boolean;
  /** An open file can be replaced and removed. */
  readonly replacesOpen: boolean;
  /** HTTP is served on unix sockets. */
  readonly hasSockets: boolean;
  /** Flags of `open`: do not follow a link, and do not wait for a pipe. */
  readonly noFollow: number;
  readonly noBlock: number;
  /** The command by which users keep others out of a file. */
  keepOut(path: string): string;
  end(pid: number): string;
}

const POSIX: Platform = {
  hasModes: true,
  replacesOpen: true,
  hasSockets: true,
  noFollow: constants.O_NOFOLLOW,
  noBlock: constants.O_NONBLOCK,
  keepOut: (path) => `chmod 600 ${quoteWord(path)}`,
  end: (pid) => `kill ${pid}`,
};

/** Without the flags, own-file.ts compares an opened file with what was at its path before. */
const WINDOWS: Platform = {
  hasModes: false,
  replacesOpen: false,
  hasSockets: false,
  noFollow: 0,
  noBlock: 0,
  keepOut: (path) => `icacls ${quoteWord(path)} /inheritance:r /grant:r "%USERNAME%:F"`,
  end: (pid) => `taskkill /F /PID ${pid}`,
};

export const PLATFORM: Platform = process.platform === "win32" ? WINDOWS : POSIX;

/** Changes with each start of the machine. Null: unknown (macOS, Windows). */
export function readBootId(): string | null {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim() || null;
  } catch {
    return null;
  }
}

/** `folder` holds the module and its worker.ts. In the executable, modules are
 *  at the root, and workers in their folders. */
export function locateWorker(moduleUrl: string, folder: string): URL {
  const isSource = moduleUrl.includes(`/src/${folder}/`);
  return new URL(isSource ? "./worker.ts" : `./${folder}/worker.js`, moduleUrl);
}
