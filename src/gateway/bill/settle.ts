// Closes a bill exactly once, and writes its line.

import { assess, type Assessment, describePaidTwice } from "../../billing/assess.ts";
import { type Charge, computeCharge, multiplyCharge } from "../../billing/charge.ts";
import { judgeBill } from "./reported.ts";
import { addRegion } from "../../billing/prices.ts";
import { listLimitUses, listSessionUses } from "../../billing/limits/alerts.ts";
import { hasUsdLimit, isLimited } from "../../billing/limits/limits.ts";
import { draftUnknown } from "../../billing/ledger/journal.ts";
import type { Basis, LineDraft } from "../../billing/ledger/line.ts";
import {
  countTokens,
  OUTPUT_KINDS,
  PROMPT_KINDS,
  type Reading,
  sumUsage,
  type Usage,
} from "../../billing/usage.ts";
import { type Key, limitMultiplier } from "../../config/catalog.ts";
import { addUsd, formatUsd, parseUsd } from "../../lib/money.ts";
import { describeIntent, quoteAt } from "./bill.ts";
import { noteHead, readWindows } from "../channels/allowances.ts";
import type { Purpose } from "../../dialects/dialect.ts";
import type { Gateway } from "../gateway.ts";
import { secretsOf } from "../intake/secrets.ts";
import { reportFault } from "../observe/observer.ts";
import { addMiss } from "./miss.ts";
import { type AttemptRecord, type ChargeTerms, Request } from "../request.ts";
import { reportRequest, reportToChannel } from "./request-record.ts";

/** Writes the lines together. Never throws. */
export function closeBills(requests: readonly Request[], gateway: Gateway): void {
  for (const r of requests)
    try {
      closeBill(r, gateway);
    } catch (fault) {
      reportFault(fault, gateway.observer);
    }
  gateway.ledger.flush();
}

function closeBill(r: Request, gateway: Gateway): void {
  let line: LineDraft | null = null;
  try {
    line = makeLine(r, gateway);
    if (line !== null) {
      // Only limits forecast the next prompt.
      line = gateway.ledger.append(line, isLimited(r.key, r.run) ? r.estimatedInput : null);
      r.run?.count(line);
      warnOfLimits(line, r.key, gateway);
    } else if (r.open) gateway.ledger.discard(r.id);
    if (r.ending.reading?.stored !== undefined) line = billBackground(r, line, gateway);
  } catch (fault) {
    reportFault(fault, gateway.observer);
  } finally {
    r.admission.release();
    // A recording keeps the bytes, and a WebSocket's message may not have left yet.
    if (r.recorded === null && r.transport === null) r.sentPrompt?.free();
  }
  reportRequest(r, line, gateway);
  reportToChannel(r, gateway);
}

function makeLine(r: Request, gateway: Gateway): LineDraft | null {
  const isBilled = r.open && r.attempts.some(mayHaveArrived);
  let draft: LineDraft | null = null;
  try {
    draft = isBilled ? draftLine(r, gateway) : null;
    // If these notes fail, the line is written without them.
    return noteAllowance(r, draft && analyseCache(r, draft, gateway), gateway);
  } catch (fault) {
    reportFault(fault, gateway.observer);
    return isBilled ? (draft ?? draftFailed(r)) : null;
  }
}

function draftFailed(r: Request): LineDraft {
  const { ending, attempts } = r;
  const request = { intent: describeIntent(r), channels: attempts.map(({ channel }) => channel) };
  const times = { first_byte_ms: r.firstByteMs, duration_ms: r.durationMs };
  return draftUnknown(request, {
    ...ending,
    ...times,
    attempts,
    raw_usage: ending.reading?.rawUsage ?? null,
  });
}

function analyseCache(r: Request, draft: LineDraft, gateway: Gateway): LineDraft {
  const { sentPrompt: prompt } = r;
  const { reading, upstreamStatus } = r.ending;
  if (prompt === null || reading === null || (upstreamStatus ?? 0) >= 400) return draft;
  const reprice = (usage: Usage): Charge => {
    const part = { model: null, pass: "message", usage } as const;
    return chargeFor(r, { basis: "exact", parts: [part] }, reading, gateway);
  };
  const line = addMiss(draft, { r, prompt, reading, reprice }, gateway);
  const { contexts, catalog } = gateway;
  const { session, inferred } = r.client;
  const isAlone = session === undefined || (inferred === true && prompt.isShort);
  if (contexts === null || !catalog.context || isAlone) return line;
  const sent = prompt.read();
  if (sent === null) return line;
  const secrets = secretsOf(catalog);
  contexts.note(line, sent.pieces, {
    called: reading.called,
    isSecret: (name) => secrets.holds(name) || r.secrets.holds(name),
    isContinued: sent.prompt.continues !== null,
  });
  return line;
}

/** If a plan paid, the line says how full its windows are. */
function noteAllowance(r: Request, draft: LineDraft | null, gateway: Gateway): LineDraft | null {
  if (r.answered === null) return draft;
  const { response, candidate } = r.answered;
  const { channel } = candidate;
  const seen = r.time + (r.firstByteMs ?? r.durationMs);
  noteHead(gateway.channels.of(channel), response.fields, seen);
  const windows = channel.usesLogin ? readWindows(response.fields, seen) : [];
  if (draft === null || windows.length === 0) return draft;
  return { ...draft, windows: Object.fromEntries(windows.map(({ name, used }) => [name, used ?? 0])) };
}

function warnOfLimits(line: LineDraft, key: Key, { ledger, alerts, now }: Gateway): void {
  if (!hasUsdLimit(key.limits) && !hasUsdLimit(key.group.limits)) return;
  const session = line.client?.session;
  alerts.check(listLimitUses([key], ledger.sums, now()));
  if (session !== undefined) alerts.check(listSessionUses(key, session, ledger.sums));
}

/** A background response is billed to the first request that gets it finished. */
function billBackground(r: Request, draft: LineDraft | null, gateway: Gateway): LineDraft | null {
  const { ledger, background, channels } = gateway;
  const { reading } = r.ending;
  const { id = "" } = reading?.stored ?? {};
  channels.keepStored(id, r);
  if (draft?.basis === "unknown" && goesOn(reading)) background.set(id, describeTerms(r, draft));
  const terms = draft === null && isFetched(reading) ? background.get(id) : undefined;
  if (terms === undefined) return draft;
  const { replaces, model, ...owner } = terms;
  // The request that fetches the response may have another key.
  const tried = owner.candidates.find(({ channel }) => channel.name === r.tried?.channel.name) ?? null;
  const own = { ...owner, tried, open: true, body: { ...r.body, model } };
  const billed = Object.assign(new Request(r, r, r.transport), r, own);
  const line = { ...draftLine(billed, gateway), replaces };
  if (line.basis === "unknown") return null;
  // The line waits while the ledger cannot be written.
  ledger.appendUnopened(line);
  background.delete(id); // a response is charged once
  warnOfLimits(line, billed.key, gateway);
  return line;
}

/** After a cut, the response may be fetched again. */
function isFetched(reading: Reading | null): boolean {
  return reading?.stored?.goesOn === false && reading.end !== "open";
}

function describeTerms(r: Request, { id, time, limit_usd }: LineDraft): ChargeTerms {
  const { key, model, candidates, client, overrides } = r;
  const replaces = limit_usd === undefined ? undefined : { id, time, limit_usd };
  return { foundKey: key, model, candidates, client, overrides, replaces };
}

const NEVER_SENT = new Set(["connect", "connect_timeout", "shortage", "tls", "withdrawn"]);

function mayHaveArrived({ error }: AttemptRecord): boolean {
  return error === undefined || !NEVER_SENT.has(error);
}

/** Refusals, redirects and foreign pages cost nothing.
 *  An upstream with no response, or an empty one, may have worked on the request. */
function isRefusal({ status, error }: AttemptRecord): boolean {
  if (error === "empty_body") return false;
  return status !== undefined && (status >= 300 || error !== undefined);
}

function mayBePaid(attempt: AttemptRecord): boolean {
  return mayHaveArrived(attempt) && !isRefusal(attempt);
}

/** In the order of the ledger's fields. */
function draftLine(r: Request, gateway: Gateway): LineDraft {
  const { key, group, ending, attempts } = r;
  const { purpose } = r.target.endpoint;
  const reading = readAs(purpose, ending.reading);
  const { basis, charge, ...amounts } = describeAmounts(r, reading, gateway);
  return {
    id: r.id,
    time: r.isoTime,
    key: key.name,
    group: group.name,
    platform: group.platform,
    channel: attempts.at(-1)?.channel ?? "",
    endpoint: r.target.endpoint.label,
    model: r.model ?? "",
    upstream_model: reading?.model ?? null,
    stream: r.stream,
    status: ending.status,
    outcome: ending.outcome,
    basis,
    usage: charge.usage,
    parts: amounts.parts,
    raw_usage: reading?.rawUsage ?? null,
    prices: charge.prices,
    price_source: charge.priceSource,
    tier: charge.tier,
    official_usd: charge.official,
    multiplier: group.multiplier,
    charge_usd: charge.charge,
    provider_usd: amounts.provider_usd,
    paid_by: r.payer,
    first_byte_ms: r.firstByteMs,
    duration_ms: r.durationMs,
    attempts,
    client: r.client,
    upstream_request_id: r.upstreamRequestId,
    converted: r.conversion?.between.upstream,
    suspect: amounts.suspect,
    limit_usd: amounts.limit_usd,
    cache: undefined,
    windows: undefined,
    replaces: undefined,
    transport: orAbsent(r.transport),
    path: nameOther(purpose, r.target.path),
    requested_model: nameRequested(r.requested, [r.model, reading?.model]),
    estimated: amounts.estimated,
    priced_as: orAbsent(charge.pricedAs),
    ...amounts.unpriced,
    recording: r.recorded?.name,
    traceparent: gateway.catalog.otlp === null ? undefined : readTrace(r),
  };
}

/** An embedding has no output, however long its vectors are. */
function readAs(purpose: Purpose, reading: Reading | null): Reading | null {
  return purpose === "embed" && reading !== null ? { ...reading, estimatedOutput: 0 } : reading;
}

function nameOther(purpose: Purpose, path: string): string | undefined {
  return purpose === "other" ? path : undefined;
}

function nameRequested(requested: string | null, names: readonly unknown[]): string | undefined {
  return requested === null || names.includes(requested) ? undefined : requested;
}

function orAbsent<T>(value: T | null): T | undefined {
  return value ?? undefined;
}

function describeAmounts(r: Request, reading: Reading | null, gateway: Gateway) {
  const { outcome, upstreamStatus: status } = r.ending;
  // A refusal costs nothing, unless an earlier upstream may have worked.
  const isOpen = status !== null && status >= 400 && r.attempts.some(mayBePaid);
  const assessed = assess({
    outcome,
    status: isOpen ? null : status,
    reading,
    streamed: r.stream,
    estimatedInput: r.estimatedInput,
  });
  const booked = chargeFor(r, assessed, reading, gateway);
  const bill = { assessment: assessed, charge: booked, reading, seller: r.seller };
  const { assessment, charge, providerUsd } = judgeBill(bill, r.group);
  const isUnpriced = assessment.basis !== "unknown" && charge.official === null;
  const basis: Basis = isUnpriced ? "unpriced" : assessment.basis;
  const { estimated } = assessment;
  const isKnown = isCostKnown(basis, assessment);
  return {
    basis,
    charge,
    parts: charge.parts.length > 1 ? [...charge.parts] : undefined,
    provider_usd: providerUsd,
    estimated: estimated.length > 0 ? [...estimated] : undefined,
    suspect: r.attempts.length < 2 ? orAbsent(assessment.suspect) : explainSuspicion(r, assessment),
    limit_usd:
      isKnown && r.payer === undefined
        ? undefined
        : orAbsent(countForLimits(r, { isKnown, basis, charge, reading }, gateway)),
    unpriced: charge.unpricedBecause === null ? null : describeUnpriced(r, charge, reading),
  };
}

/** What `reprice` needs to find a price. Without any, the line's usage is enough. */
function describeUnpriced(r: Request, charge: Charge, reading: Reading | null) {
  const { unpricedBecause, unpricedUsage, atLeast } = charge;
  return {
    unpriced_because: orAbsent(unpricedBecause),
    ...(atLeast !== null && { unpriced_usage: orAbsent(unpricedUsage), at_least_usd: atLeast }),
    tariff: { ...addRegion(reading?.tariff ?? {}, r.seller) },
  };
}

const TRACEPARENT = /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

function readTrace({ exchange }: Request): string | undefined {
  const trace = exchange.field("traceparent");
  return trace !== undefined && TRACEPARENT.test(trace) ? trace : undefined;
}

function chargeFor(
  r: Request,
  assessment: Pick<Assessment, "basis" | "parts" | "unbilled">,
  reading: Reading | null,
  gateway: Gateway,
): Charge {
  const seller = r.seller;
  const charge = computeCharge({
    parts: assessment.parts,
    tariff: addRegion(reading?.tariff ?? {}, seller),
    model: reading?.model ?? null,
    requested: r.requested,
    book: gateway.prices,
    overrides: r.overrides,
    seller,
    unbilled: assessment.unbilled,
    at: new Date(r.time),
    multiplier: r.group.multiplier,
  });
  if (assessment.basis !== "unknown") return charge;
  return { ...charge, prices: null, official: null, charge: null };
}

interface Judged {
  readonly isKnown: boolean;
  readonly basis: Basis;
  readonly charge: Charge;
  readonly reading: Reading | null;
}

function isCostKnown(basis: Basis, { lacksOutput }: Assessment): boolean {
  return isCharged(basis) && lacksOutput !== true;
}

/** Limits also count what a plan pays for, which is not charged. */
function countForLimits(r: Request, judged: Judged, gateway: Gateway): string | null {
  const { charge } = judged;
  const counted = r.payer === undefined ? charge : multiplyCharge(charge, limitMultiplier(r.group));
  const estimated = judged.isKnown ? null : estimateCost(r, { ...judged, charge: counted }, gateway);
  return estimated ?? counted.charge;
}

function estimateCost(r: Request, { basis, charge, reading }: Judged, gateway: Gateway): string | null {
  const { mostUsd, reservedUsd } = r.admission;
  if (goesOn(reading) && mostUsd !== null) return mostUsd;
  const counted = basis === "unknown" ? sumUsage(reading?.parts ?? []) : charge.usage;
  const unseen = findUncounted(r, counted, reading);
  if (isCharged(basis)) return addUsdTexts(charge.charge, quoteFor(r, unseen, gateway));
  const { input = 0, output = 0 } = counted;
  const all = { ...counted, input: input + unseen.input, output: output + unseen.output };
  // A kind without a price must not hide the other costs.
  return quoteFor(r, all, gateway) ?? charge.atLeast ?? reservedUsd;
}

function isCharged(basis: Basis): boolean {
  return basis === "exact" || basis === "partial";
}

function goesOn(reading: Reading | null): boolean {
  return reading?.stored?.goesOn === true;
}

function addUsdTexts(a: string | null, b: string | null): string | null {
  return a === null || b === null ? null : formatUsd(addUsd(parseUsd(a), parseUsd(b)));
}

/** The tokens of the prompt and of output that was seen. */
function findUncounted({ estimatedInput }: Request, usage: Usage, reading: Reading | null) {
  const isRead = countTokens(usage, PROMPT_KINDS) > 0;
  const output = (reading?.estimatedOutput ?? 0) - countTokens(usage, OUTPUT_KINDS);
  return { input: isRead ? 0 : estimatedInput, output: Math.max(0, output) };
}

function quoteFor(r: Request, usage: Usage, gateway: Gateway): string | null {
  const candidate = r.tried ?? r.candidates[0];
  return candidate === undefined ? null : quoteAt(candidate, r, r.overrides, gateway)(usage);
}

function explainSuspicion({ method, attempts }: Request, { suspect }: Assessment): string | undefined {
  // Fetching a stored response costs nothing.
  const paid = method === "GET" ? [] : attempts.filter(mayBePaid);
  const twice = paid.length > 1 ? describePaidTwice(paid.map(({ channel }) => channel)) : null;
  return [suspect, twice].filter((reason) => reason !== null).join("; ") || undefined;
}
