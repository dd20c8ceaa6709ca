// What a running gateway is made of. This record is all the injection there is.

import type { Ledger } from "../billing/ledger/ledger.ts";
import type { Gate } from "../billing/limits.ts";
import type { PriceBook } from "../billing/prices.ts";
import type { Catalog } from "../config/catalog.ts";
import type { Client } from "../lib/http1/client/client.ts";
import type { Channels } from "./channels/channels.ts";
import type { BackgroundResponses } from "./bill/background.ts";
import type { ModelLists } from "./channels/model-list.ts";
import type { Observer } from "./observe/observer.ts";
import type { ShortageAlarm } from "./observe/shortage-alarm.ts";

export interface Gateway {
  /** Replaced whole by a reload; a request keeps the one that it began with. */
  catalog: Catalog;
  readonly client: Client;
  readonly ledger: Ledger;
  /** The limits of keys and groups. */
  readonly gate: Gate;
  /** Replaced by a newer one; a request pays those that are there when it ends. */
  prices: PriceBook;
  readonly channels: Channels;
  readonly lists: ModelLists;
  /** Answers that go on in the background, and are yet to be paid for. */
  readonly background: BackgroundResponses;
  readonly observer: Observer;
  readonly raiseShortage: ShortageAlarm;
  /** Aborted when the gateway itself ends what still runs. */
  readonly halt: AbortSignal;
  /** Wall clock, in milliseconds. */
  readonly now: () => number;
  /** What the running gateway counts, in Prometheus' text form. */
  readonly metrics: () => string;
}
