// What is known to be left on each channel: what its upstream said last. It is shown to people, and nothing is refused
// because of it. An upstream can send anything, so only names and numbers of a known form are taken.

import type { Alerts } from "../../billing/limits/alerts.ts";
import type { Catalog, Channel } from "../../config/catalog.ts";
import type { Allowance } from "../../lib/text/allowance.ts";
import type { Fields } from "../../lib/http/fields.ts";
import { readReset } from "../upstream/retry-after.ts";
import type { ChannelView } from "./view.ts";

interface AllowanceParts {
  readonly alerts: () => Pick<Alerts, "checkShare">;
  readonly now: () => number;
}

interface Known {
  readonly channel: Channel;
  /** The last answer that said something. */
  head: { readonly fields: Fields; readonly seen: number } | null;
}

const NOTHING: readonly Allowance[] = [];
export class Allowances {
  readonly #parts: AllowanceParts;
  /** By the names of channels. */
  readonly #known = new Map<string, Known>();

  constructor(parts: AllowanceParts) {
    this.#parts = parts;
  }

  /** An answer of the channel has come. Returns the windows of a plan that pays for it. The rest is read when somebody looks. */
  note(channel: Channel, fields: Fields, seen: number): readonly Allowance[] {
    // Most answers have such fields, and nobody may ever look.
    if (!/ratelimit-|x-codex-/.test(fields.text)) return NOTHING;
    const known = this.#of(channel);
    // Of requests at the same time, one that began earlier may end later.
    if (seen >= (known.head?.seen ?? 0)) known.head = { fields, seen };
    if (!channel.usesLogin) return NOTHING;
    const windows = readWindows(fields, seen);
    for (const window of windows) this.#check(channel, window.name, window);
    return windows;
  }

  list(channel: Channel): Allowance[] {
    const { head } = this.#of(channel);
    if (head === null) return [];
    const found = [...readWindows(head.fields, head.seen), ...readRates(head.fields, head.seen)];
    const now = this.#parts.now();
    // A window that has begun anew since, and a rate that has filled up, are not known any more.
    return found.filter(({ resets }) => resets === null || Date.parse(resets) > now);
  }

  /** Adds what is left to what is shown of each channel. */
  addTo(views: readonly ChannelView[], { channels }: Pick<Catalog, "channels">): ChannelView[] {
    return views.map((view) => {
      const channel = channels.get(view.name);
      const allowance = channel === undefined ? [] : this.list(channel);
      return allowance.length === 0 ? view : { ...view, allowance };
    });
  }

  /** A changed config may have another upstream, or another account, under the same name. */
  #of(channel: Channel): Known {
    const { name, baseUrl, credential } = channel;
    const found = this.#known.get(name);
    if (found?.channel.baseUrl.href === baseUrl.href && found.channel.credential === credential) return found;
    const made: Known = { channel, head: null };
    this.#known.set(name, made);
    return made;
  }

  #check({ name }: Channel, limit: string, { used, resets }: Allowance): void {
    const moment = resets === null ? null : Date.parse(resets);
    this.#parts
      .alerts()
      .checkShare({ holder: { kind: "channel", name }, limit, used: used ?? 0, resets: moment });
  }
}

/** Beyond these there is nothing that a person could read. */
const MAX_WINDOWS = 6;

/** Seen in answers to Claude Code with a plan: `5h`, `7d`, `7d_oi`. The value is a share. */
const SHARE = /^(anthropic-ratelimit-unified-(\d{1,3}[hd](?:[_-][a-z0-9]{1,12})?)-)utilization$/;
/** Read by Codex 0.169: the usual two windows, and such of single models. */
const PERCENT = /^(x-codex-(?:([a-z0-9]{1,20})-)?(primary|secondary)-)used-percent$/;
const NUMBER = /^\d{1,4}(?:\.\d{1,9})?$/;

/** Of a plan. `seen`: when the answer came. */
function readWindows(fields: Fields, seen: number): Allowance[] {
  const windows: Allowance[] = [];
  for (const [name, value] of fields) {
    const window = NUMBER.test(value) ? readWindow(fields, seen, name, Number(value)) : null;
    if (window !== null && windows.push(window) === MAX_WINDOWS) break;
  }
  return windows;
}

function readWindow(fields: Fields, seen: number, field: string, value: number): Allowance | null {
  const [, unified, span] = SHARE.exec(field) ?? [];
  if (unified !== undefined && span !== undefined) {
    const resets = readReset(fields.get(`${unified}reset`), seen);
    // A share may have more digits than the product of two floats keeps.
    return describe("window", span.replace(/[_-]/, " "), seen, {
      used: Math.round(value * 1e4) / 100,
      resets,
    });
  }
  const [, codex, model = "", which = ""] = PERCENT.exec(field) ?? [];
  if (codex === undefined) return null;
  const minutes = Number(fields.get(`${codex}window-minutes`));
  const after = fields.get(`${codex}reset-after-seconds`);
  const resets = readReset(fields.get(`${codex}reset-at`), seen) ?? readReset(after && `${after}s`, seen);
  const name = `${nameWindow(minutes) ?? which} ${model}`.trim();
  return describe("window", name, seen, { used: value, resets });
}

/** `5h`, `7d`. */
function nameWindow(minutes: number): string | null {
  if (!Number.isSafeInteger(minutes) || minutes < 1) return null;
  if (minutes % 1440 === 0) return `${minutes / 1440}d`;
  return minutes % 60 === 0 ? `${minutes / 60}h` : `${minutes}m`;
}

const RATES = ["requests", "tokens", "input-tokens", "output-tokens"];
const COUNT = /^\d{1,15}$/;

/** Of an API key: Anthropic's fields, and those of OpenAI, which others send too. */
function readRates(fields: Fields, seen: number): Allowance[] {
  return RATES.flatMap((rate) => {
    const read = (word: string): string | undefined =>
      fields.get(`anthropic-ratelimit-${rate}-${word}`) ?? fields.get(`x-ratelimit-${word}-${rate}`);
    const [left = "", of = ""] = [read("remaining"), read("limit")];
    if (!COUNT.test(left) || !COUNT.test(of)) return [];
    return [
      describe("rate", rate.replace("-", " "), seen, { left, of, resets: readReset(read("reset"), seen) }),
    ];
  });
}

type Amounts = Partial<Pick<Allowance, "used" | "left" | "of">> & { readonly resets?: number | null };

function describe(
  kind: Allowance["kind"],
  name: string,
  seen: number,
  { used = null, left = null, of = null, resets = null }: Amounts,
): Allowance {
  const ends = resets === null ? null : new Date(resets).toISOString();
  return { kind, name, used, left, of, resets: ends, seen: new Date(seen).toISOString() };
}
