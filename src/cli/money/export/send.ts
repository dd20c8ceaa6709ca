// Sends spans to a receiver of OTLP over HTTP.

import { findProxy } from "../../../config/proxy.ts";
import type { TraceSettings } from "../../../config/catalog.ts";
import { fetchWhole } from "../../../gateway/upstream/fetch.ts";
import { getErrorMessage } from "../../../lib/errors.ts";
import { originOf, type Upstream } from "../../../lib/http/upstream.ts";
import { Fields } from "../../../lib/http/fields.ts";
import { getField, parseJson } from "../../../lib/json/json.ts";
import { encodeSpans, type Span } from "./spans.ts";

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

export async function sendSpans(
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
