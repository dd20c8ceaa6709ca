// Closes a bill exactly once, and writes its line.

import { listLimitUses, listSessionUses } from "../../billing/limits/alerts.ts";
import { hasUsdLimit, isLimited } from "../../billing/limits/limits.ts";
import { draftUnknown } from "../../billing/ledger/journal.ts";
import type { LineDraft } from "../../billing/ledger/line.ts";
import type { Reading } from "../../billing/usage.ts";
import type { Key } from "../../config/catalog.ts";
import { describeIntent } from "./bill.ts";
import { noteHead, readWindows } from "../channels/allowances.ts";
import type { Gateway } from "../gateway.ts";
import { secretsOf } from "../intake/secrets.ts";
import { reportFault } from "../observe/observer.ts";
import { draftLine, mayHaveArrived } from "./line.ts";
import { addMiss } from "./miss.ts";
import { type ChargeTerms, Request } from "../request.ts";
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
      // Only limits need the estimate, to forecast the next prompt.
      line = gateway.ledger.append(line, isLimited(r.key, r.run) ? r.estimatedInput : null);
      r.run?.count(line);
      warnOfLimits(line, r.key, gateway);
    } else if (r.open) gateway.ledger.discard(r.id);
    const { stored } = r.ending.reading ?? {};
    if (stored !== undefined) line = billBackground(r, line, stored, gateway);
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
    // If the notes on allowance and cache fail, the line has none.
    return noteAllowance(r, draft && analyseCache(r, draft, gateway), gateway);
  } catch (fault) {
    reportFault(fault, gateway.observer);
    return isBilled ? (draft ?? draftFailed(r)) : null;
  }
}

function draftFailed(r: Request): LineDraft {
  const { ending, attempts } = r;
  const channels = attempts.map(({ channel }) => channel);
  return draftUnknown(
    { intent: describeIntent(r), channels },
    {
      ...ending,
      first_byte_ms: r.firstByteMs,
      duration_ms: r.durationMs,
      attempts,
      raw_usage: ending.reading?.rawUsage ?? null,
    },
  );
}

function analyseCache(r: Request, draft: LineDraft, gateway: Gateway): LineDraft {
  const { sentPrompt: prompt } = r;
  const { reading, upstreamStatus } = r.ending;
  if (prompt === null || reading === null || (upstreamStatus ?? 0) >= 400) return draft;
  const line = addMiss(draft, { r, prompt, reading }, gateway);
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

function noteAllowance(r: Request, draft: LineDraft | null, gateway: Gateway): LineDraft | null {
  if (r.answered === null) return draft;
  const { response, candidate } = r.answered;
  const { channel } = candidate;
  const seen = r.time + (r.firstByteMs ?? r.durationMs);
  noteHead(gateway.channels.of(channel), response.fields, seen);
  const windows = channel.usesLogin ? readWindows(response.fields, seen) : [];
  if (draft === null || windows.length === 0) return draft;
  const shares = windows.map(({ name, used }) => [name, used ?? 0] as const);
  return { ...draft, windows: Object.fromEntries(shares) };
}

function warnOfLimits(line: LineDraft, key: Key, { ledger, alerts, now }: Gateway): void {
  if (!hasUsdLimit(key.limits) && !hasUsdLimit(key.group.limits)) return;
  const session = line.client?.session;
  alerts.check(listLimitUses([key], ledger.sums, now()));
  if (session !== undefined) alerts.check(listSessionUses(key, session, ledger.sums));
}

/** Charges a background response to the key that began it, when a request has fetched all of it. */
function billBackground(
  r: Request,
  draft: LineDraft | null,
  { id, goesOn }: Reading["stored"] & {},
  gateway: Gateway,
): LineDraft | null {
  const { ledger, background, channels } = gateway;
  channels.keepStored(id, r);
  if (draft?.basis === "unknown" && goesOn) background.set(id, describeTerms(r, draft));
  // After a cut, the response may be fetched again.
  const isFetched = draft === null && !goesOn && r.ending.reading?.end !== "open";
  const terms = isFetched ? background.get(id) : undefined;
  if (terms === undefined) return draft;
  const { replaces, model, ...owner } = terms;
  // The request that fetches the response may have another key.
  const name = r.tried?.channel.name;
  const tried = owner.candidates.find(({ channel }) => channel.name === name) ?? null;
  const own = { ...owner, tried, open: true, body: { ...r.body, model } };
  const billed = Object.assign(new Request(r, r, r.transport), r, own);
  const line = { ...draftLine(billed, gateway), replaces };
  if (line.basis === "unknown") return null;
  // The line waits while the ledger cannot be written.
  ledger.appendUnopened(line);
  background.delete(id);
  warnOfLimits(line, billed.key, gateway);
  return line;
}

function describeTerms(r: Request, { id, time, limit_usd }: LineDraft): ChargeTerms {
  const { key, model, candidates, client, overrides } = r;
  const replaces = limit_usd === undefined ? undefined : { id, time, limit_usd };
  return { foundKey: key, model, candidates, client, overrides, replaces };
}
