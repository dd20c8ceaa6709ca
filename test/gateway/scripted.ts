// A request through the gateway's own modules without sockets: the client's side is recorded, the upstream's side follows
// a script. Everything in between, from the config to the ledger, is the real gateway.

import { readFileSync } from "node:fs";
import { recognise } from "../../src/dialects/index.ts";
import { sendRequest } from "../../src/gateway/attempt/attempt.ts";
import { openBill } from "../../src/gateway/bill/bill.ts";
import { failRequest } from "../../src/gateway/bill/fail.ts";
import { FinishQueue } from "../../src/gateway/observe/finish-queue.ts";
import { recordBill } from "../../src/gateway/bill/settle.ts";
import type { Gateway } from "../../src/gateway/gateway.ts";
import { readRequestBody } from "../../src/gateway/intake/body.ts";
import { findRoute } from "../../src/gateway/pipeline.ts";
import { watchClient } from "../../src/gateway/deliver/client-left.ts";
import type { RequestRecord } from "../../src/gateway/observe/observer.ts";
import { Request } from "../../src/gateway/request.ts";
import type { GatewayError } from "../../src/lib/errors.ts";
import { type Field, Fields, type SentFields } from "../../src/lib/http/fields.ts";
import type { Exchange } from "../../src/lib/http/exchange.ts";
import {
  type ResponseListener,
  type SentRequest,
  UpstreamFault,
  type UpstreamRequest,
  type UpstreamResponse,
} from "../../src/lib/http/upstream.ts";
import { keyOf, type Platform, startGatewayHere } from "../harness/gateway.ts";

/** The chunks of a body. A fault ends it early. */
export type Chunks = readonly (string | UpstreamFault)[];

export interface ScriptedHead {
  readonly status?: number;
  readonly fields?: readonly Field[];
  readonly chunks?: Chunks;
  readonly isEndless?: boolean;
}

/** Pushes its chunks one after another, unless it is paused. */
export class ScriptedResponse implements UpstreamResponse, SentRequest {
  readonly status: number;
  readonly fields: Fields;
  readonly length = null;
  readonly closeDelimited = false;
  readonly reused = false;
  cancelled = false;
  /** Its body has no end. */
  readonly isEndless: boolean;
  readonly #chunks: (string | UpstreamFault)[];
  readonly #listener: ResponseListener;
  #isPaused = false;
  #isOver = false;

  constructor(head: ScriptedHead, listener: ResponseListener) {
    const {
      status = 200,
      fields = [["content-type", "application/json"]],
      chunks = [],
      isEndless = false,
    } = head;
    this.status = status;
    this.fields = Fields.of(fields);
    this.isEndless = isEndless;
    this.#chunks = [...chunks];
    this.#listener = listener;
  }

  field(name: string): string | undefined {
    return this.fields.get(name);
  }

  /** The head comes when the request has been sent, and each chunk after the one before was taken. */
  start(): this {
    queueMicrotask(() => {
      if (this.#isOver) return;
      this.#listener.begin(this);
      this.#push();
    });
    return this;
  }

  #push(): void {
    queueMicrotask(() => {
      if (this.#isPaused || this.#isOver) return;
      const next = this.#chunks.shift();
      if (next instanceof UpstreamFault) this.#end(() => this.#listener.fail(next));
      else if (next !== undefined) this.#listener.receive(Buffer.from(next));
      else if (!this.isEndless) this.#end(() => this.#listener.end());
      if (next !== undefined) this.#push();
    });
  }

  #end(report: () => void): void {
    if (this.#isOver) return;
    this.#isOver = true;
    report();
  }

  get finished(): boolean {
    return this.#chunks.length === 0;
  }

  /** Sends more on a response without an end. */
  send(chunk: string): void {
    this.#listener.receive(Buffer.from(chunk));
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#push();
  }

  cancel(): void {
    this.cancelled = true;
    this.#end(() => this.#listener.fail(new UpstreamFault("cancelled", "cancelled", true)));
  }
}

/** A request that fails before its head. */
function startFault(fault: UpstreamFault, listener: ResponseListener): SentRequest {
  queueMicrotask(() => listener.fail(fault));
  return { reused: false, pause: () => {}, resume: () => {}, cancel: () => {} };
}

/** A client's exchange that remembers what was sent. */
export class RecordedExchange implements Exchange {
  readonly method = "POST";
  readonly target: string;
  readonly fields: Fields;
  readonly #body: string;
  status: number | null = null;
  sentFields: readonly Field[] = [];
  text = "";
  ended: "open" | "end" | "reset" = "open";
  gone = false;
  #onGone: (() => void)[] = [];

  constructor(target: string, fields: readonly Field[], body: object) {
    this.target = target;
    this.fields = Fields.of(fields);
    this.#body = JSON.stringify(body);
  }

  field(name: string): string | undefined {
    return this.fields.get(name);
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
  answer(status: number, fields: SentFields, body: Uint8Array | string): void {
    this.begin(status, fields);
    this.text = Buffer.from(body).toString();
    this.ended = "end";
  }
  begin(status: number, fields: SentFields): void {
    this.status = status;
    this.sentFields = [...fields];
  }
  write(chunk: Uint8Array): boolean {
    this.text += Buffer.from(chunk).toString();
    return true;
  }
  flush(): void {}
  /** Tests of slow clients replace it. */
  onceSent(listener: () => void): void {
    listener();
  }
  addReplyFields(): void {}
  end(last: Uint8Array = Buffer.alloc(0)): void {
    this.text += Buffer.from(last).toString();
    this.ended = "end";
  }
  reset(): void {
    this.ended = "reset";
  }
  acceptWebSocket(): void {
    throw new Error("no script has a WebSocket");
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
  /** Sends the request, and waits until it has its line. Returns the error that the client got. */
  readonly run: () => Promise<GatewayError | null>;
  /** The same for a request of a test's own. */
  readonly finish: (request: Request) => Promise<GatewayError | null>;
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
  readonly notices: readonly string[];
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
  const scripts = new Map(Object.entries(channels).map(([name, steps]) => [name, [...steps]]));
  const send = (request: UpstreamRequest, listener: ResponseListener): SentRequest => {
    requests.push(request);
    const name = names[request.origin.port - 1] ?? "";
    called.push(name);
    const step =
      scripts.get(name)?.shift() ?? new UpstreamFault("connect", `no step is left for ${name}`, false);
    if (step instanceof UpstreamFault) return startFault(step, listener);
    const response = new ScriptedResponse(step, listener);
    responses.push(response);
    return response.start();
  };
  const recorded = new Map<string, () => void>();
  const gateway: Gateway = {
    ...inside.running.gateway,
    client: { ...inside.running.gateway.client, send, close: () => {} },
    finished: new FinishQueue<Request>({
      record: (request) => {
        try {
          recordBill(request, gateway);
        } finally {
          recorded.get(request.id)?.();
        }
      },
      written: () => gateway.ledger.flush(),
      onError: () => {},
    }),
  };
  const fields: Field[] = [["authorization", `Bearer ${keyOf(platform)}`]];
  const start = async (path = target): Promise<Started> => {
    const messages = [{ role: "user", content: "Hi" }];
    const body = { model: "m", max_tokens: 9, stream, messages };
    const exchange = new RecordedExchange(path, fields, body);
    return { exchange, request: await open(exchange, gateway) };
  };
  const finish = async (request: Request): Promise<GatewayError | null> => {
    const done = Promise.withResolvers<void>();
    recorded.set(request.id, done.resolve);
    request.held = true;
    watchClient(request, gateway);
    try {
      sendRequest(request, gateway);
    } catch (thrown) {
      failRequest(request, thrown, gateway);
    }
    await done.promise;
    return request.error;
  };
  const first = await start();
  return {
    ...first,
    gateway,
    called,
    requests,
    responses,
    finish,
    run: () => finish(first.request),
    again: async ({ target: path, leaves } = {}) => {
      const next = await start(path);
      if (leaves === true) next.exchange.leave();
      return { exchange: next.exchange, error: await finish(next.request) };
    },
    records: () => inside.records,
    notices: inside.notices,
    ledger: () => inside.ledger(),
    journal: () => readFileSync(inside.folder.join("ledger.jsonl.open"), "utf8"),
    stop: () => inside.stop(),
  };
}

interface Started {
  readonly exchange: RecordedExchange;
  readonly request: Request;
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

async function open(exchange: RecordedExchange, gateway: Gateway): Promise<Request> {
  const { catalog } = gateway;
  const found = recognise(exchange, catalog);
  if (found.kind !== "target") throw new Error(`${exchange.target} is no endpoint`);
  const arrival = { exchange, time: gateway.now(), arrived: performance.now() };
  const request = new Request({ id: `req_test${(count += 1)}`, ...arrival }, found);
  gateway.finished.enter();
  request.admitted = catalog.keys.get("k") ?? null;
  request.overrides = catalog.prices;
  request.body = await readRequestBody(request, catalog);
  findRoute(request, gateway);
  request.client = {};
  await openBill(request, gateway);
  return request;
}
