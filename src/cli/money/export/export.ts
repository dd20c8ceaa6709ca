// `gateway export otlp|csv`: the lines of a period, for other tools.

import { readRowsSince } from "../../../billing/index/ledger-index.ts";
import { type Line, lineSchema } from "../../../billing/ledger/line.ts";
import { CALL_KINDS, USAGE_KINDS } from "../../../billing/usage.ts";
import type { TraceSettings } from "../../../config/catalog.ts";
import type { LoadedConfig } from "../../../config/file/load.ts";
import { createClient } from "../../../lib/http1/client/client.ts";
import { openConfigUnless } from "../../access/config.ts";
import { quote, readUsageQuery, type UsageFlags } from "../usage/usage.ts";
import { fail, print, printNote } from "../../terminal/terminal.ts";
import { formatCount } from "../../terminal/text.ts";
import { BATCH, placeOf } from "./live.ts";
import { sendSpans } from "./send.ts";
import { describeSpan, encodeSpans, type Span } from "./spans.ts";

export interface ExportFlags extends Omit<UsageFlags, "by" | "csv" | "json"> {
  readonly print?: true;
}

/** Requests of the period, in the order of their lines. */
function* listLines(flags: ExportFlags): Generator<Line, void> {
  const { index, period } = readUsageQuery({ ...flags, by: "day" });
  for (const row of readRowsSince(index(), period.since)) {
    if (row.was !== null || (period.until !== null && row.time >= period.until)) continue;
    const { success, data } = lineSchema.safeParse(row.line);
    if (success) yield data;
  }
}

function* listBatches(flags: ExportFlags, loaded: LoadedConfig | null): Generator<Span[], void> {
  let batch: Span[] = [];
  for (const line of listLines(flags)) {
    batch.push(describeSpan(line, placeOf(line, loaded?.catalog ?? null)));
    if (batch.length < BATCH) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

export async function exportSpans(flags: ExportFlags): Promise<void> {
  const loaded = openConfigUnless(flags.print === true && flags.ledger !== undefined, flags);
  if (flags.print === true) {
    for (const batch of listBatches(flags, loaded)) print(encodeSpans(batch));
    return;
  }
  const { otlp = null } = loaded?.catalog ?? {};
  if (otlp === null)
    fail(
      "There is no receiver. Add `otlp: { url: http://127.0.0.1:4318/v1/traces }` to the config, " +
        "or use --print for JSON lines on stdout.",
    );
  await sendBatches(otlp, listBatches(flags, loaded));
}

async function sendBatches(otlp: TraceSettings, batches: Iterable<Span[]>): Promise<void> {
  const client = createClient();
  let sent = 0;
  try {
    for (const batch of batches) {
      const result = await sendSpans(client, otlp, batch);
      if (result.kind !== "sent")
        fail(`${otlp.url.origin} took ${formatCount(sent, "span")}, and then no more: ${result.why}.`);
      if (result.rejected > 0) printNote(`${formatCount(result.rejected, "span")} rejected: ${result.why}`);
      sent += batch.length - result.rejected;
    }
  } finally {
    client.close();
  }
  print(`${otlp.url.origin} took ${formatCount(sent, "span")}.`);
}

const KINDS = [...USAGE_KINDS, ...CALL_KINDS];

/** A column of the table of requests. */
const COLUMNS: Readonly<Record<string, (line: Line) => string | number | null | undefined>> = {
  time: ({ time }) => time,
  id: ({ id }) => id,
  key: ({ key }) => key,
  group: ({ group }) => group,
  channel: ({ channel }) => channel,
  endpoint: ({ endpoint }) => endpoint,
  model: ({ model }) => model,
  upstream_model: (line) => line.upstream_model,
  tool: ({ client }) => client?.tool,
  session: ({ client }) => client?.session,
  agent: ({ client }) => client?.agent,
  label: ({ client }) => client?.label,
  status: ({ status }) => status,
  outcome: ({ outcome }) => outcome,
  basis: ({ basis }) => basis,
  ...Object.fromEntries(KINDS.map((kind) => [kind, ({ usage }: Line) => usage[kind] ?? 0])),
  official_usd: (line) => line.official_usd,
  multiplier: ({ multiplier }) => multiplier,
  charge_usd: (line) => line.charge_usd,
  provider_usd: (line) => line.provider_usd,
  paid_by: (line) => line.paid_by,
  first_byte_ms: (line) => line.first_byte_ms,
  duration_ms: (line) => line.duration_ms,
  attempts: ({ attempts }) => attempts.length,
  missed_tokens: ({ cache }) => cache?.missed,
  missed_because: ({ cache }) => cache?.because,
  suspect: ({ suspect }) => suspect,
  upstream_request_id: (line) => line.upstream_request_id,
};

export function exportRequests(flags: ExportFlags): void {
  print(Object.keys(COLUMNS).join(","));
  for (const line of listLines(flags)) {
    const cells = Object.values(COLUMNS).map((read) => read(line) ?? "");
    print(cells.map((cell) => (typeof cell === "string" ? quote(cell) : cell)).join(","));
  }
}
