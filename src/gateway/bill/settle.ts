// Closes a bill exactly once, however the request ended, and writes its line to the ledger. billing/assess.ts decides
// what was used, billing/charge.ts computes what it costs.

import { redactReading } from "../upstream/redact.ts";
import { assess, type Assessment, describePaidTwice } from "../../billing/assess.ts";
import { type Charge, computeCharge } from "../../billing/charge.ts";
import { addRegion, type Seller, sellerOf } from "../../billing/prices.ts";
import { listLimitUses, listSessionUses } from "../../billing/limits/alerts.ts";
import { hasUsdLimit } from "../../billing/limits/limits.ts";
import type { Basis, LineDraft, Outcome } from "../../billing/ledger/line.ts";
import {
  countTokens,
  OUTPUT_KINDS,
  PROMPT_KINDS,
  type Reading,
  sumUsage,
  type Usage,
} from "../../billing/usage.ts";
import type { GatewayError } from "../../lib/errors.ts";
import { addUsd, formatUsd, parseUsd } from "../../lib/money.ts";
import { type AttemptRecord, type Bill, quoteAt } from "./bill.ts";
import type { Gateway } from "../gateway.ts";
import type { Candidate } from "../intake/match.ts";
import type { ChargeTerms } from "../upstream/background.ts";
import { reportFault } from "../observe/observer.ts";
import { describeLeaving } from "./ending.ts";
import { addMiss } from "./miss.ts";
import { durationOf, reportFinished } from "./request-record.ts";

/** How a request ended. */
export interface Ending {
  readonly outcome: Outcome;
  /** The status that the client got. */
  readonly status: number;
  /** The upstream's status; null if it did not respond. */
  readonly upstreamStatus: number | null;
  /** Null if nothing was metered. */
  readonly reading: Reading | null;
  /** What went wrong, for the log. */
  readonly problem: string | null;
}

/** A bill that is closed and not yet recorded. */
export interface ClosedBill {
  readonly bill: Bill;
  readonly ending: Ending;
  /** Null if nothing is billed, or nothing was sent. */
  readonly draft: LineDraft | null;
}

export function settle(bill: Bill, ending: Ending, gateway: Gateway): void {
  if (bill.settled) return;
  recordBill(closeBill(bill, ending, gateway), gateway);
}

/** Computes the charge. The caller must call `recordBill` afterwards, whatever happens in between. */
export function closeBill(bill: Bill, metered: Ending, gateway: Gateway): ClosedBill {
  bill.settled = true;
  const ending = cleanEnding(bill, metered);
  const hasLine = bill.open && bill.attempts.some(mayHaveArrived);
  return { bill, ending, draft: hasLine ? draftLine(bill, ending, gateway) : null };
}

function cleanEnding(bill: Bill, ending: Ending): Ending {
  const { reading } = ending;
  const candidate = reading === null ? undefined : findLastTried(bill);
  if (reading === null || candidate === undefined) return ending;
  const clean = redactReading(reading, candidate.channel);
  return clean === reading ? ending : { ...ending, reading: clean };
}

export function recordBill(closed: ClosedBill, gateway: Gateway): void {
  const { bill, ending } = closed;
  const { status, outcome, problem } = ending;
  const draft = analyseCache(closed, gateway);
  let line = draft;
  try {
    if (draft !== null) {
      gateway.ledger.append(draft);
      warnOfLimits(draft, bill, gateway);
    } else if (bill.open) gateway.ledger.discard(bill.call.id);
    if (ending.reading?.stored !== undefined) line = billBackground(bill, ending, draft, gateway);
  } finally {
    bill.admission.release();
  }
  const usage = line?.usage ?? null;
  const chargeUsd = line?.charge_usd ?? null;
  const shown = problem ?? (bill.admission.unpriced ? UNPRICED_ALLOWED : null);
  reportFinished(bill, { status, outcome, problem: shown, usage, chargeUsd }, gateway);
}

const PLAIN = { basis: "exact", estimated: [], suspect: null } as const;

function analyseCache({ bill, ending: { reading }, draft }: ClosedBill, gateway: Gateway): LineDraft | null {
  const { prompt } = bill;
  if (prompt === null || draft === null || reading === null) {
    prompt?.release();
    return draft;
  }
  const reprice = (usage: Usage): Charge =>
    chargeFor(bill, { ...PLAIN, parts: [{ model: null, pass: "message", usage }] }, reading, gateway);
  const line = addMiss(draft, { bill, prompt, reading, reprice }, gateway);
  prompt.release();
  return line;
}

/** The owner is warned if a limit is near now. */
function warnOfLimits(line: LineDraft, { match: { key } }: Bill, { ledger, alerts, now }: Gateway): void {
  if (!hasUsdLimit(key.limits) && !hasUsdLimit(key.group.limits)) return;
  const session = line.client?.session;
  alerts.check(listLimitUses([key], ledger, now()));
  if (session !== undefined) alerts.check(listSessionUses(key, session, ledger));
}

/** Limits count the estimate in `line` until the real cost is known. */
function describeTerms({ match, client, requested, overrides }: Bill, line: LineDraft): ChargeTerms {
  const { limit_usd } = line;
  const replaces = limit_usd === undefined ? undefined : { id: line.id, time: line.time, limit_usd };
  return { match, client, requested, overrides, replaces };
}

/** If it was cut, a later request may fetch it again. */
function isFetched({ reading }: Ending): boolean {
  return reading?.stored?.goesOn === false && reading.end !== "open";
}

/** A background response is billed to the first request that fetches it finished. */
function billBackground(
  bill: Bill,
  ending: Ending,
  draft: LineDraft | null,
  gateway: Gateway,
): LineDraft | null {
  const { ledger, background } = gateway;
  const { id = "", goesOn = true } = ending.reading?.stored ?? {};
  if (draft?.basis === "unknown" && goesOn) background.keep(id, describeTerms(bill, draft));
  const terms = draft === null && isFetched(ending) ? background.find(id) : null;
  if (terms === null) return draft;
  const billed: Bill = { ...bill, ...terms, open: true };
  const line = { ...draftLine(billed, ending, gateway), replaces: terms.replaces };
  if (line.basis === "unknown") return null;
  background.forget(id);
  // The client has the response: while the ledger cannot be written, the line waits as all others do.
  ledger.appendUnopened(line);
  warnOfLimits(line, billed, gateway);
  return line;
}

/** Closes the bill of a request to which no channel responded. It gets a line if it may have reached one. */
export function settleFailure(bill: Bill, error: GatewayError, gateway: Gateway): void {
  if (bill.settled) return;
  const outcome = error.code === "client_gone" ? describeLeaving(gateway.halt) : "upstream_error";
  const { status, message: problem } = error;
  settle(bill, { outcome, status, upstreamStatus: status, reading: null, problem }, gateway);
}

const NEVER_SENT = new Set(["connect", "connect_timeout", "shortage", "tls", "withdrawn"]);

function mayHaveArrived({ error }: AttemptRecord): boolean {
  return error === undefined || !NEVER_SENT.has(error);
}

/** Refusals, redirects and foreign pages cost nothing. An upstream that received the request and sent no response, or an
 *  empty one, may have worked on it. */
function isRefusal({ status, error }: AttemptRecord): boolean {
  if (error === "empty_body") return false;
  return status !== undefined && (status >= 300 || error !== undefined);
}

function mayBePaid(attempt: AttemptRecord): boolean {
  return mayHaveArrived(attempt) && !isRefusal(attempt);
}

/** A refusal costs nothing, unless another upstream may have worked on the request before. */
function judgeStatus({ attempts }: Bill, { upstreamStatus }: Ending): number | null {
  const isRefused = upstreamStatus !== null && upstreamStatus >= 400;
  return isRefused && attempts.some(mayBePaid) ? null : upstreamStatus;
}

function draftLine(bill: Bill, ending: Ending, gateway: Gateway): LineDraft {
  const { call, match } = bill;
  const { outcome, status } = ending;
  const reading = readingOf(bill, ending);
  const { basis, charge, suspect, limitUsd, extra } = computeAmounts(bill, ending, reading, gateway);
  return {
    id: call.id,
    time: bill.time,
    key: match.key.name,
    group: match.group.name,
    platform: match.group.platform,
    channel: bill.attempts.at(-1)?.channel ?? "",
    endpoint: call.target.endpoint.label,
    model: match.model ?? "",
    upstream_model: reading?.model ?? null,
    stream: bill.stream,
    status,
    outcome,
    basis,
    usage: charge.usage,
    parts: charge.parts.length > 1 ? [...charge.parts] : undefined,
    raw_usage: reading?.raw ?? null,
    prices: charge.prices,
    price_source: charge.priceSource,
    tier: charge.tier,
    official_usd: charge.official,
    multiplier: match.group.multiplier,
    charge_usd: charge.charge,
    first_byte_ms: bill.firstByteMs,
    duration_ms: durationOf(call),
    attempts: bill.attempts,
    client: bill.client,
    upstream_request_id: bill.upstreamRequestId,
    suspect,
    limit_usd: limitUsd ?? undefined,
    extra,
  };
}

/** What a line says of its amounts. */
interface LineAmounts {
  readonly basis: Basis;
  readonly charge: Charge;
  readonly suspect: string | undefined;
  readonly limitUsd: string | null;
  readonly extra: LineDraft["extra"] & {};
}

const UNKNOWN_CHARGE: Charge = {
  usage: {},
  parts: [],
  prices: null,
  priceSource: null,
  pricedAs: null,
  tier: null,
  official: null,
  charge: null,
  unpricedBecause: null,
  unpricedUsage: null,
  atLeast: null,
};

/** If this fails, the gateway has a fault. The request still gets its line, and limits count what was reserved. */
function computeAmounts(bill: Bill, ending: Ending, reading: Reading | null, gateway: Gateway): LineAmounts {
  try {
    return computeKnownAmounts(bill, ending, reading, gateway);
  } catch (error) {
    reportFault(error, gateway.observer);
    return {
      basis: "unknown",
      charge: UNKNOWN_CHARGE,
      suspect: "the gateway failed to compute the amounts",
      limitUsd: bill.admission.reservedUsd,
      extra: {},
    };
  }
}

function computeKnownAmounts(
  bill: Bill,
  ending: Ending,
  reading: Reading | null,
  gateway: Gateway,
): LineAmounts {
  const assessment = assess({
    outcome: ending.outcome,
    status: judgeStatus(bill, ending),
    reading,
    streamed: bill.stream,
    estimatedInput: bill.estimatedInput,
  });
  const charge = chargeFor(bill, assessment, reading, gateway);
  const basis = chooseBasis(assessment, charge);
  const limitUsd = estimateForLimits(bill, { assessment, basis, charge, reading }, gateway);
  return {
    basis,
    charge,
    suspect: explainSuspicion(bill, assessment),
    limitUsd: addEarlier(bill, limitUsd ?? charge.charge, gateway) ?? limitUsd,
    extra: describeExtra(bill, assessment, charge, reading),
  };
}

/** An embedding has no output, however long its vectors are. */
function readingOf({ call }: Bill, { reading }: Ending): Reading | null {
  const hasOutput = call.target.endpoint.purpose !== "embed";
  return hasOutput || reading === null ? reading : { ...reading, estimatedOutput: 0 };
}

function chooseBasis({ basis }: Assessment, { official }: Charge): Basis {
  return basis !== "unknown" && official === null ? "unpriced" : basis;
}

function chargeFor(bill: Bill, assessment: Assessment, reading: Reading | null, gateway: Gateway): Charge {
  const seller = findSeller(bill);
  const charge = computeCharge({
    parts: assessment.parts,
    tariff: addRegion(reading?.tariff ?? {}, seller),
    model: reading?.model ?? null,
    requested: bill.requested,
    book: gateway.prices,
    overrides: bill.overrides,
    seller,
    unbilled: assessment.unbilled,
    at: new Date(bill.call.time),
    multiplier: bill.match.group.multiplier,
  });
  return assessment.basis === "unknown" ? { ...charge, prices: null, official: null, charge: null } : charge;
}

/** The seller of the channel that responded, or was tried last. */
function findSeller(bill: Bill): Seller | undefined {
  const candidate = findLastTried(bill);
  return candidate && sellerOf(candidate.channel);
}

/** The candidate that responded, or was tried last. */
function findLastTried(bill: Bill): Candidate | undefined {
  return findTried(bill, bill.attempts.at(-1)?.channel);
}

function findTried({ match }: Bill, name: string | undefined): Candidate | undefined {
  return match.candidates.find(({ channel }) => channel.name === name);
}

const UNPRICED_ALLOWED = "the model has no price, so no limit counts this request";

interface KnownUsage {
  readonly assessment: Pick<Assessment, "lacksOutput">;
  readonly basis: Basis;
  readonly charge: Pick<Charge, "usage" | "atLeast" | "charge">;
  readonly reading: Reading | null;
}

function isCharged({ assessment, basis }: KnownUsage, strict: boolean): boolean {
  if (assessment.lacksOutput === true) return false;
  return basis === "exact" || (basis === "partial" && !strict);
}

/** What limits count while the cost of a request is not known: its prompt and the output seen. Null: its charge. */
function estimateForLimits(bill: Bill, known: KnownUsage, gateway: Gateway): string | null {
  const { basis, reading } = known;
  const { admission } = bill;
  if (isCharged(known, admission.strict)) return null;
  // The response continues, or a strict limit needs the most that it can cost.
  const isOpen = admission.strict || reading?.stored?.goesOn === true;
  if (isOpen && admission.reservedUsd !== null) return admission.reservedUsd;
  if (basis === "exact" || basis === "partial") return addUnseen(bill, known, gateway);
  if (basis === "unpriced") return estimateUnpriced(bill, known, gateway);
  return estimateUnknown(bill, reading, gateway);
}

/** With the prompt of each earlier channel that may be paid for the request, too. Null: there is none. */
function addEarlier(bill: Bill, counted: string | null, gateway: Gateway): string | null {
  if (counted === null || bill.attempts.length < 2) return null;
  const prompts = listPaid(bill)
    .slice(0, -1)
    .map(({ channel }) => quoteFor(bill, channel, { input: bill.estimatedInput }, gateway))
    .filter((amount) => amount !== null);
  if (prompts.length === 0) return null;
  return formatUsd(prompts.reduce((sum, amount) => addUsd(sum, parseUsd(amount)), parseUsd(counted)));
}

/** Some counts may be known although the cost is not. */
function estimateUnknown(bill: Bill, reading: Reading | null, gateway: Gateway): string | null {
  const counted = sumUsage(reading?.parts ?? []);
  return (
    quoteLast(bill, addUsage(counted, findUncounted(bill, counted, reading)), gateway) ??
    quoteLast(bill, findUncounted(bill, {}, reading), gateway)
  );
}

/** What was charged, and what was seen beyond the upstream's counts. */
function addUnseen(
  bill: Bill,
  { charge: { usage, charge }, reading }: KnownUsage,
  gateway: Gateway,
): string | null {
  const more = quoteLast(bill, findUncounted(bill, usage, reading), gateway);
  return charge === null || more === null ? null : formatUsd(addUsd(parseUsd(charge), parseUsd(more)));
}

/** Every prompt has tokens, and output that was seen has some, too. */
function findUncounted({ estimatedInput }: Bill, usage: Usage, reading: Reading | null): Usage {
  const isRead = countTokens(usage, PROMPT_KINDS) > 0;
  const output = (reading?.estimatedOutput ?? 0) - countTokens(usage, OUTPUT_KINDS);
  return { input: isRead ? 0 : estimatedInput, output: Math.max(0, output) };
}

function addUsage(usage: Usage, { input = 0, output = 0 }: Usage): Usage {
  return { ...usage, input: (usage.input ?? 0) + input, output: (usage.output ?? 0) + output };
}

/** A kind without a price, such as a hosted shell, must not hide the cost of all other kinds. */
function estimateUnpriced(bill: Bill, known: KnownUsage, gateway: Gateway): string | null {
  const { charge, assessment, reading } = known;
  const { usage, atLeast } = charge;
  const used = assessment.lacksOutput === true ? addUsage(usage, findUncounted(bill, usage, reading)) : usage;
  return quoteLast(bill, used, gateway) ?? atLeast ?? bill.admission.reservedUsd;
}

/** What a usage costs at the channel that was tried last. */
function quoteLast(bill: Bill, usage: Usage, gateway: Gateway): string | null {
  return quoteFor(bill, bill.attempts.at(-1)?.channel, usage, gateway);
}

function quoteFor(bill: Bill, channel: string | undefined, usage: Usage, gateway: Gateway): string | null {
  const { match, overrides } = bill;
  const candidate = findTried(bill, channel) ?? match.candidates[0];
  return candidate === undefined ? null : quoteAt(candidate, match, overrides, gateway)(usage, {});
}

function explainSuspicion(bill: Bill, { suspect }: Assessment): string | undefined {
  if (suspect === null && bill.attempts.length < 2) return undefined;
  const paid = listPaid(bill);
  const twice = paid.length > 1 ? describePaidTwice(paid.map(({ channel }) => channel)) : null;
  const reasons = [suspect, twice].filter((reason) => reason !== null);
  return reasons.length > 0 ? reasons.join("; ") : undefined;
}

/** The attempts that may have to be paid. Fetching a stored response costs nothing. */
function listPaid({ attempts, call }: Bill): readonly AttemptRecord[] {
  return call.exchange.method === "GET" ? [] : attempts.filter(mayBePaid);
}

/** What a reader should know about the amounts, and what `reprice` needs to find a price later. */
function describeExtra(
  bill: Bill,
  { estimated }: Assessment,
  charge: Charge,
  reading: Reading | null,
): LineDraft["extra"] & {} {
  const { requested, match } = bill;
  const { unpricedBecause, unpricedUsage, atLeast, pricedAs } = charge;
  const extra: Record<string, unknown> = {};
  if (bill.call.transport !== undefined) extra["transport"] = bill.call.transport;
  // The upstream's name of the model, if neither client nor response used it. It may be the name with a price.
  if (requested !== null && requested !== match.model && requested !== reading?.model)
    extra["requested_model"] = requested;
  if (estimated.length > 0) extra["estimated"] = estimated;
  if (pricedAs !== null) extra["priced_as"] = pricedAs;
  if (unpricedBecause === null) return extra;
  return {
    ...extra,
    unpriced_because: unpricedBecause,
    // If nothing has a price, the usage in the line says everything.
    ...(atLeast === null ? {} : { unpriced_usage: unpricedUsage, at_least_usd: atLeast }),
    tariff: addRegion(reading?.tariff ?? {}, findSeller(bill)),
  };
}
