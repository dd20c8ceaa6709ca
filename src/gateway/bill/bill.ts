// Opens a request's bill before anything goes upstream.

import type { Intent } from "../../billing/ledger/line.ts";
import { computeCharge } from "../../billing/charge.ts";
import {
  type Admission,
  type Cost,
  isLimited,
  limitsCalls,
  type NoRoom,
  stopLoop,
} from "../../billing/limits/limits.ts";
import { addRegion, type Overrides, sellerOf } from "../../billing/prices.ts";
import { estimateInputTokens, forecastCost, type Quote } from "../../billing/limits/reserve.ts";
import type { CallChain, LastPairs } from "../../billing/limits/call-chains.ts";
import type { Usage } from "../../billing/usage.ts";
import { type Key, limitMultiplier } from "../../config/catalog.ts";
import { GatewayError } from "../../lib/errors.ts";
import { BILLED } from "../../dialects/dialect.ts";
import { countSameCalls } from "../../dialects/prompt/same-call.ts";
import type { Gateway } from "../gateway.ts";
import { findKey } from "../intake/authenticate.ts";
import type { Candidate } from "../intake/match.ts";
import type { Request } from "../request.ts";

export function openBill(r: Request, gateway: Gateway): Promise<void> | null {
  const { purpose } = r.target.endpoint;
  r.open = BILLED.has(purpose);
  const { plain } = r.body;
  r.estimatedInput = r.open && plain !== null ? estimateInputTokens(plain) : 0;
  let waiting: Promise<void> | null = null;
  // A `count` asks for a number of tokens.
  // Only limits on the number of requests apply to it.
  if ((r.open || purpose === "count") && isLimited(r.key, r.run)) waiting = enterLimits(r, gateway);
  else if (purpose === "resource" && limitsCalls(r.key)) {
    // A request that fetches a background response gets the tool calls of that response.
    r.calls = gateway.chains.follow(r.key.name, null);
  }
  if (!r.open) return waiting;
  const note = () => gateway.ledger.open(describeIntent(r));
  return waiting === null ? note() : waiting.then(note);
}

function enterLimits(r: Request, gateway: Gateway): Promise<void> | null {
  const { key, client } = r;
  // Requests that ended in this turn count with their real cost.
  gateway.finished.flush();
  const { dialect, purpose } = r.target.endpoint;
  const hasOutput = purpose === "generate";
  const read: { pairs: LastPairs | null } = { pairs: null };
  const sameCalls = (): number => {
    if (r.prompt === null || !hasOutput) return 0;
    const find = (responseId: string): CallChain | null => gateway.chains.find(key.name, responseId);
    read.pairs = countSameCalls(r.prompt, dialect.promptLayout, find);
    return read.pairs.count;
  };
  stopLoop(key, client.session, sameCalls);
  const enter = (admission: Admission): void => {
    r.admission = admission;
    r.calls = read.pairs === null ? undefined : gateway.chains.follow(key.name, read.pairs);
  };
  const cost = r.open ? describeCost(r, hasOutput, gateway) : null;
  const ask = (limited: Key, hasWaited: boolean): Admission | NoRoom =>
    gateway.gate.enter(limited, gateway.now(), cost, {
      session: client.session,
      run: r.run,
      hasWaited,
    });
  const place = ask(key, false);
  // A waiting request's key can be disabled or get another limit.
  const askAgain = (): Admission | NoRoom => {
    const { keySources } = r.target.endpoint;
    const found = findKey(r.exchange, keySources, gateway.catalog, gateway.now());
    return ask(found?.key ?? key, true);
  };
  if ("noRoom" in place) return waitForRoom(r, place, askAgain, gateway).then(enter);
  enter(place);
  return null;
}

/** So far, nothing is sent or in the journal. */
async function waitForRoom(
  r: Request,
  place: NoRoom,
  ask: () => Admission | NoRoom,
  { waiting }: Gateway,
): Promise<Admission> {
  const wait = waiting.hold(place, ask);
  if (wait === null) throw place.noRoom;
  r.endWait = () => wait.end(new GatewayError("client_gone", "The client disconnected."));
  if (r.exchange.gone) r.endWait();
  try {
    return await wait.entered;
  } finally {
    r.endWait = null;
  }
}

export function describeIntent(r: Request): Intent {
  const { key, group, admission } = r;
  return {
    id: r.id,
    time: r.isoTime,
    key: key.name,
    group: group.name,
    platform: group.platform,
    channel: r.candidates[0]?.channel.name ?? "",
    endpoint: r.target.endpoint.label,
    model: r.model ?? "",
    upstream_model: r.requested,
    stream: r.stream,
    transport: r.transport ?? undefined,
    multiplier: group.multiplier,
    paid_by: r.payer,
    client: r.client,
    limit_usd: admission.reservedUsd ?? undefined,
  };
}

function describeCost(r: Request, hasOutput: boolean, gateway: Gateway): Cost {
  const { overrides, candidates, body } = r;
  const { endpoint } = r.target;
  const { pricedAs = null } = endpoint;
  const model = pricedAs ?? r.model ?? "";
  const forecast = () =>
    forecastCost({
      body: body.plain ?? new Uint8Array(),
      scan: body.scan,
      prompt: gateway.ledger.prompts.expect(
        { key: r.key.name, model, client: r.client },
        gateway.now(),
        r.estimatedInput,
      ),
      answer: gateway.ledger.answers.expect(model),
      hasOutput,
      capNames: endpoint.ignoresCaps === true ? [] : endpoint.dialect.capNames,
      quotes: candidates.map((candidate) => {
        if (pricedAs === null) return quoteAt(candidate, r, overrides, gateway);
        const quote = quoteAt({ ...candidate, model: pricedAs }, r, overrides, gateway);
        return () => quote({ call: 1 });
      }),
    });
  return { model, forecast };
}

/** Prices of an expensive model, for a seller whose answers name the cost. */
const ASSUMED_RATES = { input: "5", cache_read: "0.5", output: "25" };

export function quoteAt(
  { channel, model }: Candidate,
  { group }: Pick<Key, "group">,
  overrides: Overrides,
  gateway: Pick<Gateway, "prices" | "now">,
): Quote {
  const seller = sellerOf(channel);
  const quote = (usage: Usage, prices: Overrides): string | null =>
    computeCharge({
      parts: [{ model, pass: "message", usage }],
      tariff: addRegion({}, seller),
      model,
      requested: model,
      book: gateway.prices,
      overrides: prices,
      seller,
      at: new Date(gateway.now()),
      multiplier: limitMultiplier(group),
    }).charge;
  const assumed = seller.bill === "reported" ? new Map([[model ?? "", ASSUMED_RATES]]) : null;
  return (usage) => quote(usage, overrides) ?? (assumed && quote(usage, assumed));
}
