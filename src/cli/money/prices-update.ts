// `gateway prices update`.

import { findModel, type FoundPrice, loadBook, type Price, sellerOf } from "../../billing/prices.ts";
import { placeOfBook, PriceBook, readMinute, sealBook } from "../../billing/prices/book.ts";
import { makeBook } from "../../billing/prices/convert.ts";
import {
  describeFault,
  placeOfData,
  publishedSchema,
  readProvider,
  RELEASE_URL,
} from "../../billing/prices/published.ts";
import { ANY_SELLER } from "../../billing/prices/sellers.ts";
import { listSeenModels } from "../../billing/reports/requests.ts";
import type { Catalog } from "../../config/catalog.ts";
import type { LoadedConfig } from "../../config/file/load.ts";
import { resolveModel } from "../../gateway/intake/match.ts";
import { codeOf, messageOf } from "../../lib/errors.ts";
import { replaceFile } from "../../lib/files/own-file.ts";
import { parseJson } from "../../lib/json/json.ts";
import { isBelowTenth, parseDecimal } from "../../lib/money.ts";
import { quoteWord } from "../../lib/text/shell-word.ts";
import { type LedgerFlags, locateLedger, openTable } from "../access/ledger-place.ts";
import { openConfig, waitForGateway } from "../access/config.ts";
import { type Columns, drawRows } from "../terminal/listing.ts";
import {
  askYes,
  canPrompt,
  fail,
  printJson,
  printLines,
  printNote,
  refuseUsage,
} from "../terminal/terminal.ts";
import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { z } from "zod";
import { findProxy, isLoopback } from "../../config/proxy.ts";
import { fetchAnswer } from "../../lib/http/fetch.ts";
import { sha256Hex } from "../../lib/secret.ts";

export interface UpdateFlags extends LedgerFlags {
  readonly from?: string;
  readonly json?: true;
  readonly yes?: true;
  readonly dryRun?: true;
  readonly accept?: readonly string[];
}

export async function updatePrices(flags: UpdateFlags): Promise<void> {
  const loaded = openConfig(flags);
  const isDry = flags.dryRun === true;
  if (!isDry && flags.yes !== true && !canPrompt())
    refuseUsage("Without a terminal, --yes confirms an update.");
  const { source, text, current, next } = await readNext(flags.from, loaded);
  printNote(`Read ${source.name}, SHA-256 ${source.sha256}.`);
  // Older prices could undo corrections, so they are refused.
  if (source.isRelease && source.date < current.date) {
    const older = `The newest release, ${source.name}, is older than the prices in use (${current.label}).`;
    if (!isDry) fail(`${older} Nothing was changed.`);
    printNote(older);
  }
  const changes = compareSeen(flags, loaded.catalog, { current, next });
  const sealed = sealBook(text);
  const written = new PriceBook(() => sealed);
  report(changes, source, { current, next: written }, flags.json);
  const doubts = findDoubts({ current, next }, loaded.catalog).filter(
    ({ name }) => !(flags.accept ?? []).includes(name),
  );
  for (const { text: doubt } of doubts) printNote(doubt);
  if (isDry) return;
  await settleDoubts(doubts, flags);
  if (flags.yes !== true && !(await askYes("Use these prices from now on?")))
    return printNote("Nothing was written.");
  const path = placeOfBook(loaded.path);
  replaceFile(path, sealed, { mode: 0o600, durable: true });
  await waitForGateway(loaded.path, loaded.catalog, { kind: "prices" });
  printNote(`Wrote ${path}: ${written.label}. \`gateway ledger reprice\` corrects lines without a price.`);
}

async function settleDoubts(doubts: readonly Doubt[], { yes }: UpdateFlags): Promise<void> {
  const accepts = doubts.map(({ name }) => `--accept ${quoteWord(name)}`).join(" ");
  if (doubts.length > 0 && (yes === true || !canPrompt()))
    fail(`Nothing was written. If this is right, add ${accepts}`);
  for (const { text } of doubts) if (!(await askYes(`${text} Is that right?`))) fail("Nothing was written.");
}

type Doubt = Readonly<Record<"name" | "text", string>>;

const MAX_LOST_SHOWN = 5;

function findDoubts({ current, next }: Books, catalog: Catalog): Doubt[] {
  const falls = new Map<string, Set<string>>();
  for (const { provider, was, now } of pairModels({ current, next })) {
    const name = `${provider}/${was?.model.ids[0]}`;
    const changes = listMoments([was, now]).flatMap((at) => comparePrices(was, now, at));
    for (const { what, was: before, now: after } of changes)
      if (fallsFar(before, after))
        falls.set(name, (falls.get(name) ?? new Set()).add(`${what} falls from ${before} to ${after}`));
  }
  const fallen = Array.from(falls, ([name, all]) => ({ name, text: `${name}: ${[...all].join(", ")}.` }));
  const used = listUsedProviders(catalog);
  const lost = current.providers.flatMap((provider): Doubt[] => {
    const seller = { ...ANY_SELLER, provider };
    const ids = current.listModels(provider).flatMap((model) => model.ids);
    const gone = ids.filter((id) => findModel(next, seller, id) === null);
    // A few names of unused providers disappear with each update.
    if (gone.length === 0 || (!used.has(provider) && gone.length * 4 <= ids.length)) return [];
    const [shown, more] = [gone.slice(0, MAX_LOST_SHOWN), gone.length - MAX_LOST_SHOWN];
    const end = more > 0 ? ` and ${more} more` : "";
    return [{ name: provider, text: `${provider}: it no longer has ${shown.join(", ")}${end}.` }];
  });
  return [...fallen, ...lost];
}

const [MINUTE_MS, DAY_MS] = [60_000, 24 * 60 * 60_000];
const DAYS = [0, 1, 2, 3, 4, 5, 6];

function listMoments(found: readonly (FoundPrice | null)[]): Date[] {
  const now = Date.now();
  const periods = found.flatMap((each) => each?.model.periods ?? []);
  const begins = [now, ...periods.map(({ from = "" }) => Date.parse(from)).filter((from) => from > now)];
  const minutes = periods.flatMap(({ hours = [] }) => hours.flat().map(readMinute));
  if (minutes.length === 0) return begins.map((moment) => new Date(moment));
  return begins.flatMap((begin) =>
    DAYS.flatMap((day) => {
      const midnight = (Math.ceil(begin / DAY_MS) + day) * DAY_MS;
      return [readMinute("12:00"), ...minutes].map((minute) => new Date(midnight + minute * MINUTE_MS));
    }),
  );
}

function listUsedProviders({ channels }: Catalog): ReadonlySet<string> {
  const sellers = [...channels.values()].map(sellerOf).filter(({ free }) => !free);
  return new Set(sellers.flatMap(({ provider, makers }) => (provider === null ? makers : [provider])));
}

const DECIMAL = /^\d+(?:\.\d+)?$/;

function fallsFar(was: string | null, now: string | null): boolean {
  if (was === null || now === null || !DECIMAL.test(was) || !DECIMAL.test(now)) return false;
  const [before, after] = [parseDecimal(was), parseDecimal(now)];
  return before.units > 0n && isBelowTenth(after, before);
}

const INDISPENSABLE = ["anthropic", "openai", "google"];

async function readNext(from: string | undefined, { path }: LoadedConfig) {
  const source = await readSource(from);
  const place = from ?? source.name;
  const document = parseJson(source.text) ?? readScript(source.text);
  const parsed = publishedSchema.safeParse(document);
  if (!parsed.success) {
    const fault = describeFault(document, parsed.error.issues);
    fail(`${place} does not have the form of ${placeOfData("main")}: ${fault}. Nothing was changed.`);
  }
  const priced = new Set(parsed.data.filter((each) => readProvider(each).length > 0).map(({ id }) => id));
  const empty = INDISPENSABLE.filter((provider) => !priced.has(provider));
  if (empty.length > 0) fail(`${place} has no prices of ${empty.join(" and ")}: it is not used.`);
  const text = makeBook(parsed.data, { date: source.date, source: source.name });
  return {
    source,
    text,
    current: loadCurrent(path),
    next: new PriceBook(() => text),
  };
}

const LITERAL = /"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\$])*`|!0|!1/gs;

/** The npm package has the data as a literal, which is read and never run. */
function readScript(text: string): unknown {
  const [, list = ""] = /=\s*(\[\s*\{\s*id:.*?\n\])[,;]/s.exec(text) ?? [];
  const plain = list.replaceAll(LITERAL, (token) => {
    if (token.startsWith("`")) return JSON.stringify(token.slice(1, -1));
    return token === "!0" ? "true" : token === "!1" ? "false" : token;
  });
  try {
    return Bun.JSON5.parse(plain);
  } catch {
    return undefined;
  }
}

function loadCurrent(configPath: string): PriceBook {
  try {
    return loadBook(configPath);
  } catch (error) {
    printNote(`${messageOf(error)} The new prices are compared with the built-in book.`);
    return loadBook();
  }
}

interface PriceChange {
  readonly what: string;
  readonly was: string | null;
  readonly now: string | null;
}

function comparePrices(was: FoundPrice | null, now: FoundPrice | null, at: Date): readonly PriceChange[] {
  const [before, after] = [flatten(was?.price(at)), flatten(now?.price(at))];
  const changes = [...new Set([...before.keys(), ...after.keys()])]
    .map((what) => ({
      what,
      was: before.get(what) ?? null,
      now: after.get(what) ?? null,
    }))
    .filter((change) => change.was !== change.now);
  if (changes.length > 0 || Bun.deepEquals(was?.model.periods, now?.model.periods)) return changes;
  return [
    {
      what: "prices at other times",
      was: was && "old",
      now: now && "new",
    },
  ];
}

function flatten(price: Price | null = null): ReadonlyMap<string, string> {
  if (price === null) return new Map();
  const named = (prefix: string, rates: Price["rates"] = {}) =>
    Object.entries(rates).map(([kind, rate]) => [`${prefix}${kind}`, rate] as const);
  const tiers = (price.tiers ?? []).flatMap(({ over, rates }) => named(`over ${over}: `, rates));
  return new Map([...named("", price.rates), ...tiers, ...named("factor:", price.factors)]);
}

interface Change extends PriceChange {
  readonly provider: string;
  readonly model: string;
  readonly requests: number;
}

type Books = Readonly<Record<"current" | "next", PriceBook>>;

function compareSeen(flags: LedgerFlags, catalog: Catalog, { current, next }: Books): readonly Change[] {
  const at = new Date();
  const known = new Set<string>();
  using table = openTable(locateLedger(flags), flags);
  return listSeenModels(table).flatMap(({ channel: name, model, requests }) => {
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
  });
}

function pairModels({ current, next }: Books) {
  const providers = [...new Set([...current.providers, ...next.providers])];
  return providers.flatMap((provider) => {
    const seller = { ...ANY_SELLER, provider };
    const listed = [...next.listModels(provider), ...current.listModels(provider)];
    return [...new Set(listed.flatMap(({ ids }) => ids))].map((model) => ({
      provider,
      was: findModel(current, seller, model),
      now: findModel(next, seller, model),
    }));
  });
}

function report(changes: readonly Change[], { name, sha256 }: PriceSource, books: Books, json = false): void {
  const { current, next } = books;
  if (json) {
    const labels = { current: current.label, next: next.label };
    printJson({
      ...labels,
      source: name,
      source_sha256: sha256,
      models: countModels(next),
      changes,
    });
    return;
  }
  if (changes.length > 0) printLines(drawRows(changes, COLUMNS));
  else printNote("No price of a model in the ledger changes.");
  const label = (book: PriceBook): string => `${book.label}, ${countModels(book)} models`;
  printNote(`Now: ${label(current)}. New: ${label(next)}.`);
}

const COLUMNS: Columns<Change> = [
  ["PROVIDER", "provider"],
  ["MODEL", "model"],
  ["PRICE OF", "what"],
  ["WAS $", ({ was }) => was ?? "none", "exact"],
  ["NOW $", ({ now }) => now ?? "none", "exact"],
];

function countModels(book: PriceBook): number {
  return book.providers.reduce((sum, provider) => sum + book.listModels(provider).length, 0);
}

type PriceSource = Awaited<ReturnType<typeof readSource>>;

async function readSource(from: string | undefined) {
  if (from === undefined) return readRelease();
  const text = (await readPlace(from)).toString();
  const date = new Date().toISOString().slice(0, 10);
  const url = isAddress(from) ? new URL(from) : null;
  // A password or query may be secret.
  const place = url === null ? resolve(from) : `${url.origin}${url.pathname}`;
  const name = `${place}, read on ${date}`;
  return {
    name,
    date,
    // A file's prices have no date of their own.
    isRelease: false,
    sha256: sha256Hex(text),
    text,
  };
}

const releaseSchema = z.looseObject({
  tag_name: z.string().regex(/^(?!.*\.\.)[\w.@/-]{1,100}$/),
  published_at: z.iso.datetime(),
});

async function readRelease() {
  const parsed = releaseSchema.safeParse(parseJson((await readPlace(RELEASE_URL)).toString()));
  if (!parsed.success) fail(`${RELEASE_URL} does not name a release. Nothing was changed.`);
  const { tag_name: tag, published_at: published } = parsed.data;
  const date = published.slice(0, 10);
  const text = (await readPlace(placeOfData(tag))).toString();
  return {
    name: `genai-prices ${tag} of ${date}`,
    date,
    isRelease: true,
    sha256: sha256Hex(text),
    text,
  };
}

function isAddress(place: string): boolean {
  return /^https?:\/\//i.test(place);
}

const MAX_BYTES = 32 * 2 ** 20;
const TIMEOUT_MS = 60_000;

async function readPlace(place: string): Promise<Buffer> {
  try {
    if (!isAddress(place)) {
      if (statSync(place).size > MAX_BYTES) throw new Error(`it is larger than ${MAX_BYTES} bytes`);
      return readFileSync(place);
    }
    const url = new URL(place);
    if (url.protocol !== "https:" && !isLoopback(url.hostname)) throw new Error("only https is accepted");
    const [proxy, signal] = [findProxy(url, process.env), AbortSignal.timeout(TIMEOUT_MS)];
    const answer = await fetchAnswer(url, { proxy, signal });
    if (!answer.ok) throw new Error(`the answer is ${answer.status}`);
    const parts: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of answer.body ?? []) {
      size += chunk.length;
      if (size > MAX_BYTES) throw new Error(`it is larger than ${MAX_BYTES} bytes`);
      parts.push(chunk);
    }
    return Buffer.concat(parts);
  } catch (error) {
    const why = codeOf(error) || messageOf(error);
    return fail(`${place} cannot be read: ${why}. Try again, or name a file with --from.`);
  }
}
