// `gateway serve --replay NAME`: answers from a recording, without network, config or account. Nothing is sent upstream, but
// with `--until TURN`: later turns go to the gateway that runs with the config.

import { setTimeout } from "node:timers/promises";
import { pathOf } from "../../dialects/path.ts";
import { type Ledger, openLedger } from "../../billing/ledger/ledger.ts";
import { GENESIS, type LineDraft, lineSchema } from "../../billing/ledger/line.ts";
import { DEFAULT_RELAY_PREFIX } from "../../config/schema.ts";
import { writeErrorEvent } from "../../dialects/formats/responses-websocket.ts";
import type { Dialect } from "../../dialects/dialect.ts";
import { listDialect, recognise, type Recognition } from "../../dialects/index.ts";
import { LISTS } from "../../gateway/intake/match.ts";
import { createIdSource } from "../../gateway/intake/call.ts";
import { isOfOtherOrigin } from "../../gateway/intake/cors.ts";
import { describeBaseUrl, OwnHosts } from "../../gateway/intake/own-host.ts";
import { refuse } from "../../gateway/intake/refuse.ts";
import { GatewayError, getErrorMessage } from "../../lib/errors.ts";
import { createClient } from "../../lib/http1/client/client.ts";
import { decodeBody } from "../../lib/http/encoding.ts";
import { listen } from "../../lib/http1/server/server.ts";
import type { Exchange } from "../../lib/http/exchange.ts";
import type { Field } from "../../lib/http/fields.ts";
import type { Origin } from "../../lib/http/upstream.ts";
import { MemoryBudget } from "../../lib/memory/memory-budget.ts";
import { findHandshakeFault } from "../../lib/http1/websocket/handshake.ts";
import type { Message, WebSocketPeer } from "../../lib/http/web-socket.ts";
import { type Asked, Replay } from "../../recording/replay.ts";
import type { RecordedExchange } from "../../recording/exchange.ts";
import type { Recording } from "../../recording/store.ts";
import type { LogForm } from "../live/request-log.ts";
import { openConfig } from "../access/config.ts";
import { MAX_BODY_BYTES, passedFields, relay } from "../access/relay.ts";
import { findRunning, formatBaseUrl } from "../access/running.ts";
import { LIST_AGENT } from "../tools/model-names.ts";
import { findRecording } from "../money/recordings/recordings.ts";
import { fail, print, printNote, refuseUsage } from "../terminal/terminal.ts";
import { formatCount } from "../terminal/text.ts";

export interface ReplayFlags {
  readonly replay: string;
  readonly port?: number;
  readonly host?: string;
  readonly config?: string;
  readonly ledger?: string;
  readonly pace?: "recorded" | "fast";
  readonly until?: number;
  readonly log: LogForm;
}

const LOOPBACK = "127.0.0.1";
/** A timer has no more. */
const MAX_WAIT_MS = 2 ** 31 - 1;
const HOSTS = new OwnHosts(LOOPBACK);
const DEFAULT_PORT = 4141;
const NAMING = { relayPrefix: DEFAULT_RELAY_PREFIX, vendor: "goog" };
/** They are written anew, or belong to another connection. */
const OWN_FIELDS = new Set([
  "content-length",
  "transfer-encoding",
  "connection",
  "date",
  "x-request-id",
  "x-gateway-charge",
]);

/** Returns the exit status: 1 if a request was not in the recording. */
export async function serveReplay(flags: ReplayFlags): Promise<number> {
  const recording = findRecording(flags.replay, flags.config === undefined ? {} : { config: flags.config });
  const gateway = flags.until === undefined ? null : await findGateway(flags, recording, flags.until);
  const ledger = flags.ledger === undefined ? null : openReplayLedger(flags.ledger);
  const replay = new Replay(recording, flags.until);
  const server = new ReplayServer(replay, { ledger, gateway, pace: flags.pace ?? "fast", log: flags.log });
  const listener = listen({
    hostname: LOOPBACK,
    // The gateway has the default one.
    port: flags.port ?? (gateway === null ? DEFAULT_PORT : 0),
    onExchange: (exchange) => void server.receive(exchange),
    onError: (error) => printNote(getErrorMessage(error)),
  });
  const stopped = waitForSignal();
  print(`gateway is ready on ${describeBaseUrl(LOOPBACK, listener.port)}`);
  print(
    gateway === null
      ? `replay: ${recording.folder} (${formatCount(replay.total, "request")}), any key is accepted`
      : `replay: ${recording.folder} until request ${replay.total}; later ones go to the gateway on ${describeBaseUrl(gateway.host, gateway.port)}, need a key of it, and are charged`,
  );
  await stopped;
  listener.stopNow();
  server.close();
  await ledger?.close();
  return server.report();
}

/** The gateway that gets the later turns. */
async function findGateway(flags: ReplayFlags, { exchanges }: Recording, until: number): Promise<Origin> {
  if (until < 1 || until > exchanges.length)
    refuseUsage(`--until: the recording has the requests 1 to ${exchanges.length}.`);
  const overSocket = exchanges.slice(0, until).findIndex(({ transport }) => transport !== undefined);
  // The upstream knows the turns of a WebSocket by their connection.
  if (overSocket >= 0)
    fail(
      `--until: request ${overSocket + 1} came over a WebSocket, which cannot go on elsewhere. Record over HTTP.`,
    );
  const { catalog, path } = openConfig(flags);
  const running = await findRunning(catalog.ledger.path);
  if (running === null)
    return fail(
      `--until: later turns go to the gateway of ${path}, and it is not running. Start it with \`gateway serve\`.`,
    );
  const { hostname, port } = new URL(formatBaseUrl(running.address));
  return { tls: false, host: hostname, port: Number(port) };
}

function openReplayLedger(path: string): Ledger {
  const rotate = { bytes: null, monthly: false };
  return openLedger({ path, sync: "batch", rotate, report: (text) => printNote(text) });
}

function waitForSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => resolve());
  });
}

interface ReplayOptions {
  readonly ledger: Ledger | null;
  readonly pace: "recorded" | "fast";
  readonly log: LogForm;
  /** Null: the recording has all answers. */
  readonly gateway: Origin | null;
}

class ReplayServer {
  readonly #replay: Replay;
  readonly #options: ReplayOptions;
  readonly #newId = createIdSource(Date.now);
  readonly #memory = new MemoryBudget(MAX_BODY_BYTES);
  readonly #client = createClient();

  constructor(replay: Replay, options: ReplayOptions) {
    this.#replay = replay;
    this.#options = options;
  }

  close(): void {
    this.#client.close();
  }

  report(): number {
    const { used, total, misses, later } = this.#replay;
    const live = this.#options.gateway === null ? "" : `; sent to the gateway: ${later}`;
    print(`replayed ${used} of ${formatCount(total, "request")}; not in the recording: ${misses}${live}`);
    return misses === 0 ? 0 : 1;
  }

  async receive(exchange: Exchange): Promise<void> {
    const id = this.#newId();
    const recognised = recognise(exchange, NAMING);
    const { dialect } = recognised;
    const { method, target } = exchange;
    try {
      requireLocal(exchange);
      if (recognised.kind === "own") return answerOwn(exchange, id);
      if (recognised.kind === "upgrade") return this.#upgrade(exchange, id);
      if (exchange.field("user-agent") === LIST_AGENT) return this.#answerRun(exchange, id, recognised);
      const body = await exchange.readBody(MAX_BODY_BYTES);
      const plain = await decodeBody(body, exchange.field("content-encoding"), MAX_BODY_BYTES);
      const recorded = this.#find({ method, target, body: plain });
      if (recorded === null) this.#passOn(exchange, body, dialect);
      else await this.#answer(exchange, id, recorded);
    } catch (error) {
      refuse(exchange, this.#explain(error), dialect, id);
    }
  }

  /** Besides requests that are not in the recording: a recording that was changed, or a request that cannot be read. Tools do
   *  not try again. */
  #explain(error: unknown): GatewayError {
    if (error instanceof GatewayError) return error;
    const why = getErrorMessage(error);
    printNote(`not answered: ${why}`);
    this.#replay.misses += 1;
    return new GatewayError("bad_request", `The replay cannot answer this: ${why}.`);
  }

  /** Null: it comes later. */
  #find(asked: Asked): RecordedExchange | null {
    const found = this.#replay.find(asked);
    if (found.kind !== "miss") {
      const what = found.kind === "later" ? "sent to the gateway" : `request ${found.place} of the recording`;
      if (this.#options.log !== "off") print(`${asked.method} ${pathOf(asked.target)}: ${what}`);
      return found.kind === "later" ? null : found.exchange;
    }
    // A log has no prompts.
    printNote(`not in the recording: ${found.where}`);
    throw new GatewayError("bad_request", `This is not in the recording: ${found.why}.`);
  }

  #passOn(exchange: Exchange, body: Uint8Array, dialect: Dialect): void {
    const { gateway } = this.#options;
    if (gateway === null) throw new Error("a replay without a gateway has no later turns");
    relay(this.#client, exchange, {
      origin: gateway,
      fields: passedFields(exchange),
      body,
      explain: ({ message }) => `The gateway does not answer: ${message}.`,
      dialect,
    });
  }

  async #answer(exchange: Exchange, id: string, recorded: RecordedExchange): Promise<void> {
    const { status, fields, end, chunks } = recorded.response;
    const started = performance.now();
    const kept = fields.filter(([name]) => !OWN_FIELDS.has(name.toLowerCase()));
    const all: Field[] = [...kept, ["x-request-id", id], ["x-gateway-replayed", recorded.id]];
    const isStream = fields.some(
      ([name, value]) => name === "content-type" && value.startsWith("text/event-stream"),
    );
    const bodies = this.#replay.readAnswer(recorded);
    if (!isStream && end === "whole") {
      await this.#wait(started, chunks.at(-1)?.[0]);
      exchange.answer(status, all, Buffer.concat(bodies));
    } else {
      exchange.begin(status, all);
      exchange.flush();
      for (const [index, body] of bodies.entries()) {
        await this.#wait(started, chunks[index]?.[0]);
        exchange.write(body);
      }
      if (end === "whole") exchange.end();
      else exchange.reset();
    }
    this.#bill(id, recorded);
  }

  async #wait(started: number, at = 0): Promise<void> {
    const ms = Math.min(at - (performance.now() - started), MAX_WAIT_MS);
    // The end of the program does not wait for it.
    if (this.#options.pace === "recorded" && ms > 0) await setTimeout(ms, undefined, { ref: false });
  }

  /** `gateway run` itself asks for models before the tool starts. They are those of the recording. */
  #answerRun(exchange: Exchange, id: string, recognised: Recognition): void {
    const { exchanges } = this.#replay.recording;
    const recorded = exchanges.flatMap(({ request: { method, target } }) => {
      const found = recognise({ method, target, field: () => undefined }, NAMING);
      return found.kind === "target" && !LISTS.has(found.target.endpoint.purpose)
        ? found.target.endpoint.platforms
        : [];
    });
    const asked = recognised.kind === "target" ? recognised.target.endpoint : null;
    const platform = asked?.platforms.find((each) => recorded.includes(each));
    if (asked === null || platform === undefined)
      throw new GatewayError("unknown_path", "The recording has no request of this platform.");
    const names = exchanges.flatMap(({ line }) =>
      typeof line?.["model"] === "string" ? [line["model"]] : [],
    );
    const models = [...new Set(names)].map((name) => ({ id: name, raw: null }));
    const fields: Field[] = [
      ["content-type", "application/json"],
      ["x-request-id", id],
    ];
    exchange.answer(200, fields, listDialect(asked, platform).listBody(models, new URLSearchParams()));
  }

  #upgrade(exchange: Exchange, id: string): void {
    const fault = findHandshakeFault(exchange);
    if (fault !== null)
      throw new GatewayError("bad_request", `The WebSocket handshake is invalid: ${fault}.`);
    if (this.#options.gateway !== null)
      throw new GatewayError(
        "upgrade_required",
        "A replay that goes on at a gateway has no WebSocket. Send the request over HTTP.",
      );
    const { target } = exchange;
    const limits = { maxMessageBytes: MAX_BODY_BYTES, memory: this.#memory };
    exchange.acceptWebSocket([["x-request-id", id]], limits, (peer) => {
      let last = Promise.resolve();
      return {
        message: (message, memory) => {
          last = last.then(() => this.#answerTurn(peer, target, message)).finally(() => memory?.free());
        },
        drained: () => {},
        closed: () => {},
        stopping: () => {},
      };
    });
  }

  async #answerTurn(peer: WebSocketPeer, target: string, { bytes }: Message): Promise<void> {
    const started = performance.now();
    try {
      const recorded = this.#find({ method: "POST", target, body: bytes, transport: "websocket" });
      if (recorded === null) return;
      for (const [index, body] of this.#replay.readAnswer(recorded).entries()) {
        await this.#wait(started, recorded.response.chunks[index]?.[0]);
        peer.send({ kind: "text", bytes: body });
      }
      this.#bill(this.#newId(), recorded);
    } catch (error) {
      peer.send({ kind: "text", bytes: writeErrorEvent(this.#explain(error), null) });
    }
  }

  /** The recorded line again, as a request that costs nothing. */
  #bill(id: string, recorded: RecordedExchange): void {
    const { ledger } = this.#options;
    const draft = ledger === null ? null : describeReplayed(id, recorded);
    if (draft !== null) ledger?.appendUnopened(draft);
    ledger?.flush();
  }
}

/** Null: nothing was billed. */
export function describeReplayed(id: string, { line }: RecordedExchange): LineDraft | null {
  const { data } = lineSchema.safeParse({ ...line, v: 1, prev: GENESIS });
  if (data === undefined) return null;
  const { v: _, prev: __, replaces: ___, unpriced_usage: ____, at_least_usd: _____, cache, ...rest } = data;
  return {
    ...rest,
    raw_usage: JSON.stringify(rest.raw_usage ?? null),
    id,
    time: new Date().toISOString(),
    multiplier: "0",
    charge_usd: rest.charge_usd === null ? null : "0",
    ...(cache !== undefined && { cache: { ...cache, usd: cache.usd === null ? null : "0" } }),
    extra: { replayed: true },
  };
}

/** A page of a browser must not read prompts: neither from another origin, nor under another name of this machine. */
function requireLocal(exchange: Exchange): void {
  if (!HOSTS.accepts(exchange.field("host"), { allowedHosts: [] }))
    throw new GatewayError("host_refused", "A replay answers under the names of this machine only.");
  if (isOfOtherOrigin(exchange))
    throw new GatewayError("origin_refused", "A replay answers no page of another origin.");
}

function answerOwn(exchange: Exchange, id: string): void {
  const fields: Field[] = [
    ["content-type", "application/json"],
    ["x-request-id", id],
  ];
  exchange.answer(
    200,
    fields,
    JSON.stringify({ name: "gateway", status: "ok", about: "A replay of a recording." }),
  );
}
