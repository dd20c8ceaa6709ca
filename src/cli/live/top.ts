// `gateway top`: reads the state of the running gateway repeatedly and shows it.
// top-view.ts draws it.

import { type GatewayState, gatewayStateSchema } from "../../gateway/control/state.ts";
import { askGateway, readReply, tryGateway } from "../access/control.ts";
import { type LedgerFlags, locateLedger } from "../money/ledger-place.ts";
import { type ExitCause, watchLive } from "./live-screen.ts";
import { describeRecord } from "./request-log.ts";
import { printJson, printLines } from "../terminal/terminal.ts";
import { createTopView } from "./top-view.ts";

export interface TopFlags extends LedgerFlags {
  readonly json?: true;
}

export async function showTop(flags: TopFlags): Promise<void> {
  const isLive = process.stdout.isTTY && process.env["TERM"] !== "dumb" && flags.json !== true;
  if (isLive) {
    await watchTop(flags);
    return;
  }
  const state = await readState(locateLedger(flags), flags);
  if (flags.json === true) printJson({ ...state, recent: state.recent.map(describeRecord) });
  else printOnce(state);
}

/** Shows the live view until the user leaves. */
export async function watchTop(flags: TopFlags): Promise<ExitCause> {
  const ledgerPath = locateLedger(flags);
  const view = createTopView();
  return watchLive<GatewayState | null>({
    first: await readState(ledgerPath, flags),
    look: async (signal) => {
      // A gateway that does not answer in time counts as lost until it answers again.
      const reply = await tryGateway({ ledgerPath, signal }, "GET", "/state?look").catch(() => null);
      return reply === null ? null : readReply(gatewayStateSchema, reply);
    },
    see: (state) => view.see(state, Date.now()),
    draw: (columns, rows) => view.draw(columns, rows),
  });
}

async function readState(ledgerPath: string, { ledger }: TopFlags): Promise<GatewayState> {
  const absent = ledger === undefined ? undefined : `No gateway is running on the ledger ${ledgerPath}.`;
  return readReply(gatewayStateSchema, await askGateway(ledgerPath, "GET", "/state?look", absent));
}

function printOnce(state: GatewayState): void {
  const view = createTopView();
  view.see(state, Date.now());
  const endless = Number.POSITIVE_INFINITY;
  printLines(view.draw(endless, endless));
}
