// The drawer of a request: its cost, the reasons, and the proof.

import { BASES, describeCause, OUTCOMES, PAYERS } from "../../../billing/reports/words.ts";
import type { RequestDocument } from "../../../billing/reports/request.ts";
import type { Document } from "../../../gateway/api/reports.ts";
import type { RequestRecord } from "../../../gateway/observe/observer.ts";
import { Copy, Dialog, Fact, Waiting } from "../parts/basic.tsx";
import { formatCount, formatExact, formatFull, formatMs, localize, nameKind } from "../parts/format.ts";
import { type Column, Table } from "../parts/table.tsx";
import { hrefOf } from "../state/route.ts";
import { useData, useRetry } from "../state/use.ts";

/** A line is in the ledger a moment after the request ends. */
const RETRY_MS = 400;
const AWAITED_MS = 10_000;
const BILLED = new Set(["complete", "client_closed", "upstream_cut", "upstream_error", "interrupted"]);

export function RequestPanel({
  id,
  request,
  isOpen,
  onClose,
}: {
  readonly id: string;
  /** The ended request, if the live feed still has it. */
  readonly request: RequestRecord | null;
  readonly isOpen: boolean;
  readonly onClose: () => void;
}) {
  const loaded = useData<Document<"request">>(`reports/request?id=${encodeURIComponent(id)}`);
  const { data } = loaded;
  const found = data?.found ?? null;
  const isAwaited = data !== null && found === null && mayCome(request);
  useRetry(isAwaited, RETRY_MS, loaded);
  return (
    <Dialog title="Request" side onClose={onClose}>
      {typeof request?.problem === "string" && <p class="problem">{localize(request.problem)}</p>}
      <Waiting of={loaded} text="Reading the ledger …" />
      {found !== null && <Found found={found} />}
      {data !== null && found === null && (
        <p class="quiet">{isAwaited ? "Reading the ledger …" : explainNone(request, isOpen)}</p>
      )}
      <p class="actions">
        <Copy text={id} label="the id of the request" />
      </p>
    </Dialog>
  );
}

function explainNone(request: RequestRecord | null, isOpen: boolean): string {
  if (isOpen) return "This request is running. Its cost is here as soon as it has ended.";
  if (request === null)
    return "The ledger has no request with this id. A running request gets its line when it ends.";
  return hasLine(request)
    ? "The ledger has no line of this request yet."
    : "This request got no answer from a channel, so it cost nothing and has no line in the ledger.";
}

export function hasLine({ outcome, channel }: RequestRecord): boolean {
  return BILLED.has(outcome) && channel !== null;
}

function mayCome(request: RequestRecord | null): boolean {
  if (request === null || !hasLine(request)) return false;
  return Date.now() - request.time - request.durationMs < AWAITED_MS;
}

function Found({ found }: { readonly found: RequestDocument }) {
  const { line, corrections } = found;
  const corrected = corrections.at(-1);
  const { charge_usd: charge, paid_by: payer } = corrected ?? line;
  const answered = line.upstream_model === line.model ? null : line.upstream_model;
  return (
    <div class="column">
      <p>
        <b class="stat-value">{charge === null ? "Cost not known" : formatExact(charge)}</b>{" "}
        <span class="quiet">{payer === undefined ? charge !== null && "charged" : PAYERS[payer]}</span>
      </p>
      <p>
        <b>{line.model}</b>
        {answered !== null && `, answered as ${answered}`}: {OUTCOMES[line.outcome]}; {BASES[line.basis]}.
      </p>
      {line.suspect !== undefined && <p class="problem">Check it: {line.suspect}</p>}
      <Facts line={line} />
      <Bill found={found} />
      {corrections.map(({ id, time, was }) => (
        <p class="quiet" key={id}>
          Corrected at {formatFull(Date.parse(time))}: the charge was{" "}
          {was.charge_usd === null ? "not known" : formatExact(was.charge_usd)}.
        </p>
      ))}
      {line.cache !== undefined && (
        <p class="missed">
          The cache missed {formatCount(line.cache.missed)} tokens: {describeCause(line.cache)}
          {line.cache.usd !== null && `. That cost ${formatExact(line.cache.usd)} more than reading them`}.
        </p>
      )}
      {line.attempts.length > 1 && (
        <ol class="attempts" aria-label="Attempts">
          {line.attempts.map(({ channel, status, error }, index) => (
            <li key={index}>
              {channel}: {error ?? (status === undefined ? "no answer" : `status ${status}`)}
            </li>
          ))}
        </ol>
      )}
      <Proof found={found} />
    </div>
  );
}

function Facts({ line }: { readonly line: RequestDocument["line"] }) {
  const { client = {} } = line;
  return (
    <dl class="facts-row">
      <Fact title="Time" text={formatFull(Date.parse(line.time))} />
      <Fact title="Key" text={line.key} href={hrefOf(["keys"], { key: line.key })} />
      <Fact title="Group" text={line.group} href={hrefOf(["keys"], { group: line.group })} />
      <Fact title="Channel" text={line.channel} href={hrefOf(["channels"], { channel: line.channel })} />
      {client.session !== undefined && (
        <Fact title="Session" text={client.session} href={hrefOf(["sessions", client.session])} />
      )}
      {client.tool !== undefined && <Fact title="Tool" text={client.tool} />}
      {client.label !== undefined && <Fact title="Label" text={client.label} />}
      <Fact title="Status" text={line.status === null ? "none" : String(line.status)} />
      <Fact title="First byte" text={formatMs(line.first_byte_ms)} />
      <Fact title="Duration" text={formatMs(line.duration_ms)} />
    </dl>
  );
}

interface Row {
  readonly kind: string;
  readonly count?: number;
  readonly price?: string | null;
  readonly usd: string | null;
  readonly isSum?: boolean;
}

const COLUMNS: readonly Column<Row>[] = [
  ["Kind", "text", ({ kind }) => kind],
  ["Count", "number", ({ count }) => (count === undefined ? undefined : formatCount(count))],
  ["Price", "number", ({ price }) => price],
  ["Amount", "number", ({ usd }) => usd && formatExact(usd)],
];

const UNITS = { "1,000 calls": "1,000", "1,000,000 tokens": "1M" } as const;

function Bill({ found: { line, corrections, passes } }: { readonly found: RequestDocument }) {
  const {
    official_usd: official,
    multiplier,
    charge_usd: charge,
    price_source: source,
  } = corrections.at(-1) ?? line;
  const used = passes.flatMap(({ pass, model, amounts }) =>
    amounts
      .filter(({ count }) => count > 0)
      .map(({ kind, count, per, price, usd }): Row => ({
        kind: pass === null ? nameKind(kind) : `${nameKind(kind)}, ${pass} by ${model}`,
        count,
        price: price && `${formatExact(price)} / ${UNITS[per]}`,
        usd,
      })),
  );
  const sums: readonly Row[] = [
    { kind: "Official amount", usd: official, isSum: true },
    { kind: "Charge", price: `× ${multiplier}`, usd: charge, isSum: true },
  ];
  const notes = [
    ...(source === null ? ["No price is known, so no sum includes this request"] : [`Prices: ${source}`]),
    ...passes.flatMap(({ tier, factors }) => [
      ...(tier === null ? [] : [`tier ${tier}`]),
      ...Object.entries(factors).map(([name, value]) => `each price × ${value} (${name})`),
    ]),
    ...(line.provider_usd === undefined ? [] : [`the seller says ${formatExact(line.provider_usd)}`]),
    ...(line.at_least_usd === undefined ? [] : [`the priced parts cost ${formatExact(line.at_least_usd)}`]),
  ];
  return (
    <div>
      <Table
        name="Usage and prices"
        columns={COLUMNS}
        rows={[...used, ...sums]}
        keyOf={({ kind }) => kind}
        isSum={({ isSum }) => isSum === true}
      />
      <p class="quiet">{[...new Set(notes)].join("; ")}.</p>
    </div>
  );
}

function Proof({ found: { file, line_number: number, sha256, line } }: { readonly found: RequestDocument }) {
  return (
    <details>
      <summary>Proof</summary>
      <p class="quiet">
        Line {formatCount(number)} of {file}. <code>gateway ledger verify</code> derives its amounts again and
        checks its place in the chain.
      </p>
      <dl class="proof">
        <dt>SHA-256 of this line</dt>
        <dd>
          <code>{sha256}</code>
        </dd>
        <dt>of the line before</dt>
        <dd>
          <code>{line.prev}</code>
        </dd>
        {line.upstream_request_id !== undefined && (
          <>
            <dt>The upstream’s id</dt>
            <dd>
              <code>{line.upstream_request_id}</code>
            </dd>
          </>
        )}
      </dl>
    </details>
  );
}
