// Runs the owner's command of `alerts:` for each warning about a limit: without a shell, with the details in environment
// variables, and for a limited time. Whatever it does, no request waits for it.

import { dirname } from "node:path";
import { describeWarning, formatMoment, type LimitWarning } from "../../billing/limits/alerts.ts";
import { getErrorMessage } from "../../lib/errors.ts";
import { formatUsd } from "../../lib/money.ts";

export interface AlertOptions {
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

export function createAlertCommand({ command, configPath, warn }: AlertOptions) {
  const running = new Set<Bun.Subprocess>();
  const run = async (warning: LimitWarning): Promise<void> => {
    const words = command() ?? [];
    if (words.length === 0) return;
    const name = `the command of \`alerts:\`, ${words[0]},`;
    if (running.size >= MAX_RUNNING)
      return warn(`${name} does not run for this one: too many alerts at once`);
    try {
      const child = Bun.spawn([...words], {
        cwd: dirname(configPath),
        env: { ...process.env, ...describeInVariables(warning) },
        stdin: "ignore",
        stdout: "ignore",
        stderr: "inherit",
        timeout: LIMIT_MS,
        killSignal: "SIGKILL",
        windowsHide: true,
      });
      running.add(child);
      await child.exited;
      running.delete(child);
      if (child.signalCode !== null)
        warn(`${name} was ended by ${child.signalCode}: it has ${LIMIT_MS / 1000} s`);
      else if (child.exitCode !== 0) warn(`${name} failed with status ${child.exitCode}`);
    } catch (error) {
      warn(`${name} cannot be started (${getErrorMessage(error)})`);
    }
  };
  return {
    run: (warning: LimitWarning): void => void run(warning),
    /** Gives running commands a last moment, then ends them. */
    close: async (): Promise<void> => {
      const timer = setTimeout(() => running.forEach((child) => child.kill("SIGKILL")), CLOSE_MS);
      await Promise.all([...running].map(({ exited }) => exited));
      clearTimeout(timer);
    },
  };
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
