// `gateway open`: gets a sign-in link from the running gateway and opens the browser with it.

import { z } from "zod";
import { askGateway, readReply } from "../access/control.ts";
import { type LedgerFlags, locateLedger } from "../money/ledger-place.ts";
import { print, printNote } from "../terminal/terminal.ts";

export interface OpenFlags extends LedgerFlags {
  readonly print?: true;
}

const linkSchema = z.object({ url: z.string() });

export async function openPage(flags: OpenFlags): Promise<void> {
  const reply = await askGateway(locateLedger(flags), "POST", "/console/link");
  const { url } = readReply(linkSchema, reply);
  if (flags.print === true) print(url);
  else if (await startBrowser(url)) printNote(`Opened ${url.slice(0, url.indexOf("#"))} in the browser.`);
  else {
    printNote("No browser could be started. Open this link within a minute; it works once:");
    print(url);
  }
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
