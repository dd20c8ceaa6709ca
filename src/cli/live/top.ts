// `gateway top`: reads the state of the running gateway and shows it, on a terminal again and again.

import type { GatewayState } from "../../gateway/api/state.ts";
import { askGateway, readDocument } from "../access/control.ts";
import { type LedgerFlags, locateLedger } from "../money/ledger-place.ts";
import { printJson, printLines } from "../terminal/terminal.ts";
import { renew } from "./renew.ts";
import { describeRecord } from "./request-log.ts";
import { createTopView } from "./top-view.ts";

export interface TopFlags extends LedgerFlags {
  readonly json?: true;
}

export async function showTop(flags: TopFlags): Promise<void> {
  const ledgerPath = locateLedger(flags);
  const { ledger } = flags;
  const absent = ledger === undefined ? undefined : `No gateway is running on the ledger ${ledgerPath}.`;
  const first = await askGateway<GatewayState>({ ledgerPath }, "GET", "reports/state", absent);
  if (flags.json === true) return printJson({ ...first, recent: first.recent.map(describeRecord) });
  const draw = createTopView();
  if (!process.stdout.isTTY || process.env["TERM"] === "dumb")
    return printLines(draw(first, Number.POSITIVE_INFINITY, Date.now()));
  // A gateway that does not answer in time counts as stopped until it answers again.
  const look = () => readDocument<GatewayState>({ ledgerPath }, "GET", "reports/state").catch(() => null);
  await renew<GatewayState | null>(first, look, (state, columns) => draw(state, columns, Date.now()));
}
