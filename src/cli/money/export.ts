// Sends a span for each line to the receiver of `otlp:`, in batches, after the line is written. No request waits for it.

import type { LineDraft } from "../../billing/ledger/line.ts";
import { sellerOf } from "../../billing/prices.ts";
import type { Catalog, TraceSettings } from "../../config/catalog.ts";
import { findProxy } from "../../config/proxy.ts";
import { fetchWhole } from "../../gateway/upstream/fetch.ts";
import { addressOf } from "../../gateway/upstream/address.ts";
import { getErrorMessage } from "../../lib/errors.ts";
import { createClient } from "../../lib/http/client.ts";
import { Fields } from "../../lib/http/fields.ts";
import { originOf, type Upstream } from "../../lib/http/upstream.ts";
import { getField, parseJson } from "../../lib/json/json.ts";
import { describeSpan, encodeSpans, type Span } from "./spans.ts";

/** The most that wait while the receiver is away. Then the oldest are dropped. */
const MAX_WAITING = 10_000;
/** A batch of this size takes less than a millisecond to write. */
const BATCH = 50;
const PAUSE_MS = 1000;
const LAST_MS = 2000;

export interface LiveOptions {
  /** Where spans go, and where their channels are. */
  readonly catalog: () => Pick<Catalog, "otlp" | "channels">;
  readonly warn: (text: string) => void;
}

export function createLiveExport({ catalog, warn }: LiveOptions) {
  const client = createClient();
  let waiting: Span[] = [];
  let isAway = false;
  let sending: Promise<void> | null = null;
  const sendBatches = async (): Promise<void> => {
    while (waiting.length > 0) {
      const { otlp } = catalog();
      const batch = new Set(waiting.slice(0, BATCH));
      const problem = otlp === null ? null : await sendSpans(client, otlp, [...batch]);
      if (problem?.isAway === true) {
        if (!isAway) warn(`otlp: the receiver is away (${problem.why}): ${waiting.length} spans wait`);
        isAway = true;
        return;
      }
      // Those that were dropped meanwhile were the oldest ones, which are in the batch.
      waiting = waiting.filter((span) => !batch.has(span));
      if (problem !== null) warn(`otlp: spans were refused: ${problem.why}`);
      if (isAway) warn("otlp: the receiver answers again");
      isAway = false;
    }
  };
  const send = (): Promise<void> => (sending ??= sendBatches().finally(() => (sending = null)));
  const timer = setInterval(() => void send(), PAUSE_MS).unref();
  return {
    add: (line: LineDraft): void => {
      const channel = catalog().channels.get(line.channel);
      const place = channel && { ...addressOf(channel).origin, provider: sellerOf(channel).provider };
      waiting.push(describeSpan(line, place ?? null));
      if (waiting.length > MAX_WAITING) waiting.shift();
    },
    /** Sends what waits, for two seconds at most. */
    close: async (): Promise<void> => {
      await Promise.race([send(), Bun.sleep(LAST_MS)]);
      clearInterval(timer);
      if (waiting.length > 0) warn(`otlp: ${waiting.length} spans were not sent`);
      client.close();
    },
  };
}

const DEADLINES = { connectMs: 10_000, firstByteMs: 10_000, idleMs: 10_000 };
const MAX_ANSWER_BYTES = 65_536;
const MAX_SHOWN = 200;
/** The statuses after which a client may try again, by the specification of OTLP. */
const BUSY = new Set([429, 502, 503, 504]);

/** Null: it has taken them. `isAway`: the same spans may be sent again. */
async function sendSpans(
  client: Upstream,
  { url, headers }: TraceSettings,
  spans: readonly Span[],
): Promise<{ readonly isAway: boolean; readonly why: string } | null> {
  const proxy = findProxy(url, process.env);
  const request = {
    origin: { ...originOf(url), ...(proxy !== null && { proxy }) },
    method: "POST",
    target: url.pathname + url.search,
    fields: Fields.of([
      ["content-type", "application/json"],
      ["user-agent", "gateway"],
      ...Object.entries(headers),
    ]),
    body: Buffer.from(encodeSpans(spans)),
    deadlines: DEADLINES,
  };
  try {
    const { response, body } = await fetchWhole(client, request, MAX_ANSWER_BYTES);
    const { status } = response;
    // A redirect is not followed: the headers may hold a credential.
    if (status >= 300) return { isAway: BUSY.has(status), why: `it answers ${status}` };
    const partial = getField(parseJson(Buffer.from(body).toString()), "partialSuccess");
    const message = getField(partial, "errorMessage");
    if (!(Number(getField(partial, "rejectedSpans")) > 0)) return null;
    return { isAway: false, why: typeof message === "string" ? message.slice(0, MAX_SHOWN) : "" };
  } catch (error) {
    return { isAway: true, why: getErrorMessage(error) };
  }
}
