// `gateway open`: opens the browser with a sign-in link.

import { messageOf } from "../../lib/errors.ts";
import { askGateway, NOT_RUNNING } from "../access/control.ts";
import { formatBaseUrl, listGateways } from "../access/running.ts";
import { type LedgerFlags, locateLedger } from "../access/ledger-place.ts";
import { fail, print, printNote } from "../terminal/terminal.ts";
import { readUrlFlag } from "../tools/connection.ts";

export interface OpenFlags extends LedgerFlags {
  readonly print?: true;
  readonly url?: string;
}

export async function openPage(flags: OpenFlags): Promise<void> {
  const call = { ledgerPath: await findGateway(flags) };
  const { url } = await askGateway<{ readonly url: string }>(call, "POST", "actions/open-page");
  if (flags.print === true) print(url);
  else if (await startBrowser(url)) printNote(`Opened ${url.slice(0, url.indexOf("#"))} in the browser.`);
  else {
    printNote("No browser could be started. Open this link within a minute:");
    print(url);
  }
}

/** Without flags, the only running gateway is chosen, even if it has another config. */
async function findGateway(flags: OpenFlags): Promise<string> {
  const { url, config, ledger } = flags;
  if (url === undefined && (config ?? ledger) !== undefined) return locateLedger(flags);
  const running = await listGateways();
  const others = running.map(({ address }) => `\n  gateway open --url ${formatBaseUrl(address)}`);
  const these = others.length === 0 ? "" : ` These run:${others.join("")}`;
  if (url !== undefined) {
    // The port decides, because a browser has several names for one listener.
    const { origin, port } = readUrlFlag(url);
    const found = running.find(({ address }) => address.port === Number(port || 80));
    return found?.ledger.path ?? fail(`No gateway of this user runs at ${origin}.${these}`);
  }
  const own = readOwn(flags);
  const [only, ...more] = running;
  if (running.some((each) => each.ledger.path === own.path)) return own.path;
  if (only === undefined || more.length > 0) return fail(`${own.why}${these}`);
  printNote(`The only gateway that runs has another config. Its ledger: ${only.ledger.path}`);
  return only.ledger.path;
}

function readOwn(flags: OpenFlags) {
  try {
    return { path: locateLedger(flags), why: NOT_RUNNING };
  } catch (error) {
    return { path: "", why: messageOf(error) };
  }
}

function listOpeners(url: string): string[][] {
  if (process.platform === "darwin") return [["open", url]];
  if (process.platform === "win32") return [["rundll32", "url.dll,FileProtocolHandler", url]];
  const { DISPLAY, WAYLAND_DISPLAY, WSL_DISTRO_NAME } = process.env;
  const isSeen = (DISPLAY ?? WAYLAND_DISPLAY ?? "") !== "";
  const isWsl = WSL_DISTRO_NAME !== undefined;
  return [...(isWsl ? [["wslview", url]] : []), ...(isSeen ? [["xdg-open", url]] : [])];
}

async function startBrowser(url: string): Promise<boolean> {
  for (const words of listOpeners(url)) {
    if (Bun.which(words[0] ?? "") === null) continue;
    const child = Bun.spawn(words, {
      stdin: "ignore",
      stdout: "ignore",
      stderr: "ignore",
    });
    if ((await child.exited) === 0) return true;
  }
  return false;
}
