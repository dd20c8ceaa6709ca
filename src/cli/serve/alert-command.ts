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
  /** How long it may run. */
  readonly limitMs?: number;
  /** How long `close` waits for commands. */
  readonly closeMs?: number;
}

const LIMIT_MS = 10_000;
const CLOSE_MS = 2000;
const MAX_RUNNING = 4;
/** Thousands of keys may reach a percentage at the same time, above all of a limit of their group. */
const MAX_WAITING = 100;
/** How long the last output may take after the end. */
const STDERR_MS = 200;
const MAX_STDERR_LENGTH = 200;

export function createAlertCommand(options: AlertCommandOptions): AlertCommand {
  const waiting: LimitWarning[] = [];
  const running = new Map<ChildProcess, Promise<void>>();
  const startNext = (): void => {
    const command = options.command();
    while (running.size < MAX_RUNNING) {
      const warning = waiting.shift();
      if (warning === undefined || command === null) return;
      const { child, ended } = start(command, warning, options);
      const over = ended.then(() => {
        running.delete(child);
        startNext();
      });
      running.set(child, over);
    }
  };
  return {
    run: (warning) => {
      if (options.command() === null) return;
      if (waiting.length >= MAX_WAITING) {
        options.warn(`too many alerts at once: the command of \`alerts:\` does not run for this one`);
        return;
      }
      waiting.push(warning);
      startNext();
    },
    close: async () => {
      const timer = setTimeout(() => {
        waiting.length = 0;
        for (const child of running.keys()) endGroup(child);
      }, options.closeMs ?? CLOSE_MS);
      while (running.size > 0) await Promise.all(running.values());
      clearTimeout(timer);
    },
  };
}

interface StartedCommand {
  readonly child: ChildProcess;
  readonly ended: Promise<void>;
}

function start(
  command: readonly string[],
  warning: LimitWarning,
  options: AlertCommandOptions,
): StartedCommand {
  const [program = "", ...args] = command;
  // Loaded here, because a start without it takes 1 ms less.
  const { spawn } = process.getBuiltinModule("node:child_process");
  const child = spawn(program, args, {
    cwd: dirname(options.configPath),
    env: { ...process.env, ...describeInVariables(warning) },
    // A process group of its own, so that its children end with it.
    detached: true,
    stdio: ["ignore", "ignore", "pipe"],
    windowsHide: true,
  });
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  const limitMs = options.limitMs ?? LIMIT_MS;
  let problem: string | null = null;
  let errors = "";
  child.stderr?.on("data", (bytes: Buffer) => {
    if (errors.length < MAX_STDERR_LENGTH) errors += bytes.toString("utf8");
  });
  const timer = setTimeout(() => {
    problem = `did not end within ${limitMs / 1000} s and was killed`;
    endGroup(child);
  }, limitMs);
  let isOver = false;
  const finish = (what: string | null): void => {
    if (isOver) return;
    isOver = true;
    clearTimeout(timer);
    child.stderr?.destroy();
    const [first = ""] = errors.trim().split("\n");
    const details = first === "" ? "" : `: ${first.slice(0, MAX_STDERR_LENGTH)}`;
    if (what !== null) options.warn(`the command of \`alerts:\`, ${program}, ${what}${details}`);
    resolve();
  };
  child.once("error", (error) => finish(`cannot be started (${error.message})`));
  child.once("exit", (status, signal) => {
    const what = signal === null ? `failed with status ${status}` : `was ended by ${signal}`;
    const end = (): void => finish(status === 0 ? null : (problem ?? what));
    // A process that it left behind may keep stderr open.
    child.once("close", end);
    setTimeout(end, STDERR_MS);
  });
  return { child, ended };
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
