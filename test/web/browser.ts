// A real browser for tests: Debian's Chromium, or the one that CHROMIUM names. Where there is none, tests skip visibly:
//   test.skipIf(!hasBrowser)("…", …)

import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const program = [process.env["CHROMIUM"] ?? "", ...PLACES].find((path) => path !== "" && existsSync(path));

export const hasBrowser = program !== undefined;

export function openBrowser(): Promise<Browser> {
  // The pages are this gateway's own, and in a container Chromium's own walls do not work.
  return chromium.launch({ executablePath: program ?? "", args: ["--no-sandbox", "--disable-gpu"] });
}
