// `gateway` alone: what runs, what was spent, what needs attention, useful commands.

import { existsSync } from "node:fs";
import { describeWarning, findWarning, listLimitUses } from "../../billing/limits/alerts.ts";
import { openSums } from "../../billing/limits/spending.ts";
import { readPeriodWord } from "../../billing/reports/period.ts";
import { sumRequests } from "../../billing/reports/sums.ts";
import { reportVersions } from "../../billing/reports/versions.ts";
import { describeChange } from "../../billing/reports/words.ts";
import type { LoadedConfig } from "../../config/file/load.ts";
import { placeConfig } from "../../config/file/find.ts";
import type { GatewayState } from "../../gateway/api/state.ts";
import { type ConfigFlags, openConfig } from "../access/config.ts";
import { readDocument } from "../access/control.ts";
import { formatBaseUrl } from "../access/running.ts";
import { openTable } from "../access/ledger-place.ts";
import { listProblems } from "../live/top.ts";
import { print, printWrapped } from "../terminal/terminal.ts";
import { formatAmount } from "../terminal/text.ts";
import { checkParts, checkVariables } from "./config.ts";
import type { DoctorFinding } from "./finding.ts";
import { describeAmounts } from "./ledger.ts";

export async function showOverview(flags: ConfigFlags): Promise<void> {
  const path = placeConfig(flags.config, process.env);
  if (!existsSync(path)) {
    printWrapped("There is no config yet. `gateway init` writes one, and `gateway serve --demo` needs none.");
    return printCommands();
  }
  const config = openConfig(flags);
  const { catalog } = config;
  const call = { ledgerPath: catalog.ledger.path };
  const state = await readDocument<GatewayState>(call, "GET", "reports/state");
  print(
    state === null
      ? "The gateway does not run. Start it: gateway serve"
      : `The gateway runs on ${formatBaseUrl(state.address)} (version ${state.version}).`,
  );
  printWrapped(`config: ${config.path}   ledger: ${catalog.ledger.path}`);
  const { amounts, matters } = readLedger(config);
  print(amounts.join("   "));
  const attention = [
    ...config.warnings,
    ...describeLimits(config),
    ...matters,
    // A running gateway has its own variables.
    ...(state === null ? describeFindings(checkVariables(config)) : listProblems(state)),
    ...describeFindings(checkParts(config)),
  ];
  for (const text of attention) printWrapped(`attention: ${text}`);
  printCommands();
}

/** Today and this month, as in `gateway usage`. */
function readLedger({ catalog }: LoadedConfig) {
  using table = openTable(catalog.ledger.path, {});
  const clock = { zone: catalog.zone, now: new Date() };
  const sum = (word: string): string => {
    const query = { by: [], of: ["charge"], ...readPeriodWord(word, clock) };
    return `$${formatAmount(sumRequests(table, query).total.totals.charge_usd)}`;
  };
  return {
    amounts: [`spent today: ${sum("today")}`, `this month: ${sum("month")}`],
    matters: [
      ...describeFindings(describeAmounts(table)),
      ...reportVersions(table, clock).map(describeChange),
    ],
  };
}

function describeFindings(findings: readonly DoctorFinding[]): string[] {
  return findings
    .filter(({ state }) => state !== "ok")
    .map(({ detail, fix }) => (fix === null ? detail : `${detail}: ${fix}`));
}

function describeLimits({ catalog }: LoadedConfig): string[] {
  const now = Date.now();
  return listLimitUses(catalog.keys.values(), openSums(catalog, now, false), now).flatMap((use) => {
    const warning = findWarning(use, catalog.alerts.at);
    return warning === null ? [] : describeWarning(warning);
  });
}

const COMMANDS = [
  ["gateway run claude", "start a tool that uses the gateway"],
  ["gateway open", "the page: spending, live requests, keys, channels"],
  ["gateway usage today", "what was spent, by key"],
  ["gateway top", "what is running now"],
  ["gateway doctor", "check everything, and show how to fix it"],
] as const;

function printCommands(): void {
  print("");
  const width = Math.max(...COMMANDS.map(([line]) => line.length));
  for (const [line, about] of COMMANDS) printWrapped(`  ${line.padEnd(width)}  ${about}`, width + 2);
  print("");
  print("All commands: gateway --help");
}
