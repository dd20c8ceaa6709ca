// A flat program of the gateway's own parts, only as many of them as its layer says: what a
// request costs up to there. It has no channels, limits, failover or errors, so nobody should use it as a proxy. A separate
// program: floor.ts LAYER UPSTREAM_PORT FOLDER SECRET. It prints its port on stdout.

import { join } from "node:path";
import { assess } from "../../../src/billing/assess.ts";
import { computeCharge } from "../../../src/billing/charge.ts";
import { estimateInputTokens } from "../../../src/billing/estimate.ts";
import { type Ledger, openLedger } from "../../../src/billing/ledger/ledger.ts";
import type { Intent } from "../../../src/billing/ledger/journal.ts";
import { loadPriceBook } from "../../../src/billing/prices.ts";
import type { Meter } from "../../../src/billing/usage.ts";
import { recognise } from "../../../src/dialects/index.ts";
import { messages } from "../../../src/dialects/formats/messages.ts";
import { createIdSource } from "../../../src/gateway/intake/call.ts";
import { KnownSecrets } from "../../../src/gateway/intake/known-secrets.ts";
import { requestFields, responseFields } from "../../../src/gateway/upstream/headers.ts";
import { readNames } from "../../../src/gateway/intake/body.ts";
import { scanMembers } from "../../../src/lib/scan.ts";
import { createClient } from "../../../src/lib/http1/client/client.ts";
import type { Fields } from "../../../src/lib/http/fields.ts";
import { listen } from "../../../src/lib/http1/server/server.ts";
import type { Exchange } from "../../../src/lib/http/exchange.ts";
import type {
  ResponseListener,
  SentRequest,
  UpstreamFault,
  UpstreamResponse,
} from "../../../src/lib/http/upstream.ts";
import { sha256Hex } from "../../../src/lib/secret.ts";
import { LAYERS } from "./layer-list.ts";

const [, , layer = "", upstreamPort = "", folder = "", secret = ""] = process.argv;
const depth = LAYERS.findIndex(({ name }) => name === layer);
const includes = (name: (typeof LAYERS)[number]["name"]): boolean =>
  depth >= LAYERS.findIndex((each) => each.name === name);
const ASKS = includes("asked");
const CHARGES = includes("charged");
const LEDGERS = includes("ledgered");

const client = createClient();
const newId = createIdSource(Date.now);
const naming = { relayPrefix: "relay", vendor: "goog" };
const keys = new Map([[sha256Hex(secret), "bench"]]);
const book = loadPriceBook();
const ledger: Ledger | null = LEDGERS
  ? openLedger({
      path: join(folder, "ledger.jsonl"),
      sync: "batch",
      rotate: { bytes: null, monthly: false },
      report: (text) => process.stderr.write(`${text}\n`),
    })
  : null;

interface Asked {
  readonly id: string;
  readonly time: number;
  readonly model: string;
  readonly stream: boolean;
  readonly estimatedInput: number;
}

const NOBODY: Asked = { id: "", time: 0, model: "", stream: false, estimatedInput: 0 };

async function pass(exchange: Exchange): Promise<void> {
  const arrived = performance.now();
  if (ASKS) authenticate(exchange);
  const body = await exchange.readBody(64 << 20);
  const asked = ASKS ? read(body) : NOBODY;
  const intent = ledger === null ? null : await announce(asked, ledger);
  send(exchange, body, new Handing(exchange, asked, intent, arrived));
}

function authenticate(exchange: Exchange): void {
  const found = recognise(exchange, naming);
  if (found.kind !== "target" || !keys.has(sha256Hex(exchange.field("x-api-key") ?? "")))
    throw new Error("the benchmark asks otherwise");
}

function read(body: Uint8Array): Asked {
  const { model, stream } = readNames(body, scanMembers(body, ["model", "stream"]));
  return {
    id: newId(),
    time: Date.now(),
    model: model ?? "",
    stream,
    estimatedInput: estimateInputTokens(body),
  };
}

async function announce(asked: Asked, into: Ledger): Promise<Intent> {
  const intent = describe(asked);
  await into.open(intent);
  return intent;
}

function send({ method, target, fields }: Exchange, body: Uint8Array, handing: Handing): void {
  handing.sent = client.send(
    {
      origin: { tls: false, host: "127.0.0.1", port: Number(upstreamPort) },
      method,
      target,
      fields: ASKS ? sign(fields) : fields,
      body,
      deadlines: { connectMs: 10_000, firstByteMs: 60_000, idleMs: 60_000 },
    },
    handing,
  );
}

const NO_SECRETS = new KnownSecrets({ channels: new Map(), keysBySha256: new Map() });

function sign(came: Fields): Fields {
  return requestFields(came, false, NO_SECRETS).add("x-api-key", "credential");
}

type Priced = ReturnType<typeof price>;

function price(asked: Asked, reading: ReturnType<ReturnType<typeof messages.openMeter>["read"]>) {
  const { estimatedInput, stream, model, time } = asked;
  const assessment = assess({ outcome: "complete", status: 200, reading, streamed: stream, estimatedInput });
  const charge = computeCharge({
    parts: assessment.parts,
    tariff: reading.tariff,
    model: reading.model,
    requested: model,
    book,
    overrides: new Map(),
    at: new Date(time),
    multiplier: "0.8",
  });
  return { reading, assessment, charge };
}

/** The answer to its client: whole with its charge, or as it comes. */
class Handing implements ResponseListener {
  sent: SentRequest | null = null;
  readonly #exchange: Exchange;
  readonly #asked: Asked;
  readonly #intent: Intent | null;
  readonly #arrived: number;
  #inbound: UpstreamResponse | null = null;
  #meter: Meter | null = null;
  #whole: Uint8Array[] | null = null;

  constructor(exchange: Exchange, asked: Asked, intent: Intent | null, arrived: number) {
    this.#exchange = exchange;
    this.#asked = asked;
    this.#intent = intent;
    this.#arrived = arrived;
  }

  begin(inbound: UpstreamResponse): void {
    this.#inbound = inbound;
    if (CHARGES) this.#meter = messages.openMeter(inbound.field("content-type") ?? "");
    if (inbound.length === null) this.#exchange.begin(inbound.status, this.#fields(inbound));
    else this.#whole = [];
  }

  resent(): void {}

  receive(bytes: Buffer): void {
    this.#meter?.see(bytes);
    if (this.#whole !== null) this.#whole.push(bytes);
    else if (!this.#exchange.write(bytes)) {
      this.sent?.pause();
      this.#exchange.onceSent(() => this.sent?.resume());
    }
  }

  end(): void {
    const charged = this.#meter === null ? null : price(this.#asked, this.#meter.read());
    if (this.#whole === null || this.#inbound === null) this.#exchange.end();
    else {
      const fields = this.#fields(this.#inbound);
      if (charged !== null) fields.add("x-gateway-charge", charged.charge.charge ?? "");
      this.#exchange.answer(this.#inbound.status, fields, Buffer.concat(this.#whole));
    }
    const ms = Math.round(performance.now() - this.#arrived);
    if (this.#intent !== null && charged !== null) ledger?.append(draft(this.#intent, charged, ms));
  }

  fail(fault: UpstreamFault): void {
    this.#exchange.reset();
    fail(fault);
  }

  #fields({ fields }: UpstreamResponse): Fields {
    return ASKS ? responseFields(fields).add("x-request-id", this.#asked.id) : fields;
  }
}

function describe({ id, time, model, stream }: Asked): Intent {
  return {
    id,
    time: new Date(time).toISOString(),
    key: "bench",
    group: "messages",
    platform: "messages",
    channel: "first",
    endpoint: "/v1/messages",
    model,
    upstream_model: model,
    stream,
    multiplier: "0.8",
  };
}

function draft(intent: Intent, { reading, assessment, charge }: Priced, ms: number) {
  return {
    ...intent,
    upstream_model: reading.model,
    status: 200,
    outcome: "complete" as const,
    basis: assessment.basis,
    usage: charge.usage,
    raw_usage: reading.rawUsage,
    prices: charge.prices,
    price_source: charge.priceSource,
    tier: charge.tier,
    official_usd: charge.official,
    charge_usd: charge.charge,
    first_byte_ms: ms,
    duration_ms: ms,
    attempts: [{ channel: "first", status: 200 }],
  };
}

const fail = (error: unknown): void => {
  process.stderr.write(`${String(error)}\n`);
};
const { port } = listen({
  hostname: "127.0.0.1",
  port: 0,
  onExchange: (exchange) => void pass(exchange).catch(fail),
  onError: fail,
});
process.stdout.write(`${port}\n`);
