// The parts of a running gateway, for the steps that serve a request.

import type { Ledger } from "../billing/ledger/ledger.ts";
import type { LineDraft } from "../billing/ledger/line.ts";
import type { ContextNotes } from "./observe/context.ts";
import type { Alerts } from "../billing/limits/alerts.ts";
import type { CallChains } from "../billing/limits/call-chains.ts";
import type { Gate } from "../billing/limits/limits.ts";
import type { WaitingRequests } from "../billing/limits/waiting.ts";
import type { PriceBook } from "../billing/prices.ts";
import type { Catalog } from "../config/catalog.ts";
import type { Upstream } from "../lib/http/upstream.ts";
import type { BoundedMap } from "../lib/memory/bounded-map.ts";
import type { MemoryBudget } from "../lib/memory/memory-budget.ts";
import type { FinishQueue } from "./observe/finish-queue.ts";
import type { Channels } from "./channels/channels.ts";
import type { InferredSessions } from "./intake/client.ts";
import type { KnownParts } from "./intake/known-parts.ts";
import type { CacheMemory } from "./cache/memory.ts";
import type { Runs } from "./intake/runs.ts";
import type { Tap } from "./intake/tap.ts";
import type { ChargeTerms, Request } from "./request.ts";
import type { ModelLists } from "./channels/model-list.ts";
import type { MetricsDetail, Observer, ShortageAlarm } from "./observe/observer.ts";

export interface Recorder {
  /** A turn on a WebSocket has its body in `message`. */
  open(r: Request, message?: Uint8Array): void;
  /** `line`: null if the request was not billed. */
  finish(r: Request, tap: Tap, line: LineDraft | null): void;
  follow(catalog: Catalog): void;
  /** Stops recording if `name` is null. Returns what was recorded. */
  recordRun(session: string, name: string | null): { readonly folder: string; readonly requests: number };
  readonly active: readonly { readonly name: string; readonly key: string | null }[];
  close(): Promise<void>;
}

export interface Gateway {
  /** A reload replaces it. Running requests keep the old one. */
  catalog: Catalog;
  /** True if a group converts or did before a reload.
   *  Conversations may then have envelopes. */
  converts: boolean;
  readonly client: Upstream;
  readonly memory: MemoryBudget;
  readonly ledger: Ledger;
  readonly gate: Gate;
  readonly runs: Runs;
  readonly waiting: WaitingRequests;
  /** The tool calls of conversations that upstreams keep. */
  readonly chains: CallChains;
  /** Null: notes are off. */
  readonly contexts: ContextNotes | null;
  readonly alerts: Alerts;
  readonly recorder: Recorder;
  /** A request's prices are from the book in force when it ends. */
  prices: PriceBook;
  readonly channels: Channels;
  readonly lists: ModelLists;
  /** Responses in the background that are not charged yet. */
  readonly background: BoundedMap<string, ChargeTerms>;
  readonly inferredSessions: InferredSessions;
  readonly knownParts: KnownParts;
  readonly cacheMemory: CacheMemory;
  openSockets: number;
  readonly observer: Observer;
  /** Requests with an answer, but no line yet. */
  readonly finished: FinishQueue<Request>;
  readonly raiseShortage: ShortageAlarm;
  readonly halt: AbortSignal;
  readonly now: () => number;
  readonly metrics: (detail: MetricsDetail) => string;
}
