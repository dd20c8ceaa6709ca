// The live feed, one event stream for each open page. Changes are sent twice a
// second: an open page costs a busy gateway little.

import { describeWarning } from "../billing/limits/alerts.ts";
import type { ApiParts } from "../gateway/api/parts.ts";
import { describeBaseUrl } from "../gateway/intake/own-host.ts";
import type { Listener, RequestRecord } from "../gateway/observe/observer.ts";
import type { Exchange } from "../lib/http/exchange.ts";
import { formatUsd } from "../lib/money.ts";
import { quoteWord } from "../lib/text/shell-word.ts";
import { VERSION } from "../lib/version.ts";
import type { About, LiveEvent, Notice } from "./api.ts";
import { NOT_CACHED, SAFE_FIELDS } from "./guard.ts";

const TICK_MS = 500;
const CHANNEL_TICKS = 4;
/** After this time without changes, an empty event shows
 *  that both sides are still there. */
const QUIET_TICKS = 10;
const MAX_NOTICES = 50;
/** As many as the page shows. */
const MAX_REQUESTS = 200;
const MAX_PAGES = 32;

interface Page {
  readonly exchange: Exchange;
  readonly isSignedIn: () => boolean;
  readonly sent: Map<keyof LiveEvent, string>;
  requests: RequestRecord[];
  notices: Notice[];
  isSlow: boolean;
  quiet: number;
}

export function createLive(parts: ApiParts, command: string) {
  const { gateway, activity } = parts;
  const pages = new Set<Page>();
  const notices: Notice[] = [];
  let timer: Timer | null = null;
  let ticks = 0;
  let { catalog } = gateway;
  let revision = 0;
  const collect = (withChannels: boolean): Section[] => {
    if (gateway.catalog !== catalog) revision += 1;
    ({ catalog } = gateway);
    return describeNow(parts, revision, withChannels);
  };
  const tick = (): void => {
    ticks += 1;
    const sections = collect(ticks % CHANNEL_TICKS === 0);
    for (const page of pages) (page.isSignedIn() ? send : end)(page, sections);
  };
  const note = (level: Notice["level"], text: string): void => {
    const notice = { time: gateway.now(), level, text };
    keep(notices, notice, MAX_NOTICES);
    for (const page of pages) keep(page.notices, notice, MAX_NOTICES);
  };
  const leave = (page: Page): void => {
    pages.delete(page);
    if (pages.size > 0 || timer === null) return;
    clearInterval(timer);
    timer = null;
  };
  // `onGone` tells of a browser that leaves, not of an end by this side.
  const end = (page: Page): void => {
    page.exchange.end();
    leave(page);
  };
  const listener: Listener = {
    requestDone: (record) => {
      for (const page of pages) keep(page.requests, record, MAX_REQUESTS);
    },
    limitNear: (warning) => note("warning", describeWarning(warning)),
    notice: note,
  };
  return {
    listener,
    open: (exchange: Exchange, isSignedIn: () => boolean): void => {
      if (exchange.gone) return;
      const [oldest] = pages;
      if (pages.size >= MAX_PAGES && oldest !== undefined) end(oldest);
      exchange.begin(200, [["content-type", "text/event-stream"], NOT_CACHED, ...SAFE_FIELDS]);
      const seen = { requests: [...activity.recent()], notices: [...notices] };
      const page: Page = { exchange, isSignedIn, sent: new Map(), ...seen, isSlow: false, quiet: 0 };
      pages.add(page);
      timer ??= setInterval(tick, TICK_MS).unref();
      exchange.onGone(() => leave(page));
      const about = describeRun(parts, command);
      send(page, [...collect(true), ["about", JSON.stringify(about)]]);
    },
    close: (): void => {
      for (const page of pages) end(page);
    },
  };
}

function keep<T>(list: T[], item: T, most: number): void {
  list.push(item);
  if (list.length > most) list.shift();
}

type Section = readonly [name: keyof LiveEvent, text: string];

function describeNow({ gateway, activity }: ApiParts, revision: number, withChannels: boolean): Section[] {
  const { catalog, channels, ledger } = gateway;
  const streams = activity.open().map((stream) => ({ ...stream, tokens: stream.tokens() }));
  const spend = { today_usd: formatUsd(ledger.sums.spentTogether("day")) };
  return [
    ["streams", JSON.stringify(streams)],
    ["spend", JSON.stringify(spend)],
    ["ledgerProblem", JSON.stringify(ledger.problem)],
    ["revision", `${revision}`],
    ...(withChannels
      ? [["channels", JSON.stringify(channels.view(catalog, gateway.now()))] satisfies Section]
      : []),
  ];
}

function describeRun({ gateway, activity, port, configPath }: ApiParts, command: string): About {
  const { catalog } = gateway;
  const url = describeBaseUrl(catalog.listen.host, port());
  return {
    version: VERSION,
    since: new Date(activity.since).toISOString(),
    address: url,
    run: `${command} run --url ${quoteWord(url)} --secret -`,
    config: configPath,
    timezone: catalog.zone.name,
  };
}

/** A slow page gets the newest state after it has read the one before. */
function send(page: Page, sections: readonly Section[]): void {
  if (page.isSlow || page.exchange.gone) return;
  const changed = sections.filter(([name, text]) => page.sent.get(name) !== text);
  const fields = changed.map(([name, text]) => `"${name}":${text}`);
  if (page.requests.length > 0 || !page.sent.has("requests"))
    fields.push(`"requests":${JSON.stringify(page.requests)}`);
  if (page.notices.length > 0) fields.push(`"notices":${JSON.stringify(page.notices)}`);
  if (fields.length === 0 && page.quiet < QUIET_TICKS) {
    page.quiet += 1;
    return;
  }
  for (const [name, text] of changed) page.sent.set(name, text);
  page.sent.set("requests", "");
  page.requests = [];
  page.notices = [];
  page.quiet = 0;
  // JSON has no line break: one line is one event.
  const event = fields.length === 0 ? ":\n\n" : `data: {${fields.join(",")}}\n\n`;
  const slow = page.exchange.write(Buffer.from(event));
  page.isSlow = slow !== null;
  void slow?.then(() => {
    page.isSlow = false;
  });
}
