import { describe, expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";

import {
  createAlerts,
  describeWarning,
  findWarning,
  type LimitUse,
  type LimitWarning,
} from "../../../src/billing/limits/alerts.ts";
import { parseUsd } from "../../../src/lib/money.ts";
import { newLedgerPath } from "../ledger/ledger-samples.ts";

const MIDNIGHT = Date.parse("2026-11-21T00:00:00Z");

function useOf(spent: string, more: Partial<Omit<LimitUse, "usd">> & { usd?: string } = {}): LimitUse {
  const holder = { kind: "key", name: "laptop" } as const;
  const { usd = "5", ...rest } = more;
  return {
    holder,
    limit: "usd_per_day",
    usd: parseUsd(usd),
    spent: parseUsd(spent),
    resets: MIDNIGHT,
    ...rest,
  };
}

function openAlerts(path: string, at: readonly number[] = [80, 95], now = MIDNIGHT - 3_600_000) {
  const warnings: LimitWarning[] = [];
  const alerts = createAlerts({
    path,
    percentages: () => at,
    report: (warning) => warnings.push(warning),
    now: () => now,
  });
  /** What these uses report, one after the other. */
  const report = (...uses: LimitUse[]): number[] => {
    const before = warnings.length;
    for (const use of uses) alerts.check([use]);
    alerts.close();
    return warnings.slice(before).map(({ percent }) => percent);
  };
  return { alerts, report };
}

const newPath = (): string => `${newLedgerPath()}.alerts.json`;

describe("a percentage of a limit", () => {
  test.each([
    ["3.999999999999", null],
    ["4", 80],
    ["4.749999999999", 80],
    ["4.75", 95],
    ["5", 95],
    ["12", 95],
  ])("$%s of $5 reaches %p", (spent, percent) => {
    expect(findWarning(useOf(spent), [80, 95])?.percent ?? null).toBe(percent);
  });

  test("is reported once", () => {
    const { report } = openAlerts(newPath());
    expect(report(useOf("3.9"), useOf("4.1"), useOf("4.2"), useOf("4.8"), useOf("4.9"), useOf("6"))).toEqual([
      80, 95,
    ]);
  });

  test("is reported once if a gateway starts again", () => {
    const path = newPath();
    expect(openAlerts(path).report(useOf("4.1"))).toEqual([80]);
    expect(openAlerts(path).report(useOf("4.2"), useOf("4.8"))).toEqual([95]);
    expect(openAlerts(path).report(useOf("4.9"))).toEqual([]);
  });

  test("below another that was crossed by the same request is not reported", () => {
    const { report } = openAlerts(newPath());
    expect(report(useOf("4.99"), useOf("4.1"))).toEqual([95]);
  });

  test("is reported again in the next period, and after the limit was changed", () => {
    const { report } = openAlerts(newPath());
    expect(report(useOf("4.1"), useOf("4.1", { resets: MIDNIGHT + 86_400_000 }))).toEqual([80, 80]);
    expect(report(useOf("8.1", { usd: "10" }), useOf("8.2", { usd: "10.0" }))).toEqual([80]);
  });

  test("is reported for each key, group and limit", () => {
    const { report } = openAlerts(newPath());
    const group = { holder: { kind: "group", name: "laptop" } } as const;
    expect(report(useOf("4.1"), useOf("4.1", group), useOf("4.1", { limit: "usd_per_month" }))).toEqual([
      80, 80, 80,
    ]);
  });

  test("is reported also if the file cannot be read or written", () => {
    const path = newPath();
    writeFileSync(path, "{ damaged");
    expect(openAlerts(path).report(useOf("4.1"))).toEqual([80]);
    expect(openAlerts("/nonexistent/folder/alerts.json").report(useOf("4.1"))).toEqual([80]);
  });

  test("is remembered before it is reported, so a gateway that is killed in between reports it once", () => {
    const path = newPath();
    let remembered = false;
    const alerts = createAlerts({
      path,
      percentages: () => [80],
      report: () => (remembered = existsSync(path)),
      now: () => 0,
    });
    alerts.check([useOf("4.1")]);
    alerts.close();
    expect(remembered).toBe(true);
  });
});

test("a window of a plan warns once for each percentage, although its end moves by seconds, and again when it has begun anew", () => {
  const said: string[] = [];
  const alerts = createAlerts({
    path: newLedgerPath(),
    percentages: () => [80, 95],
    report: (warning) => said.push(describeWarning(warning)),
    now: () => MIDNIGHT - 7_200_000,
  });
  const holder = { kind: "channel", name: "plan" } as const;
  const use = (used: number, resets: number): void =>
    alerts.checkShare({ holder, limit: "5h", used, resets });
  for (const [used, seconds] of [
    [79, 0],
    [80.5, 1],
    [81, 3],
    [96, 2],
    [97, 0],
  ] as const)
    use(used, MIDNIGHT + seconds * 1000);
  use(82, MIDNIGHT + 5 * 3_600_000);
  alerts.close();
  const window = 'The channel "plan" has used';
  expect(said).toEqual([
    `${window} 80.5 % of its plan's window of 5h. It resets at 2026-11-21T00:00:01Z`,
    `${window} 96 % of its plan's window of 5h. It resets at 2026-11-21T00:00:02Z`,
    `${window} 82 % of its plan's window of 5h. It resets at 2026-11-21T05:00:00Z`,
  ]);
});

test("a warning says who, how much, and until when", () => {
  const warn = (use: LimitUse): string => describeWarning({ ...use, percent: 80 });
  expect(warn(useOf("4.1"))).toBe(
    'The key "laptop" has reached 80 % of its limit: $4.1 of $5 (usd_per_day). It resets at 2026-11-21T00:00:00Z',
  );
  expect(warn(useOf("5.2", { limit: "usd_total", resets: null }))).toBe(
    'The key "laptop" has reached its limit: $5.2 of $5 (usd_total)',
  );
});
