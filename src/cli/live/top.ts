// `gateway top`: reads the state of the running gateway repeatedly and shows it.
// top-view.ts draws it.

import { type GatewayState, gatewayStateSchema } from "../../gateway/control/state.ts";
import { askGateway, readReply, tryGateway } from "../access/control.ts";
import { type LedgerFlags, locateLedger } from "../money/ledger-place.ts";
import { type ExitCause, openLiveScreen } from "./live-screen.ts";
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
  const path = locateLedger(flags);
  return watchState(path, await readState(path, flags));
}

async function readState(ledgerPath: string, { ledger }: TopFlags): Promise<GatewayState> {
  const absent = ledger === undefined ? undefined : `No gateway is running on the ledger ${ledgerPath}.`;
  return readReply(gatewayStateSchema, await askGateway(ledgerPath, "GET", "/state", absent));
}

function printOnce(state: GatewayState): void {
  const view = createTopView();
  view.see(state, Date.now());
  const endless = Number.POSITIVE_INFINITY;
  printLines(view.draw(endless, endless));
}

const REFRESH_MS = 500;

async function watchState(ledgerPath: string, first: GatewayState): Promise<ExitCause> {
  const view = createTopView();
  const draw = (): void => screen.draw(view.draw(screen.columns(), screen.rows()));
  const screen = openLiveScreen(draw);
  const ended = new AbortController();
  const left = screen.left.then(() => ended.abort());
  const look = async (): Promise<GatewayState | null> => {
    // A gateway that does not answer in time counts as lost until it answers again.
    const reply = await tryGateway({ ledgerPath, signal: ended.signal }, "GET", "/state").catch(() => null);
    return reply === null ? null : readReply(gatewayStateSchema, reply);
  };
  try {
    let state: GatewayState | null = first;
    while (!ended.signal.aborted) {
      if (state === null) view.lose();
      else view.see(state, Date.now());
      draw();
      await screen.pause(REFRESH_MS);
      if (!ended.signal.aborted) state = await Promise.race([left.then(() => null), look()]);
    }
  } catch (error) {
    if (!ended.signal.aborted) throw error;
  } finally {
    screen.close();
  }
  return screen.left;
}
