// Runs the owner's command of `alerts:` for each warning about a limit: without a shell, with the details in environment
// variables, and for a limited time. Whatever it does, no request waits for it.

import type { ChildProcess } from "node:child_process";
import { dirname } from "node:path";
import { describeWarning, formatMoment, type LimitWarning } from "../../billing/limits/alerts.ts";
import { formatUsd } from "../../lib/money.ts";

export interface AlertCommand {
  run(warning: LimitWarning): void;
  /** Gives running commands a last moment, then ends them. */
  close(): Promise<void>;
}

export interface AlertCommandOptions {
  /** The program and its arguments; null: none. It is read for each warning, because the config may change. */
  readonly command: () => readonly string[] | null;
  /** Relative paths start from its folder. */
  readonly configPath: string;
  readonly warn: (text: string) => void;
}

const LIMIT_MS = 10_000;
const CLOSE_MS = 2000;
/** Thousands of keys may reach a percentage at the same time, above all of a limit of their group. */
const MAX_RUNNING = 16;

export function createAlertCommand({ command, configPath, warn }: AlertCommandOptions): AlertCommand {
  const running = new Map<ChildProcess, Promise<void>>();
  return {
    run: (warning) => {
      const [program, ...args] = command() ?? [];
      if (program === undefined) return;
      if (running.size >= MAX_RUNNING)
        return warn("too many alerts at once: the command of `alerts:` does not run for this one");
      // Loaded here, because a start without it takes 1 ms less.
      const { spawn } = process.getBuiltinModule("node:child_process");
      const child = spawn(program, args, {
        cwd: dirname(configPath),
        env: { ...process.env, ...describeInVariables(warning) },
        // A process group of its own, so that its children end with it.
        detached: true,
        stdio: ["ignore", "ignore", "inherit"],
        windowsHide: true,
      });
      const over = waitForEnd(child).then((problem) => {
        running.delete(child);
        if (problem !== null) warn(`the command of \`alerts:\`, ${program}, ${problem}`);
      });
      running.set(child, over);
    },
    close: async () => {
      const timer = setTimeout(() => [...running.keys()].forEach(endGroup), CLOSE_MS);
      await Promise.all(running.values());
      clearTimeout(timer);
    },
  };
}

/** What went wrong; null: nothing. */
async function waitForEnd(child: ChildProcess): Promise<string | null> {
  const { promise, resolve } = Promise.withResolvers<string | null>();
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    endGroup(child);
  }, LIMIT_MS);
  child.once("error", (error) => resolve(`cannot be started (${error.message})`));
  child.once("exit", (status, signal) => {
    if (isLate) resolve(`did not end within ${LIMIT_MS / 1000} s and was killed`);
    else if (status === 0) resolve(null);
    else resolve(signal === null ? `failed with status ${status}` : `was ended by ${signal}`);
  });
  const problem = await promise;
  clearTimeout(timer);
  return problem;
}

/** Documented in docs/money.md. */
function describeInVariables(warning: LimitWarning): Record<string, string> {
  const { holder, limit, resets, percent } = warning;
  const [usd, spent] = "usd" in warning ? [formatUsd(warning.usd), formatUsd(warning.spent)] : ["", ""];
  return {
    GATEWAY_ALERT_MESSAGE: describeWarning(warning),
    GATEWAY_ALERT_PERCENT: String(percent),
    GATEWAY_ALERT_KIND: holder.kind,
    GATEWAY_ALERT_NAME: holder.name,
    GATEWAY_ALERT_LIMIT: limit,
    GATEWAY_ALERT_LIMIT_USD: usd,
    GATEWAY_ALERT_SPENT_USD: spent,
    GATEWAY_ALERT_RESETS: resets === null ? "" : formatMoment(resets),
  };
}

function endGroup(child: ChildProcess): void {
  try {
    if (child.pid === undefined || process.platform === "win32") child.kill("SIGKILL");
    else process.kill(-child.pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}
