// Sends a span for each line to the receiver of `otlp:`, in batches, after the line is written. No request waits for it.

import type { LineDraft } from "../../billing/ledger/line.ts";
import { sellerOf } from "../../billing/prices.ts";
import type { Catalog, TraceSettings } from "../../config/catalog.ts";
import { addressOf } from "../../gateway/upstream/origin.ts";
import { originOf, type Upstream } from "../../lib/http/upstream.ts";
import { createClient } from "../../lib/http/client.ts";
import { type ChannelPlace, describeSpan, encodeSpans, type ExportedLine, type Span } from "./spans.ts";
import { findProxy } from "../../config/proxy.ts";
import { fetchWhole } from "../../gateway/upstream/fetch.ts";
import { getErrorMessage } from "../../lib/errors.ts";
import { Fields } from "../../lib/http/fields.ts";
import { getField, parseJson } from "../../lib/json/json.ts";

/** While the receiver is away, at most so many wait. The oldest go first. */
const MAX_WAITING = 10_000;
/** A batch of this size takes less than a millisecond to write. */
const BATCH = 50;
const PAUSE_MS = 1000;
const MAX_PAUSE_MS = 60_000;
const LAST_MS = 2000;

export interface LiveExport {
  add(line: LineDraft): void;
  /** Sends what waits, for two seconds at most. */
  close(): Promise<void>;
}

/** Where spans go, and where their channels are. */
type Places = Pick<Catalog, "otlp" | "channels">;

export interface LiveOptions {
  readonly catalog: () => Places;
  readonly warn: (text: string) => void;
}

export function createLiveExport(options: LiveOptions): LiveExport {
  return new SpanQueue(options);
}

class SpanQueue implements LiveExport {
  readonly #options: LiveOptions;
  readonly #client: Upstream = createClient();
  #waiting: Span[] = [];
  #dropped = 0;
  /** Why the receiver is away; null: it is not. */
  #problem: string | null = null;
  #pauseMs = PAUSE_MS;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #sending: Promise<void> | null = null;
  #closed = false;

  constructor(options: LiveOptions) {
    this.#options = options;
  }

  add(line: LineDraft): void {
    const catalog = this.#options.catalog();
    this.#waiting.push(describeSpan(line, placeOf(line, catalog)));
    if (this.#waiting.length > MAX_WAITING) {
      this.#waiting.shift();
      this.#dropped += 1;
    }
    this.#schedule();
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    const last = Promise.withResolvers<void>();
    const timer = setTimeout(last.resolve, LAST_MS);
    await Promise.race([this.#sendAll(), last.promise]);
    clearTimeout(timer);
    const lost = this.#waiting.length + this.#dropped;
    if (lost > 0) this.#options.warn(`otlp: ${lost} spans were not sent`);
    this.#client.close();
  }

  #schedule(): void {
    if (this.#timer !== null || this.#closed) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      void this.#sendAll();
    }, this.#pauseMs);
    this.#timer.unref();
  }

  #sendAll(): Promise<void> {
    this.#sending ??= this.#sendBatches().finally(() => {
      this.#sending = null;
      if (this.#waiting.length > 0) this.#schedule();
    });
    return this.#sending;
  }

  async #sendBatches(): Promise<void> {
    const { catalog, warn } = this.#options;
    while (this.#waiting.length > 0) {
      const { otlp } = catalog();
      if (otlp === null) {
        this.#waiting = [];
        return;
      }
      const batch = this.#waiting.slice(0, BATCH);
      const sent = await sendSpans(this.#client, otlp, batch);
      if (sent.kind === "away") {
        this.#noteAway(sent.why);
        return;
      }
      // Spans that were dropped meanwhile were the oldest ones, which are in the batch.
      const done = new Set(batch);
      this.#waiting = this.#waiting.filter((span) => !done.has(span));
      if (sent.kind === "refused") warn(`otlp: ${batch.length} spans were refused: ${sent.why}`);
      else if (sent.rejected > 0) warn(`otlp: ${sent.rejected} spans were rejected: ${sent.why}`);
      this.#noteBack();
    }
  }

  #noteAway(why: string): void {
    this.#pauseMs = Math.min(MAX_PAUSE_MS, this.#pauseMs * 2);
    if (this.#problem === null || this.#dropped > 0) this.#report(why);
    this.#problem = why;
  }

  #noteBack(): void {
    this.#pauseMs = PAUSE_MS;
    if (this.#problem === null) return;
    this.#problem = null;
    this.#options.warn("otlp: the receiver answers again");
  }

  #report(why: string): void {
    const lost = this.#dropped === 0 ? "" : `; ${this.#dropped} older ones were dropped`;
    this.#options.warn(`otlp: the receiver is away (${why}): ${this.#waiting.length} spans wait${lost}`);
    this.#dropped = 0;
  }
}

/** Where a channel's upstream is, for the span of a line. */
function placeOf(
  { channel: name }: Pick<ExportedLine, "channel">,
  catalog: Pick<Catalog, "channels"> | null,
): ChannelPlace | null {
  const channel = catalog?.channels.get(name);
  if (channel === undefined) return null;
  const { host, port } = addressOf(channel).origin;
  return { provider: sellerOf(channel).provider, host, port };
}

export type Sent =
  | { readonly kind: "sent"; readonly rejected: number; readonly why: string }
  /** The receiver is away or busy: the same spans may be sent again. */
  | { readonly kind: "away"; readonly why: string }
  /** It will never take them. */
  | { readonly kind: "refused"; readonly why: string };

const DEADLINES = { connectMs: 10_000, firstByteMs: 10_000, idleMs: 10_000 };
const MAX_ANSWER_BYTES = 65_536;
const MAX_SHOWN = 200;
/** The statuses after which a client may try again, by the specification of OTLP. */
const BUSY = new Set([429, 502, 503, 504]);

async function sendSpans(
  client: Upstream,
  { url, headers }: TraceSettings,
  spans: readonly Span[],
): Promise<Sent> {
  const proxy = findProxy(url, process.env);
  const origin = { ...originOf(url), ...(proxy !== null && { proxy }) };
  const fields = Fields.of([
    ["content-type", "application/json"],
    ["user-agent", "gateway"],
    ...Object.entries(headers),
  ]);
  try {
    const { response, body } = await fetchWhole(
      client,
      {
        origin,
        method: "POST",
        target: url.pathname + url.search,
        fields,
        body: Buffer.from(encodeSpans(spans)),
        deadlines: DEADLINES,
      },
      MAX_ANSWER_BYTES,
    );
    return judgeAnswer(response.status, Buffer.from(body).toString());
  } catch (error) {
    return { kind: "away", why: getErrorMessage(error) };
  }
}

function judgeAnswer(status: number, text: string): Sent {
  if (BUSY.has(status)) return { kind: "away", why: `it answers ${status}` };
  // A redirect is not followed: the headers may hold a credential.
  if (status >= 300) return { kind: "refused", why: `it answers ${status}` };
  const partial = getField(parseJson(text), "partialSuccess");
  const message = getField(partial, "errorMessage");
  const rejected = Number(getField(partial, "rejectedSpans") ?? 0);
  const why = typeof message === "string" ? message.slice(0, MAX_SHOWN) : "";
  return { kind: "sent", rejected: Number.isSafeInteger(rejected) ? rejected : 0, why };
}
