// The bill of one request. It is opened before anything goes upstream, and settle.ts closes it exactly once.

import { estimateInputTokens } from "../../billing/estimate.ts";
import type { ClientIdentity } from "../../billing/ledger/line.ts";
import type { Intent } from "../../billing/ledger/journal.ts";
import { computeCharge } from "../../billing/charge.ts";
import { limitsCalls } from "../../billing/limits/guard.ts";
import { type Admission, type Cost, FREE, isLimited } from "../../billing/limits/limits.ts";
import { addRegion, findPrice, type Overrides, sellerOf } from "../../billing/prices.ts";
import { boundCost, expectCost, type Quote, type ReservedRequest } from "../../billing/limits/reserve.ts";
import type { CallChains, LastPairs } from "../../billing/limits/call-chains.ts";
import type { CallListener } from "../../billing/usage.ts";
import type { Key } from "../../config/catalog.ts";
import type { Dialect, Endpoint } from "../../dialects/dialect.ts";
import { countSameCalls } from "../../dialects/prompt/same-call.ts";
import type { ClientCall } from "../intake/call.ts";
import type { Job } from "../upstream/job.ts";
import type { Gateway } from "../gateway.ts";
import type { HeldPrompt } from "../observe/cache/held-prompts.ts";
import type { Candidate, Match } from "../intake/match.ts";

/** A type and not an interface, so that it is assignable to a ledger line's record. */
export type AttemptRecord = {
  readonly channel: string;
  /** The upstream's status, if it responded. */
  readonly status?: number;
  /** Why there was no response. */
  readonly error?: string;
};

export interface Bill {
  readonly call: ClientCall;
  readonly match: Match;
  readonly client: ClientIdentity;
  /** The time of arrival, in the format of ledger lines. */
  readonly time: string;
  readonly stream: boolean;
  /** The prompt's tokens, estimated from its size, for responses that break off before they report usage. */
  readonly estimatedInput: number;
  /** The model that was requested from the last channel, by its upstream's name. */
  requested: string | null;
  readonly attempts: AttemptRecord[];
  /** The last channel's own id of the request, if it gave one. */
  upstreamRequestId: string | undefined;
  /** The config's prices at arrival. A changed config applies to later requests. */
  readonly overrides: Overrides;
  /** The ledger knows the request, and it will get a line in any case. False if nothing is billed. */
  readonly open: boolean;
  settled: boolean;
  /** Milliseconds from arrival to the first byte of the response. */
  firstByteMs: number | null;
  /** The prompt, for the analysis of its cache; null: it is not analysed. */
  prompt: HeldPrompt | null;
  /** Gets the tool calls of the response; undefined: no limit needs them. */
  readonly calls: CallListener | undefined;
  /** What the limits reserve for this request. It is released when its line is written. */
  readonly admission: Admission;
}

const BILLED = new Set(["generate", "embed"]);
/** Requests that cost nothing but work: only limits on their number count them. */
const COUNTED = new Set(["count"]);

/** No promise if nothing has to wait for the ledger. */
export function openBill(
  job: Job,
  match: Match,
  overrides: Overrides,
  gateway: Gateway,
): Bill | Promise<Bill> {
  const bill = createBill(job, match, overrides, gateway);
  const written = bill.open ? gateway.ledger.open(describeIntent(bill)) : null;
  return written === null ? bill : awaitJournal(written, bill);
}

async function awaitJournal(written: Promise<void>, bill: Bill): Promise<Bill> {
  try {
    await written;
  } catch (error) {
    bill.admission.release();
    throw error;
  }
  return bill;
}

/** Checks the limits and reserves the amount. This is not part of the function above, because `release` would keep that
 *  function's variables alive, and with them the request's body. */
function createBill(job: Job, match: Match, overrides: Overrides, gateway: Gateway): Bill {
  const { call, client, body } = job;
  const { purpose } = call.target.endpoint;
  const open = BILLED.has(purpose);
  const { plain, stream } = body;
  const estimatedInput = open && plain !== null ? estimateInputTokens(plain) : 0;
  const isCounted = (open || COUNTED.has(purpose)) && isLimited(match.key);
  const { admission, calls } = isCounted
    ? admit(job, { match, estimatedInput, overrides }, gateway)
    : { admission: FREE, calls: followLater(job, match.key, gateway.chains) };
  return {
    call,
    match,
    client,
    time: new Date(call.time).toISOString(),
    stream,
    estimatedInput,
    requested: match.candidates[0]?.model ?? null,
    attempts: [],
    upstreamRequestId: undefined,
    overrides,
    open,
    settled: false,
    firstByteMs: null,
    prompt: null,
    calls,
    admission,
  };
}

/** The calls of a response that ran in the background are in the request that fetches it. */
function followLater({ call }: Job, key: Key, chains: CallChains): CallListener | undefined {
  const isFetched = call.target.endpoint.purpose === "resource" && limitsCalls(key);
  return isFetched ? chains.follow(key.name, null) : undefined;
}

function admit(job: Job, demand: Demand, gateway: Gateway): Pick<Bill, "admission" | "calls"> {
  const { call, client, prompt, body } = job;
  const now = gateway.now();
  const { endpoint } = call.target;
  const { dialect, purpose } = endpoint;
  const { key } = demand.match;
  const hasOutput = purpose === "generate";
  const cost = BILLED.has(purpose)
    ? describeCost({ ...demand, plain: body.plain, hasOutput, endpoint }, gateway)
    : null;
  const read: { pairs: LastPairs | null } = { pairs: null };
  const sameCalls = (): number => {
    read.pairs = prompt === null || !hasOutput ? null : readPairs(prompt, key, dialect, gateway.chains);
    return read.pairs?.count ?? 0;
  };
  const leave = gateway.guard.enter(key, { client, sameCalls }, now);
  try {
    const admission = gateway.gate.admit(key, now, cost, client.session);
    const calls = read.pairs === null ? undefined : gateway.chains.follow(key.name, read.pairs);
    return { admission: leave === null ? admission : releaseBoth(admission, leave), calls };
  } catch (error) {
    leave?.();
    throw error;
  }
}

/** How the request's conversation ends. Where the upstream keeps the conversation, its earlier part is remembered. */
function readPairs(prompt: Uint8Array, key: Key, { promptLayout }: Dialect, chains: CallChains): LastPairs {
  return countSameCalls(prompt, promptLayout, (responseId) => chains.find(key.name, responseId));
}

/** Not part of the function above, so that it does not keep the body alive. */
function releaseBoth(admission: Admission, leave: () => void): Admission {
  const release = (): void => {
    admission.release();
    leave();
  };
  return { ...admission, release };
}

/** What the ledger's journal records before anything goes upstream. */
function describeIntent(bill: Bill): Intent {
  const { call, match, client, time, requested, stream, admission } = bill;
  const { key, group, model, candidates } = match;
  return {
    id: call.id,
    time,
    key: key.name,
    group: group.name,
    platform: group.platform,
    channel: candidates[0]?.channel.name ?? "",
    endpoint: call.target.endpoint.label,
    model: model ?? "",
    upstream_model: requested,
    stream,
    multiplier: group.multiplier,
    client,
    ...(admission.reservedUsd !== null && { limit_usd: admission.reservedUsd }),
  };
}

interface Demand {
  readonly match: Match;
  readonly estimatedInput: number;
  readonly overrides: Overrides;
}

interface BilledDemand extends Demand {
  /** Null: the gateway does not know the body's encoding, so nothing bounds the cost. */
  readonly plain: Uint8Array | null;
  readonly hasOutput: boolean;
  readonly endpoint: Endpoint;
}

function describeCost(demand: BilledDemand, gateway: Gateway): Cost {
  const { match, plain, estimatedInput, overrides, hasOutput, endpoint } = demand;
  const { pricedAs = null } = endpoint;
  const model = pricedAs ?? match.model ?? "";
  const describe = (): ReservedRequest => ({
    body: plain ?? new Uint8Array(),
    estimatedInput,
    expectedOutput: gateway.ledger.expectOutput(model),
    hasOutput,
    capNames: endpoint.ignoresCaps === true ? [] : endpoint.dialect.capNames,
    clientTools: endpoint.dialect.clientTools,
    quotes: match.candidates.map((candidate) => {
      if (pricedAs === null) return quoteAt(candidate, match, overrides, gateway);
      const quote = quoteAt({ ...candidate, model: pricedAs }, match, overrides, gateway);
      return (_usage, tariff) => quote({ call: 1 }, tariff);
    }),
    ways: match.candidates.flatMap((candidate) => listWays(candidate, overrides, gateway)),
  });
  return {
    model,
    expect: () => expectCost(describe()),
    bound: () => (plain === null ? { unbounded: "its body cannot be read" } : boundCost(describe())),
  };
}

/** How a channel may serve the request at a price of its own. */
export function listWays(
  { channel, model }: Candidate,
  overrides: Overrides,
  { prices, now }: Pick<Gateway, "prices" | "now">,
): string[] {
  if (model === null) return [];
  const sources = { book: prices, overrides, seller: sellerOf(channel) };
  return Object.keys(findPrice(sources, model, new Date(now()))?.factors ?? {});
}

/** What a usage costs at one of the request's channels. */
export function quoteAt(
  { channel, model }: Candidate,
  { group }: Pick<Match, "group">,
  overrides: Overrides,
  gateway: Pick<Gateway, "prices" | "now">,
): Quote {
  const seller = sellerOf(channel);
  return (usage, tariff) =>
    computeCharge({
      parts: [{ model, pass: "message", usage }],
      tariff: addRegion(tariff, seller),
      model,
      requested: model,
      book: gateway.prices,
      overrides,
      seller,
      at: new Date(gateway.now()),
      multiplier: group.multiplier,
    }).charge;
}
