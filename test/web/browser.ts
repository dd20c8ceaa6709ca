// Runs a real browser for tests (harness/needs.ts finds it). Where there is none, tests skip visibly:
//   test.skipIf(!hasBrowser)("…", …)

import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from "playwright-core";
import { test } from "bun:test";
import { z } from "zod";
import { askGateway } from "../../src/cli/access/control.ts";
import type { ChildGateway } from "../harness/gateway.ts";
import { browserProgram, isThere } from "../harness/needs.ts";

const PATIENCE_MS = 60_000;

export const hasBrowser = isThere("browser");

/** Features that the browser loads for each page although it has no window: its search field, and a spare
 *  process. They take half of a page's time. The last two features would use the network. */
const UNUSED = [
  "WebUIOmniboxPopup",
  "WebUIOmniboxAimPopup",
  "WebUIOmniboxFullPopup",
  "SpareRendererForSitePerProcess",
  "AimEnabled",
  "PreconnectToSearch",
];

export function openBrowser(): Promise<Browser> {
  // Chromium's sandbox does not work in a container, and the gateway's own pages do not need it.
  const args = ["--no-sandbox", "--disable-gpu", `--disable-features=${UNUSED.join(",")}`];
  return chromium.launch({ executablePath: browserProgram ?? "", args });
}

/** Makes the link that `gateway open --print` prints, without a process for this command. */
export async function makeLink({ folder }: ChildGateway): Promise<string> {
  const reply = await askGateway({ ledgerPath: folder.join("ledger.jsonl") }, "POST", "actions/open-page");
  return z.object({ url: z.string() }).parse(reply).url;
}

export interface Visit {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Every address that the page has requested. */
  readonly requested: string[];
  readonly problems: string[];
}

export async function openSignedIn(
  browser: Browser,
  gateway: ChildGateway,
  options: BrowserContextOptions = {},
): Promise<Visit> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options });
  context.setDefaultTimeout(PATIENCE_MS);
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const page = await context.newPage();
  const requested: string[] = [];
  const problems: string[] = [];
  page.on("request", (request) => requested.push(request.url()));
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") problems.push(message.text());
  });
  await page.goto(await makeLink(gateway));
  await page.getByRole("navigation").waitFor();
  return { page, context, requested, problems };
}

export type PageTest = (title: string, visit: (own: Visit) => Promise<void>) => void;

/** The tests of a file share one page, which is loaded again for each test: a new page takes three times
 *  as long. A test that changes the page's clock or scripts uses `onOwnPage`. */
export function createPageTests(signIn: () => Promise<Visit>): { onPage: PageTest; onOwnPage: PageTest } {
  let shared: Visit | null = null;
  const onPage: PageTest = (title, visit) =>
    test.skipIf(!hasBrowser)(title, async () => {
      const own = shared === null ? await signIn() : await visitAgain(shared);
      // If the test fails, no other test gets its page.
      shared = null;
      await visit(own);
      shared = own;
    });
  const onOwnPage: PageTest = (title, visit) =>
    test.skipIf(!hasBrowser)(title, async () => {
      const own = await signIn();
      await visit(own);
      await own.context.close();
    });
  return { onPage, onOwnPage };
}

async function visitAgain(visit: Visit): Promise<Visit> {
  const { page, context, requested, problems } = visit;
  for (const each of context.pages()) if (each !== page) await each.close();
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await page.emulateMedia({ media: null });
  await page.goto(new URL("/console", page.url()).href);
  await page.getByRole("navigation").waitFor();
  requested.length = 0;
  problems.length = 0;
  return visit;
}
