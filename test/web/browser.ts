// A real browser for tests (harness/needs.ts finds it). Where there is none, tests skip visibly:
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

export function openBrowser(): Promise<Browser> {
  // The pages are this gateway's own, and in a container Chromium's own walls do not work.
  return chromium.launch({ executablePath: browserProgram ?? "", args: ["--no-sandbox", "--disable-gpu"] });
}

/** What `gateway open --print` prints, without its process. */
export async function makeLink({ folder }: ChildGateway): Promise<string> {
  const reply = await askGateway(folder.join("ledger.jsonl"), "POST", "/console/link");
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

export type PageTest = (
  title: string,
  visit: (own: Visit) => Promise<void>,
  options?: BrowserContextOptions,
) => void;

/** A test on a page of its own that is signed in. */
export function createPageTest(signIn: (options: BrowserContextOptions) => Promise<Visit>): PageTest {
  return (title, visit, options = {}) =>
    test.skipIf(!hasBrowser)(title, async () => {
      const own = await signIn(options);
      await visit(own);
      await own.context.close();
    });
}
