// A request through the gateway's own modules without sockets: the client's side is recorded, the upstream's side follows
// a script. Everything in between, from the config to the ledger, is the real gateway.

import { readFileSync } from "node:fs";
import { recognise } from "../../src/dialects/index.ts";
import { failover } from "../../src/gateway/attempt/failover.ts";
import { type Bill, openBill } from "../../src/gateway/bill/bill.ts";
import { settleFailure } from "../../src/gateway/bill/settle.ts";
import { createDelivery } from "../../src/gateway/delivery/delivery.ts";
import { relay } from "../../src/gateway/delivery/relay.ts";
import type { Gateway } from "../../src/gateway/gateway.ts";
import { readRequestBody } from "../../src/gateway/intake/body.ts";
import type { ClientCall } from "../../src/gateway/intake/call.ts";
import { findMatch } from "../../src/gateway/intake/match.ts";
import { toGatewayError } from "../../src/gateway/intake/refuse.ts";
import type { ChannelResponse } from "../../src/gateway/upstream/answer.ts";
import { createJob, type Job } from "../../src/gateway/upstream/job.ts";
import type { RequestRecord } from "../../src/gateway/observe/observer.ts";
import type { GatewayError } from "../../src/lib/errors.ts";
import {
  type Exchange,
  type Field,
  UpstreamFault,
  type UpstreamRequest,
  type UpstreamResponse,
} from "../../src/lib/http1/types.ts";
import { keyOf, type Platform, startGatewayHere } from "../harness/gateway.ts";

/** The chunks of a body. A fault ends it early. */
export type Chunks = readonly (string | UpstreamFault)[];

export interface ScriptedHead {
  readonly status?: number;
  readonly fields?: readonly Field[];
  readonly chunks?: Chunks;
}

export class ScriptedResponse implements UpstreamResponse {
  readonly status: number;
  readonly fields: readonly Field[];
  readonly length = null;
  readonly closeDelimited = false;
  readonly buffered = false;
  readonly reused = false;
  cancelled = false;
  readonly #chunks: (string | UpstreamFault)[];

  constructor({ status = 200, fields = [["content-type", "application/json"]], chunks = [] }: ScriptedHead) {
    this.status = status;
    this.fields = fields;
    this.#chunks = [...chunks];
  }

  field(name: string): string | undefined {
    return this.fields.find(([other]) => other === name)?.[1];
  }

  get finished(): boolean {
    return this.#chunks.length === 0;
  }

  async read(): Promise<Uint8Array | null> {
    const next = this.#chunks.shift();
    if (next instanceof UpstreamFault) throw next;
    return next === undefined ? null : Buffer.from(next);
  }

  takeBuffered(): Uint8Array | null {
    return null;
  }

  cancel(): void {
    this.cancelled = true;
  }
}

/** A client's exchange that remembers what was sent. */
export class RecordedExchange implements Exchange {
  readonly method = "POST";
  readonly target: string;
  readonly fields: readonly Field[];
  readonly #body: string;
  status: number | null = null;
  sentFields: readonly Field[] = [];
  text = "";
  ended: "open" | "end" | "reset" = "open";
  gone = false;
  #onGone: (() => void)[] = [];

  constructor(target: string, fields: readonly Field[], body: object) {
    this.target = target;
    this.fields = fields;
    this.#body = JSON.stringify(body);
  }

  field(name: string): string | undefined {
    return this.fields.find(([other]) => other === name)?.[1];
  }
  sentField(name: string): string | undefined {
    return this.sentFields.find(([other]) => other === name)?.[1];
  }
  async readBody(): Promise<Uint8Array> {
    return Buffer.from(this.#body);
  }
  get begun(): boolean {
    return this.status !== null;
  }
  answer(status: number, fields: readonly Field[], body: Uint8Array | string): void {
    this.begin(status, fields);
    this.text = Buffer.from(body).toString();
    this.ended = "end";
  }
  begin(status: number, fields: readonly Field[]): void {
    this.status = status;
    this.sentFields = fields;
  }
  write(chunk: Uint8Array): boolean {
    this.text += Buffer.from(chunk).toString();
    return true;
  }
  flush(): void {}
  async drained(): Promise<void> {}
  end(last: Uint8Array = Buffer.alloc(0)): void {
    this.text += Buffer.from(last).toString();
    this.ended = "end";
  }
  reset(): void {
    this.ended = "reset";
  }
  upgrade(): void {
    throw new Error("no script has an upgrade");
  }
  onGone(listener: () => void): void {
    this.#onGone.push(listener);
  }
  leave(): void {
    this.gone = true;
    for (const listener of this.#onGone) listener();
  }
}

/** What a channel does with one request: a response, or a fault before its head. */
export type Step = ScriptedHead | UpstreamFault;

export interface Scripted extends Started {
  readonly gateway: Gateway;
  /** The channels that were called, in order. */
  readonly called: readonly string[];
  /** What each of them was sent. */
  readonly requests: readonly UpstreamRequest[];
  /** What they responded, in order, without the faults. */
  readonly responses: readonly ScriptedResponse[];
  /** A response of the named channel, as failover would give it. */
  readonly respond: (channel: string, head: ScriptedHead) => ChannelResponse;
  /** Runs failover, and relays its response. Returns the error if there was none. */
  readonly run: () => Promise<GatewayError | null>;
  /** Runs another request: to the same endpoint, if no other is named. `leaves`: its client has disconnected before it
   *  is sent. */
  readonly again: (next?: {
    readonly target?: string;
    readonly leaves?: true;
  }) => Promise<{ exchange: RecordedExchange; error: GatewayError | null }>;
  /** The lines of the ledger. */
  readonly ledger: () => Record<string, unknown>[];
  /** The ledger's journal, as it is now. */
  readonly journal: () => string;
  /** What the gateway reported of the finished requests. */
  readonly records: () => readonly RequestRecord[];
  stop(): Promise<void>;
}

export interface ScriptedOptions {
  /** By channel, in the order of priority: what it does. The upstream of channel number 1 has port 1. */
  readonly channels: Readonly<Record<string, readonly Step[]>>;
  readonly stream?: boolean;
  readonly target?: string;
  readonly platform?: Platform;
  readonly more?: Readonly<Record<string, unknown>>;
}

export async function openScripted(options: ScriptedOptions): Promise<Scripted> {
  const { channels, stream = false, target = "/v1/messages", platform = "messages", more = {} } = options;
  const names = Object.keys(channels);
  const inside = startGatewayHere({ config: writeConfig(names, platform, more) });
  const called: string[] = [];
  const requests: UpstreamRequest[] = [];
  const responses: ScriptedResponse[] = [];
  const respondTo = (step: ScriptedHead): ScriptedResponse => {
    const response = new ScriptedResponse(step);
    responses.push(response);
    return response;
  };
  const scripts = new Map(Object.entries(channels).map(([name, steps]) => [name, [...steps]]));
  const send = (request: UpstreamRequest) => {
    requests.push(request);
    const name = names[request.origin.port - 1] ?? "";
    called.push(name);
    const step = scripts.get(name)?.shift();
    const head =
      step === undefined || step instanceof UpstreamFault
        ? Promise.reject(step ?? new Error(`no step is left for ${name}`))
        : Promise.resolve(respondTo(step));
    return { head, cancel: () => {} };
  };
  const gateway: Gateway = {
    ...inside.running.gateway,
    client: { ...inside.running.gateway.client, send, close: () => {} },
  };
  const fields: Field[] = [["authorization", `Bearer ${keyOf(platform)}`]];
  const start = async (path = target): Promise<Started> => {
    const body = { model: "m", max_tokens: 9, stream, messages: [] };
    const exchange = new RecordedExchange(path, fields, body);
    return { exchange, ...(await open(exchange, gateway)) };
  };
  const first = await start();
  const respond = (channel: string, head: ScriptedHead): ChannelResponse => {
    const { bill } = first;
    const candidate = bill.match.candidates.find((each) => each.channel.name === channel)!;
    bill.attempts.push({ channel, status: head.status ?? 200 });
    return { response: new ScriptedResponse(head), candidate, whole: null };
  };
  return {
    ...first,
    gateway,
    called,
    requests,
    responses,
    respond,
    run: () => finish(first, gateway),
    again: async ({ target: path, leaves } = {}) => {
      const next = await start(path);
      if (leaves === true) next.exchange.leave();
      return { exchange: next.exchange, error: await finish(next, gateway) };
    },
    records: () => inside.records,
    ledger: () => inside.ledger(),
    journal: () => readFileSync(inside.folder.join("ledger.jsonl.open"), "utf8"),
    stop: () => inside.stop(),
  };
}

interface Started {
  readonly exchange: RecordedExchange;
  readonly job: Job;
  readonly bill: Bill;
}

async function finish({ job, bill }: Started, gateway: Gateway): Promise<GatewayError | null> {
  try {
    await relay(createDelivery(await failover(job, bill, gateway), job, bill, gateway));
    return null;
  } catch (thrown) {
    const error = toGatewayError(thrown, gateway.observer);
    settleFailure(bill, error, gateway);
    return error;
  }
}

function writeConfig(names: readonly string[], platform: Platform, more: object): Record<string, unknown> {
  const channels = names.map((name, index) => [
    name,
    {
      platform,
      base_url: `http://127.0.0.1:${index + 1}`,
      credential: "credential-of-the-channel",
      priority: index + 1,
    },
  ]);
  return {
    channels: Object.fromEntries(channels),
    groups: { g: { platform, multiplier: "1", channels: names } },
    keys: [{ name: "k", group: "g", secret: `sk-test-${platform}` }],
    prices: { m: { input: "1", output: "2" } },
    ...more,
  };
}

let count = 0;

async function open(exchange: RecordedExchange, gateway: Gateway): Promise<{ job: Job; bill: Bill }> {
  const { catalog } = gateway;
  const found = recognise(exchange, catalog);
  if (found.kind !== "target") throw new Error(`${exchange.target} is no endpoint`);
  const call: ClientCall = {
    id: `req_test${(count += 1)}`,
    exchange,
    time: gateway.now(),
    arrived: performance.now(),
    target: found.target,
    query: found.query,
    key: null,
  };
  const body = await readRequestBody(call, catalog);
  const match = findMatch(catalog.keys.get("k")!, body.model);
  const job = createJob(call, {}, body, match.group.platform);
  return { job, bill: await openBill(job, match, catalog.prices, gateway) };
}
