import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import type { LimitWarning } from "../../../src/billing/limits/alerts.ts";
import { createAlertCommand } from "../../../src/cli/serve/alert-command.ts";
import { parseUsd } from "../../../src/lib/money.ts";
import { makeTempFolder } from "../../harness/temp.ts";

function warningOf(name: string): LimitWarning {
  return {
    holder: { kind: "key", name },
    limit: "usd_per_day",
    usd: parseUsd("5"),
    spent: parseUsd("4.1"),
    resets: Date.parse("2026-11-21T00:00:00Z"),
    percent: 80,
  };
}

const NEVER_MS = 2 ** 31 - 1;

/** Runs the command for these warnings until all have ended, and returns what it warns of. */
async function runFor(
  { command, folder, limitMs }: { command: string[] | null; folder: string; limitMs?: number },
  ...names: string[]
): Promise<string[]> {
  const said: string[] = [];
  const alerts = createAlertCommand({
    command: () => command,
    configPath: `${folder}/gateway.yaml`,
    warn: (text) => said.push(text),
    // The commands of some tests take longer than two seconds on a busy machine.
    closeMs: NEVER_MS,
    ...(limitMs !== undefined && { limitMs }),
  });
  for (const name of names) alerts.run(warningOf(name));
  await alerts.close();
  return said;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe("the command of alerts", () => {
  test("an alert's command gets its arguments as they are, in the config's folder, with the details in the environment", async () => {
    using folder = makeTempFolder();
    const script = 'printf "%s\\n" "$@" > args; env | grep ^GATEWAY_ALERT_ | sort > details';
    writeFileSync(folder.join("notify"), `#!/bin/sh\n${script}\n`, { mode: 0o700 });
    const said = await runFor(
      { command: ["./notify", "a b", "$(touch bad)", "; touch bad"], folder: folder.path },
      'my "key"; $(touch bad)',
    );
    expect(said).toEqual([]);
    expect(readFileSync(folder.join("args"), "utf8")).toBe("a b\n$(touch bad)\n; touch bad\n");
    expect(existsSync(folder.join("bad"))).toBe(false);
    expect(readFileSync(folder.join("details"), "utf8").split("\n")).toEqual([
      "GATEWAY_ALERT_KIND=key",
      "GATEWAY_ALERT_LIMIT=usd_per_day",
      "GATEWAY_ALERT_LIMIT_USD=5",
      'GATEWAY_ALERT_MESSAGE=The key "my "key"; $(touch bad)" has reached 80 % of its limit: $4.1 of $5 (usd_per_day). It resets at 2026-11-21T00:00:00Z',
      'GATEWAY_ALERT_NAME=my "key"; $(touch bad)',
      "GATEWAY_ALERT_PERCENT=80",
      "GATEWAY_ALERT_RESETS=2026-11-21T00:00:00Z",
      "GATEWAY_ALERT_SPENT_USD=4.1",
      "",
    ]);
  });

  test("is reported if it fails, or cannot be started", async () => {
    using folder = makeTempFolder();
    const failing = ["sh", "-c", "echo no such channel >&2; exit 3"];
    expect(await runFor({ command: failing, folder: folder.path }, "laptop")).toEqual([
      "the command of `alerts:`, sh, failed with status 3: no such channel",
    ]);
    const [said = ""] = await runFor({ command: ["/nonexistent/notify"], folder: folder.path }, "laptop");
    expect(said).toStartWith("the command of `alerts:`, /nonexistent/notify, cannot be started");
  });

  test("is killed with its children if it hangs", async () => {
    using folder = makeTempFolder();
    const command = ["sh", "-c", "sleep 1000 & echo $! > child; wait"];
    const said = await runFor({ command, folder: folder.path, limitMs: 300 }, "laptop");
    expect(said).toEqual(["the command of `alerts:`, sh, did not end within 0.3 s and was killed"]);
    const child = Number(readFileSync(folder.join("child"), "utf8"));
    while (isAlive(child)) await Bun.sleep(5);
  });

  test("is not waited for if a process that it left behind keeps its stderr open", async () => {
    using folder = makeTempFolder();
    const command = ["sh", "-c", "sleep 1000 & echo $! > child"];
    expect(await runFor({ command, folder: folder.path }, "laptop")).toEqual([]);
    process.kill(Number(readFileSync(folder.join("child"), "utf8")));
  });

  test("runs for each warning, four at once", async () => {
    using folder = makeTempFolder();
    const script = 'touch "on.$GATEWAY_ALERT_NAME"; ls | grep -c ^on >> counts; rm "on.$GATEWAY_ALERT_NAME"';
    const names = Array.from({ length: 12 }, (_, index) => `key-${index}`);
    expect(await runFor({ command: ["sh", "-c", script], folder: folder.path }, ...names)).toEqual([]);
    const counts = readFileSync(folder.join("counts"), "utf8").trim().split("\n").map(Number);
    expect(counts).toHaveLength(12);
    expect(Math.max(...counts)).toBeLessThanOrEqual(4);
  });

  test("does not run thousands of times if a whole group is near its limit", async () => {
    using folder = makeTempFolder();
    const names = Array.from({ length: 150 }, (_, index) => `key-${index}`);
    const said = await runFor({ command: ["sh", "-c", "echo >> runs"], folder: folder.path }, ...names);
    expect(said).toHaveLength(46);
    expect(readFileSync(folder.join("runs"), "utf8")).toHaveLength(104);
  });

  test("is absent: nothing runs", async () => {
    using folder = makeTempFolder();
    expect(await runFor({ command: null, folder: folder.path }, "laptop")).toEqual([]);
  });
});
