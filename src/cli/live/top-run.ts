// What `gateway top` does: asks the running gateway again and again, and shows
// what it says. What that looks like is top-view.ts.

import { type GatewayState, gatewayStateSchema } from "../../gateway/control/state.ts";
import { askGateway, readTold, tryGateway } from "../control.ts";
import { type LedgerFlags, locateLedger } from "../money/ledger-place.ts";
import { type Leaving, openLiveScreen } from "./live-screen.ts";
import { describeRecord } from "./request-log.ts";
import { print, printJson } from "../terminal.ts";
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
  const state = await ask(locateLedger(flags), flags);
  if (flags.json === true) printJson({ ...state, recent: state.recent.map(describeRecord) });
  else printOnce(state);
}

/** Live, until somebody leaves. */
export async function watchTop(flags: TopFlags): Promise<Leaving> {
  const path = locateLedger(flags);
  return watch(path, await ask(path, flags));
}

async function ask(ledgerPath: string, { ledger }: TopFlags): Promise<GatewayState> {
  const absent = ledger === undefined ? undefined : `No gateway writes the ledger ${ledgerPath}.`;
  return readTold(gatewayStateSchema, await askGateway(ledgerPath, "GET", "/state", absent));
}

function printOnce(state: GatewayState): void {
  const view = createTopView();
  view.see(state, Date.now());
  const endless = Number.POSITIVE_INFINITY;
  for (const line of view.draw(endless, endless)) print(line);
}

const PERIOD_MS = 500;

async function watch(ledgerPath: string, first: GatewayState): Promise<Leaving> {
  const view = createTopView();
  const draw = (): void => screen.draw(view.draw(screen.columns(), screen.rows()));
  const screen = openLiveScreen(draw);
  const ended = new AbortController();
  const left = screen.left.then(() => ended.abort());
  const look = async (): Promise<GatewayState | null> => {
    // One that stands still for a while is lost for as long.
    const told = await tryGateway({ ledgerPath, signal: ended.signal }, "GET", "/state").catch(() => null);
    return told === null ? null : readTold(gatewayStateSchema, told);
  };
  try {
    let state: GatewayState | null = first;
    while (!ended.signal.aborted) {
      if (state === null) view.lose();
      else view.see(state, Date.now());
      draw();
      await screen.pause(PERIOD_MS);
      if (!ended.signal.aborted) state = await Promise.race([left.then(() => null), look()]);
    }
  } catch (error) {
    if (!ended.signal.aborted) throw error;
  } finally {
    screen.close();
  }
  return screen.left;
}
