// What `gateway prices diff` and `gateway prices update` do: newer price data in, what it changes shown, a book
// beside the config written.

import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { findModel, loadPriceBook, type PriceBook, sellerOf } from "../../../billing/prices.ts";
import { openBook } from "../../../billing/prices/book.ts";
import { comparePrices, type PriceChange } from "../../../billing/prices/compare.ts";
import { makeBook } from "../../../billing/prices/convert.ts";
import {
  describeFault,
  PUBLISHED_URL,
  publishedSchema,
  readProvider,
} from "../../../billing/prices/published.ts";
import { ANY_SELLER } from "../../../billing/prices/sellers.ts";
import { placeOfBook, sealBook, writeBook } from "../../../billing/prices/stored-book.ts";
import { listSeenModels } from "../../../billing/report/seen-models.ts";
import type { Catalog } from "../../../config/catalog.ts";
import type { LoadedConfig } from "../../../config/file/load.ts";
import { resolveModel } from "../../../gateway/intake/match.ts";
import { getErrorCode, getErrorMessage } from "../../../lib/errors.ts";
import { isLoopback } from "../../../config/proxy.ts";
import { parseJson } from "../../../lib/json/json.ts";
import { isBelowTenth, parseDecimal } from "../../../lib/money.ts";
import { quoteWord } from "../../../lib/text/shell-word.ts";
import { type LedgerFlags, locateLedger, openLedgerIndex } from "../ledger-place.ts";
import { openConfig, waitForGateway } from "../../access/config.ts";
import { number, printTable } from "../../terminal/table.ts";
import { askYes, canPrompt, fail, printJson, refuseUsage, printNote } from "../../terminal/terminal.ts";

interface SourceFlags extends LedgerFlags {
  readonly from?: string;
  readonly json?: true;
}

export interface UpdateFlags extends SourceFlags {
  readonly all?: true;
  readonly yes?: true;
  readonly dryRun?: true;
  /** What may change although it looks wrong: PROVIDER/MODEL, or PROVIDER. */
  readonly accept?: readonly string[];
}

export async function updatePrices(flags: UpdateFlags): Promise<void> {
  const loaded = openConfig(flags);
  const isDry = flags.dryRun === true;
  if (!isDry && flags.yes !== true && !canPrompt())
    refuseUsage("Without a terminal, --yes confirms an update.");
  const { text, current, next } = await readNext(flags.from, loaded);
  const changes =
    flags.all === true ? compareAll(current, next) : compareSeen(flags, loaded.catalog, { current, next });
  const sealed = sealBook(text);
  const written = openBook(sealed);
  report(changes, { current, next: written, json: flags.json === true });
  const doubts = findDoubts(current, next).filter(({ name }) => !(flags.accept ?? []).includes(name));
  for (const { text: doubt } of doubts) printNote(doubt);
  if (isDry) return;
  await settleDoubts(doubts, flags);
  if (flags.yes !== true && !(await askYes(`Use these prices from now on?`))) {
    printNote("Nothing was written.");
    return;
  }
  const path = placeOfBook(loaded.path);
  try {
    writeBook(path, sealed);
  } catch (error) {
    fail(`${path} cannot be written: ${getErrorCode(error) || getErrorMessage(error)}.`);
  }
  await waitForGateway(loaded.path, loaded.catalog, { kind: "prices" });
  printNote(
    `Wrote ${path}: ${written.label}. A running gateway uses it at once. \`gateway ledger reprice\` can correct lines that had no price.`,
  );
}

interface Doubt {
  /** As `--accept` names it. */
  readonly name: string;
  readonly text: string;
}

const MAX_LOST_SHOWN = 5;

/** A price that falls so far, or a provider that sells less, is more often a fault or a forgery than a change. */
function findDoubts(current: PriceBook, next: PriceBook): Doubt[] {
  const falls = compareAll(current, next).filter(({ was, now }) => fallsFar(was, now));
  const fallen = Map.groupBy(falls, ({ provider, model }) => `${provider}/${model}`);
  const lost = current.providers.flatMap((provider) => {
    const seller = { ...ANY_SELLER, provider };
    const ids = current.listModels(provider).flatMap((model) => model.ids);
    const gone = ids.filter((id) => findModel(next, seller, id) === null);
    // A few names come and go with each release.
    return gone.length * 4 <= ids.length ? [] : [{ provider, gone }];
  });
  return [
    ...Array.from(fallen, ([name, all]) => ({
      name,
      text: `${name}: ${all.map(({ what, was, now }) => `${what} falls from ${was} to ${now}`).join(", ")}.`,
    })),
    ...lost.map(({ provider, gone }) => ({
      name: provider,
      text: `${provider}: it no longer has ${gone.slice(0, MAX_LOST_SHOWN).join(", ")}${gone.length > MAX_LOST_SHOWN ? ` and ${gone.length - MAX_LOST_SHOWN} more` : ""}.`,
    })),
  ];
}

const DECIMAL = /^\d+(?:\.\d+)?$/;

/** To nothing, or below a tenth. */
function fallsFar(was: string | null, now: string | null): boolean {
  if (was === null || now === null || !DECIMAL.test(was) || !DECIMAL.test(now)) return false;
  const [before, after] = [parseDecimal(was), parseDecimal(now)];
  return before.units > 0n && isBelowTenth(after, before);
}

async function settleDoubts(doubts: readonly Doubt[], { yes }: UpdateFlags): Promise<void> {
  if (doubts.length > 0 && (yes === true || !canPrompt()))
    fail(
      `Nothing was written. If these changes are right, repeat with ${doubts.map(({ name }) => `--accept ${quoteWord(name)}`).join(" ")}`,
    );
  for (const { text } of doubts) if (!(await askYes(`${text} Is that right?`))) fail("Nothing was written.");
}

interface Next {
  /** Of the new book, without its hash. */
  readonly text: string;
  readonly current: PriceBook;
  readonly next: PriceBook;
}

/** A book that lacks one of these providers is incomplete. */
const INDISPENSABLE = ["anthropic", "openai", "google"];

async function readNext(from: string | undefined, { path }: LoadedConfig): Promise<Next> {
  const place = from ?? PUBLISHED_URL;
  const document = parseJson(await readSource(place));
  const parsed = publishedSchema.safeParse(document);
  if (!parsed.success) {
    fail(
      `${place} is no price data of the form that the price package publishes (${PUBLISHED_URL}): ${describeFault(document, parsed.error.issues)}. Nothing was changed.`,
    );
  }
  const priced = new Set(parsed.data.filter((each) => readProvider(each).length > 0).map(({ id }) => id));
  const empty = INDISPENSABLE.filter((provider) => !priced.has(provider));
  if (empty.length > 0) fail(`${place} has no prices of ${empty.join(" and ")}: it is not used.`);
  const date = new Date().toISOString().slice(0, 10);
  const text = makeBook(parsed.data, { date, source: describeSource(place, date) });
  const next = openBook(text);
  return { text, current: loadCurrent(path), next };
}

/** An update is the way out of a damaged book: it compares with the built-in one then. */
function loadCurrent(configPath: string): PriceBook {
  try {
    return loadPriceBook(configPath);
  } catch (error) {
    printNote(`${getErrorMessage(error)} The new prices are compared with the built-in book instead.`);
    return loadPriceBook();
  }
}

/** Without what may be secret in an address. */
function describeSource(place: string, date: string): string {
  if (!isAddress(place)) return `${resolve(place)}, read on ${date}`;
  const { origin, pathname } = new URL(place);
  return `${origin}${pathname}, read on ${date}`;
}

function isAddress(place: string): boolean {
  return /^https?:\/\//i.test(place);
}

const MAX_BYTES = 32 * 2 ** 20;
const TIMEOUT_MS = 60_000;

async function readSource(place: string): Promise<string> {
  try {
    if (!isAddress(place)) {
      if (statSync(place).size > MAX_BYTES) throw new Error(`it is larger than ${MAX_BYTES} bytes`);
      return readFileSync(place, "utf8");
    }
    const answer = await fetchFromHost(new URL(place));
    if (!answer.ok) throw new Error(`the answer is ${answer.status}`);
    return await readBounded(answer);
  } catch (error) {
    return fail(
      `The price data cannot be read from ${place}: ${getErrorCode(error) || getErrorMessage(error)}.`,
    );
  }
}

const MAX_REDIRECTS = 5;

/** Over TLS, unless it is this machine, and from no other host than the one that was named. */
async function fetchFromHost(place: URL): Promise<Response> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  let url = place;
  for (let count = 0; count <= MAX_REDIRECTS; count += 1) {
    if (url.protocol !== "https:" && !isLoopback(url.hostname)) throw new Error("only https is accepted");
    if (url.host !== place.host) throw new Error(`it redirects to another host, ${url.host}`);
    const answer = await fetch(url, { signal, redirect: "manual" });
    const target = answer.status >= 300 && answer.status < 400 ? answer.headers.get("location") : null;
    if (target === null) return answer;
    url = new URL(target, url);
  }
  throw new Error("it redirects too often");
}

async function readBounded(answer: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of answer.body ?? []) {
    size += chunk.length;
    if (size > MAX_BYTES) throw new Error(`it is larger than ${MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

interface Change extends PriceChange {
  readonly provider: string;
  readonly model: string;
  readonly requests: number;
}

type Books = Pick<Next, "current" | "next">;

function compareSeen(flags: LedgerFlags, catalog: Catalog, { current, next }: Books): readonly Change[] {
  const at = new Date();
  const known = new Set<string>();
  return listSeenModels(openLedgerIndex(locateLedger(flags))).flatMap(
    ({ channel: name, model, requests }) => {
      const channel = catalog.channels.get(name);
      const seller = channel === undefined ? ANY_SELLER : sellerOf(channel);
      const upstream = (channel && resolveModel(channel, model)) ?? model;
      const [was, now] = [findModel(current, seller, upstream), findModel(next, seller, upstream)];
      const provider = (now ?? was)?.model.provider ?? "";
      // Two channels of one provider pay the same.
      if (seller.free || known.has(`${provider}\n${upstream}`)) return [];
      known.add(`${provider}\n${upstream}`);
      return comparePrices(was, now, at).map((change) => ({
        provider,
        model: upstream,
        requests,
        ...change,
      }));
    },
  );
}

function compareAll(current: PriceBook, next: PriceBook): readonly Change[] {
  const at = new Date();
  const providers = [...new Set([...current.providers, ...next.providers])];
  return providers.flatMap((provider) => {
    const seller = { ...ANY_SELLER, provider };
    const first = [...next.listModels(provider), ...current.listModels(provider)].map(
      ({ ids }) => ids[0] ?? "",
    );
    return [...new Set(first)].flatMap((model) =>
      comparePrices(findModel(current, seller, model), findModel(next, seller, model), at).map((change) => ({
        provider,
        model,
        requests: 0,
        ...change,
      })),
    );
  });
}

interface ReportOptions extends Books {
  readonly json: boolean;
}

function report(changes: readonly Change[], { current, next, json }: ReportOptions): void {
  if (json) {
    printJson({ current: current.label, next: next.label, models: countModels(next), changes });
    return;
  }
  if (changes.length > 0) {
    printTable(changes, [
      { title: "PROVIDER", read: ({ provider }) => provider },
      { title: "MODEL", least: 26, read: ({ model }) => model },
      { title: "PRICE OF", read: ({ what }) => what },
      number("WAS $", ({ was }) => was ?? "none"),
      number("NOW $", ({ now }) => now ?? "none"),
    ]);
  } else printNote("No price changes of the models that were looked at.");
  printNote(
    `Now: ${current.label}, ${countModels(current)} models. New: ${next.label}, ${countModels(next)} models.`,
  );
}

function countModels(book: PriceBook): number {
  return book.providers.reduce((sum, provider) => sum + book.listModels(provider).length, 0);
}
