// `gateway` alone: what runs, what was spent, what needs attention.

import { readPeriod } from "../../billing/reports/period.ts";
import { sumRequests } from "../../billing/reports/sums.ts";
import type { LoadedConfig } from "../../config/file/load.ts";
import { hasConfig } from "../../config/file/find.ts";
import type { GatewayState } from "../../gateway/api/state.ts";
import { type ConfigFlags, openConfig } from "../access/config.ts";
import { readDocument } from "../access/control.ts";
import { formatBaseUrl } from "../access/running.ts";
import { openTable } from "../access/ledger-place.ts";
import { listProblems } from "../live/top.ts";
import { keepConfig } from "../terminal/own-command.ts";
import { print, printWrapped } from "../terminal/terminal.ts";
import { formatAmount } from "../terminal/text.ts";
import { checkParts, checkVariables } from "./config.ts";
import { describeAmounts, describeLimits } from "./ledger.ts";

export async function showOverview(flags: ConfigFlags): Promise<void> {
  if (!hasConfig(flags.config, process.env)) {
    printWrapped("There is no config yet. `gateway init` writes one, and `gateway serve --demo` needs none.");
    return printCommands();
  }
  const config = openConfig(flags);
  const { catalog } = config;
  const call = { ledgerPath: catalog.ledger.path };
  const state = await readDocument<GatewayState>(call, "GET", "reports/state");
  print(
    state === null
      ? `The gateway does not run. Start it: ${keepConfig("gateway serve")}`
      : `The gateway runs on ${formatBaseUrl(state.address)} (version ${state.version}).`,
  );
  printWrapped(`config: ${config.path}   ledger: ${catalog.ledger.path}`);
  const { amounts, findings } = readLedger(config);
  print(amounts.join("   "));
  // A running gateway has variables of its own.
  if (state === null) findings.push(...checkVariables(config));
  const attention = [
    ...config.warnings,
    ...[...findings, ...checkParts(config)].flatMap(({ state, detail, fix }) =>
      state === "ok" ? [] : fix === null ? detail : `${detail}: ${fix}`,
    ),
    ...(state === null ? [] : listProblems(state)),
  ];
  for (const text of attention) printWrapped(`attention: ${text}`);
  printCommands();
}

function readLedger({ catalog }: LoadedConfig) {
  using table = openTable(catalog.ledger.path, {});
  const clock = { zone: catalog.zone, now: new Date() };
  const sum = (period: string): string => {
    const query = { by: [], of: ["charge"], ...readPeriod({ period }, clock) };
    return `$${formatAmount(sumRequests(table, query).total.totals.charge_usd)}`;
  };
  return {
    amounts: [`spent today: ${sum("today")}`, `this month: ${sum("month")}`],
    findings: [...describeLimits(catalog), ...describeAmounts(table, catalog)],
  };
}

const COMMANDS = [
  ["gateway run claude", "start a tool that uses the gateway"],
  ["gateway open", "the page: spending, live requests, keys, channels"],
  ["gateway usage today", "what was spent today"],
  ["gateway top", "what is running now"],
  ["gateway doctor", "check everything, and show how to fix it"],
] as const;

function printCommands(): void {
  print("");
  const rows = COMMANDS.map(([line, about]) => [keepConfig(line), about] as const);
  const width = Math.max(...rows.map(([line]) => line.length));
  for (const [line, about] of rows) printWrapped(`  ${line.padEnd(width)}  ${about}`, width + 2);
  print("");
  print("All commands: gateway --help");
}
