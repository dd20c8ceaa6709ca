// A request or a WebSocket's turn, until its ledger line.
// Its shape is fixed, and each step of pipeline.ts adds its part.

import type { Identity, LineDraft, Outcome, Payer } from "../billing/ledger/line.ts";
import { type Admission, FREE } from "../billing/limits/limits.ts";
import { type Overrides, type Seller, sellerOf } from "../billing/prices.ts";
import type { CallListener, Meter, Reading } from "../billing/usage.ts";
import type { Group, Key } from "../config/catalog.ts";
import type { Dialect, Target } from "../dialects/dialect.ts";
import type { Exchange } from "../lib/http/exchange.ts";
import type { Field, Fields } from "../lib/http/fields.ts";
import type { Body, SentRequest, UpstreamResponse } from "../lib/http/upstream.ts";
import type { Reservation } from "../lib/memory/memory-budget.ts";
import { writeMoment } from "../lib/text/zone.ts";
import { NO_BODY, type RequestBody } from "./intake/body.ts";
import type { UnroutedCall } from "./intake/call.ts";
import type { Candidate } from "./intake/match.ts";
import { NO_SECRETS, type Secrets } from "./intake/secrets.ts";
import type { Conversion } from "../bridges/convert.ts";
import type { Tap } from "./intake/tap.ts";
import type { ToolRun } from "./intake/runs.ts";
import type { ScannedBody, SentPrompt } from "../dialects/prompt/prompt.ts";

/** An interface would not be assignable to a ledger line's record. */
export type AttemptRecord = {
  readonly channel: string;
  readonly status?: number;
  readonly error?: string;
};

export interface ConvertedRequest {
  readonly candidate: Candidate;
  readonly dialect: Dialect;
  readonly path: string;
  readonly body: Uint8Array;
  readonly conversion: Conversion;
  /** The client's header fields go upstream, as without a conversion. */
  readonly keepsFields: boolean;
}

/** A `background` response goes on after its request.
 *  When a later request fetches it, it is charged on these terms. */
export interface ChargeTerms {
  readonly foundKey: Key;
  readonly model: string | null;
  readonly candidates: readonly Candidate[];
  readonly client: Identity;
  readonly overrides: Overrides;
  readonly replaces: LineDraft["replaces"];
}

export interface ChannelResponse {
  readonly response: UpstreamResponse;
  readonly candidate: Candidate;
  readonly body: Body;
}

export interface Ending {
  readonly outcome: Outcome;
  readonly status: number;
  readonly upstreamStatus: number | null;
  readonly reading: Reading | null;
  readonly problem: string | null;
}

export const OWN_ANSWER: Ending = {
  outcome: "complete",
  status: 200,
  upstreamStatus: null,
  reading: null,
  problem: null,
};

export const NOBODY: Identity = {};
const NO_PRICES: Overrides = new Map();
const NOT_SENT = { cancel: () => {} };
const UNFINISHED: Ending = { ...OWN_ANSWER, outcome: "interrupted", status: 0 };

export class Request {
  // The arrival.
  readonly id: string;
  /** If the request is recorded, this exchange also notes body and answer. */
  exchange: Exchange;
  readonly time: number;
  readonly isoTime: string;
  readonly arrived: number;
  readonly target: Target;
  query: string;
  readonly transport: "websocket" | null;

  // Who sent the request, and what for.
  /** Null until the key is known. It stays if the request is refused later. */
  foundKey: Key | null = null;
  run: ToolRun | null = null;
  /** `NOBODY` until the body has been read. */
  client: Identity = NOBODY;
  /** The client's own login next to the key, or null. */
  login: readonly Field[] | null = null;
  secrets: Secrets = NO_SECRETS;
  /** Released when an upstream has responded. */
  body: RequestBody = NO_BODY;
  candidates: readonly Candidate[] = [];
  /** The name by which a conversation keeps its channel. */
  conversation: string | null = null;
  memory: Reservation | null = null;
  /** The request in the tried channel's dialect. Null if that is the client's. */
  converted: ConvertedRequest | null = null;

  // What the request may cost.
  /** The config's prices at arrival. Changes apply to later requests. */
  overrides: Overrides = NO_PRICES;
  /** The ledger knows the request. False if nothing is billed. */
  open = false;
  /** The prompt's tokens by its size, if no usage is reported. */
  estimatedInput = 0;
  /** What limits reserve until the request's line is in the ledger. */
  admission: Admission = FREE;
  /** Ends a wait for room in a limit, or for usage. */
  endWait: (() => void) | null = null;
  /** Gets the response's tool calls; undefined: no limit needs them. */
  calls: CallListener | undefined = undefined;

  // The upstream.
  /** The request may go upstream: limits and journal let it pass. */
  cleared = false;
  upstream: Pick<SentRequest, "cancel"> = NOT_SENT;
  asksUsage = false;
  /** The channel that responded, or was tried last. */
  tried: Candidate | null = null;
  readonly attempts: AttemptRecord[] = [];
  /** Who pays for a request with the client's own login. */
  paidBy: Payer = "plan";
  upstreamRequestId: string | undefined = undefined;

  // The response on its way to the client.
  answered: Omit<ChannelResponse, "body"> | null = null;
  /** Null if the response cannot have usage and is no stream,
   *  or if its path is unknown. */
  meter: Meter | null = null;
  /** The response is a stream, and ends with the dialect's terminal event. */
  streamed = false;
  left = false;
  firstByteMs: number | null = null;
  /** The prompt, for the cache analysis; null: no analysis. */
  sentPrompt: SentPrompt | null = null;

  recorded: Tap | null = null;

  // The end.
  ending: Ending = UNFINISHED;
  durationMs = 0;

  constructor(
    call: UnroutedCall,
    { target, query }: { readonly target: Target; readonly query: string },
    transport: "websocket" | null = null,
  ) {
    this.id = call.id;
    this.exchange = call.exchange;
    this.time = call.time;
    this.isoTime = writeMoment(call.time);
    this.arrived = call.arrived;
    this.target = target;
    this.query = query;
    this.transport = transport;
  }

  noteFirstByte(): void {
    this.firstByteMs ??= Math.round(performance.now() - this.arrived);
  }

  get method(): string {
    return this.transport === null ? this.exchange.method : "POST";
  }

  get model(): string | null {
    return this.body.model;
  }

  get stream(): boolean {
    return this.body.stream;
  }

  /** Steps after `admit` always have a key. */
  get key(): Key {
    if (this.foundKey === null) throw new Error("the request has no key");
    return this.foundKey;
  }

  get served(): Omit<ChannelResponse, "body"> {
    if (this.answered === null) throw new Error("the request has no response");
    return this.answered;
  }

  /** The body in the client's dialect. Null once it is not needed. */
  get prompt(): ScannedBody | null {
    const { plain, scan } = this.body;
    return plain && scan && { bytes: plain, scan };
  }

  get asked(): Candidate | null {
    return this.tried ?? this.candidates[0] ?? null;
  }

  get requested(): string | null {
    return this.asked?.model ?? null;
  }

  get fields(): Fields {
    const { fields } = this.exchange;
    if (this.login === null) return fields;
    return fields.copy((name, value) => (this.secrets.holds(`${name}\n${value}`) ? null : name));
  }

  get seller(): Seller | undefined {
    return this.tried === null ? undefined : sellerOf(this.tried.channel);
  }

  get payer(): Payer | undefined {
    return this.group.usesLogin ? this.paidBy : undefined;
  }

  /** An answer on an unknown or unbilled path says nothing about the channel. */
  get isTelling(): boolean {
    return this.open && this.target.endpoint.purpose !== "other";
  }

  get clientDialect(): Dialect {
    return this.target.endpoint.dialect;
  }

  get upstreamDialect(): Dialect {
    return this.converted?.dialect ?? this.clientDialect;
  }

  get conversion(): Conversion | null {
    return this.converted?.conversion ?? null;
  }

  get group(): Group {
    return this.key.group;
  }
}
