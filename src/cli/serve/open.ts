// `gateway open`: gets a sign-in link from the running gateway and opens the browser with it.

import { getErrorMessage } from "../../lib/errors.ts";
import { askGateway, NOT_RUNNING, readDocument } from "../access/control.ts";
import { formatBaseUrl, listGateways, type RunningGateway } from "../access/running.ts";
import { type LedgerFlags, locateLedger } from "../money/ledger-place.ts";
import { fail, print, printNote, refuseUsage } from "../terminal/terminal.ts";
import { readUrlFlag } from "../tools/connection.ts";

export interface OpenFlags extends LedgerFlags {
  readonly print?: true;
  readonly url?: string;
}

const LINK = "actions/open-page";
interface SignInLink {
  readonly url: string;
}

export async function openPage(flags: OpenFlags): Promise<void> {
  const { url } = await askForLink(flags);
  if (flags.print === true) print(url);
  else if (await startBrowser(url)) printNote(`Opened ${url.slice(0, url.indexOf("#"))} in the browser.`);
  else {
    printNote("No browser could be started. Open this link within a minute; it works once:");
    print(url);
  }
}

async function askForLink(flags: OpenFlags): Promise<SignInLink> {
  if (flags.url !== undefined) return askGateway({ ledgerPath: await findByUrl(flags) }, "POST", LINK);
  if (flags.config !== undefined || flags.ledger !== undefined)
    return askGateway({ ledgerPath: locateLedger(flags) }, "POST", LINK);
  const own = readDefault(flags);
  const reply = own.kind === "none" ? null : await readDocument<SignInLink>(own, "POST", LINK);
  return reply ?? askTheOnlyOne(own.kind === "none" ? own.why : NOT_RUNNING);
}

type Default =
  | { readonly kind: "config"; readonly ledgerPath: string }
  | { readonly kind: "none"; readonly why: string };

function readDefault(flags: OpenFlags): Default {
  try {
    return { kind: "config", ledgerPath: locateLedger(flags) };
  } catch (error) {
    return { kind: "none", why: getErrorMessage(error) };
  }
}

/** Without flags, a gateway of another config is meant if no other runs. */
async function askTheOnlyOne(why: string): Promise<SignInLink> {
  const running = await listGateways();
  const [only] = running;
  if (only === undefined || running.length > 1) return fail(`${why}${nameThose(running)}`);
  return askGateway({ ledgerPath: only.ledger.path }, "POST", LINK);
}

/** By the port, because a browser has several names for one listener. */
async function findByUrl({ url = "", config, ledger }: OpenFlags): Promise<string> {
  if (config !== undefined || ledger !== undefined)
    refuseUsage("--url names the gateway already: leave --config and --ledger out.");
  const { origin, port } = readUrlFlag(url);
  const running = await listGateways();
  const found = running.filter(({ address }) => address.port === Number(port === "" ? 80 : port));
  const exact = found.find(({ address }) => formatBaseUrl(address) === origin);
  return (
    (exact ?? found[0])?.ledger.path ??
    fail(`No gateway of this user runs at ${origin}.${nameThose(running)}`)
  );
}

function nameThose(running: readonly RunningGateway[]): string {
  const lines = running.map(({ address }) => `\n  gateway open --url ${formatBaseUrl(address)}`);
  return lines.length === 0 ? "" : ` These run:${lines.join("")}`;
}

function listOpeners(url: string): string[][] {
  if (process.platform === "darwin") return [["open", url]];
  if (process.platform === "win32") return [["rundll32", "url.dll,FileProtocolHandler", url]];
  const isSeen = (process.env["DISPLAY"] ?? process.env["WAYLAND_DISPLAY"] ?? "") !== "";
  const isWsl = process.env["WSL_DISTRO_NAME"] !== undefined;
  return [...(isWsl ? [["wslview", url]] : []), ...(isSeen ? [["xdg-open", url]] : [])];
}

async function startBrowser(url: string): Promise<boolean> {
  for (const words of listOpeners(url)) {
    const [program = ""] = words;
    if (Bun.which(program) === null) continue;
    const child = Bun.spawn(words, { stdin: "ignore", stdout: "ignore", stderr: "ignore" });
    if ((await child.exited) === 0) return true;
  }
  return false;
}
