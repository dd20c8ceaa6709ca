// `gateway serve --replay NAME`: answers from a recording.

import { pathOf } from "../../dialects/path.ts";
import { DEFAULT_RELAY_PREFIX } from "../../config/schema.ts";
import { writeErrorEvent } from "../../dialects/formats/responses-websocket.ts";
import { listDialect, recognise, type Recognition } from "../../dialects/index.ts";
import { LISTS } from "../../dialects/dialect.ts";
import { createIdSource } from "../../gateway/intake/call.ts";
import { isOfOtherOrigin } from "../../gateway/intake/cors.ts";
import { acceptsHost, describeBaseUrl } from "../../gateway/intake/own-host.ts";
import { refuse } from "../../gateway/intake/refuse.ts";
import { GatewayError, messageOf } from "../../lib/errors.ts";
import { decodeBody } from "../../lib/codings.ts";
import { getField, getText } from "../../lib/json/json.ts";
import { listen } from "../../lib/http/serve.ts";
import type { Exchange } from "../../lib/http/exchange.ts";
import type { Field } from "../../lib/http/fields.ts";
import type { Payload, WebSocketPeer } from "../../lib/http/web-socket.ts";
import { type AskedRequest, Replay } from "../../recording/replay.ts";
import type { RecordedExchange } from "../../recording/store.ts";
import type { LogForm } from "../live/request-log.ts";
import { LIST_AGENT } from "../tools/models.ts";
import { openConfigUnless } from "../access/config.ts";
import { findRecording } from "../money/recordings.ts";
import { print, printNote } from "../terminal/terminal.ts";
import { formatCount } from "../terminal/text.ts";

export interface ReplayFlags {
  readonly replay: string;
  readonly port?: number;
  readonly host?: string;
  readonly config?: string;
  readonly log: LogForm;
}

const LOOPBACK = "127.0.0.1";
const MAX_BODY_BYTES = 256 << 20;
const NAMING = { relayPrefix: DEFAULT_RELAY_PREFIX, vendor: "goog" };
/** The replay writes these, or they belong to the recorded connection. */
const OWN_FIELDS = new Set(["content-length", "transfer-encoding", "connection", "date", "x-request-id"]);

export async function serveReplay(flags: ReplayFlags): Promise<number> {
  const config = flags.config === undefined ? {} : { config: flags.config };
  const recording = findRecording(flags.replay, config);
  const server = new ReplayServer(new Replay(recording), flags.log);
  const listener = listen({
    hostname: LOOPBACK,
    port: flags.port ?? openConfigUnless(true, config)?.catalog.listen.port ?? 4141,
    onExchange: (exchange) => void server.receive(exchange),
    onError: (error) => printNote(messageOf(error)),
    maxMessageBytes: MAX_BODY_BYTES,
  });
  const stopped = waitForSignal();
  print(`gateway is ready on ${describeBaseUrl(LOOPBACK, listener.port)}`);
  const requests = formatCount(recording.exchanges.length, "request");
  print(`replay: ${recording.folder} (${requests}), any key is accepted`);
  await stopped;
  listener.stopNow();
  return server.report();
}

function waitForSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => resolve());
  });
}

class ReplayServer {
  readonly #replay: Replay;
  readonly #log: LogForm;
  readonly #newId = createIdSource(Date.now);

  constructor(replay: Replay, log: LogForm) {
    this.#replay = replay;
    this.#log = log;
  }

  report(): number {
    const { used, total, misses } = this.#replay;
    print(`replayed ${used} of ${formatCount(total, "request")}; not in the recording: ${misses}`);
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
      this.#answer(exchange, id, this.#find({ method, target, body: plain }));
    } catch (error) {
      refuse(exchange, this.#explain(error), dialect, id);
    }
  }

  /** An error after which tools do not try again. */
  #explain(error: unknown): GatewayError {
    if (error instanceof GatewayError) return error;
    const why = messageOf(error);
    printNote(`not answered: ${why}`);
    this.#replay.misses += 1;
    return new GatewayError("bad_request", `The replay cannot answer this: ${why}.`);
  }

  #find(asked: AskedRequest): RecordedExchange {
    const found = this.#replay.find(asked);
    if (found.kind === "found") {
      const what = `request ${found.place} of the recording`;
      if (this.#log !== "off") print(`${asked.method} ${pathOf(asked.target)}: ${what}`);
      return found.exchange;
    }
    // `where` quotes no request, because a log must not have prompts.
    printNote(`not in the recording: ${found.where}`);
    throw new GatewayError("bad_request", `This is not in the recording: ${found.why}.`);
  }

  #answer(exchange: Exchange, id: string, recorded: RecordedExchange): void {
    const { status, fields, end } = recorded.response;
    const kept = fields.filter(([name]) => !OWN_FIELDS.has(name.toLowerCase()));
    const all: Field[] = [...kept, ["x-request-id", id], ["x-gateway-replayed", recorded.id]];
    const type = fields.find(([name]) => name === "content-type")?.[1] ?? "";
    const isStream = type.startsWith("text/event-stream");
    const bodies = this.#replay.readAnswer(recorded);
    if (!isStream && end === "whole") return exchange.answer(status, all, Buffer.concat(bodies));
    exchange.begin(status, all);
    for (const body of bodies) void exchange.write(body);
    if (end === "whole") exchange.end();
    else exchange.reset();
  }

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
    const names = new Set(exchanges.map(({ line }) => getText(getField(line, "model"))));
    const models = [...names].filter(Boolean).map((name) => ({ id: name, raw: null }));
    const fields: Field[] = [
      ["content-type", "application/json"],
      ["x-request-id", id],
    ];
    exchange.answer(200, fields, listDialect(asked, platform).listBody(models, new URLSearchParams()));
  }

  #upgrade(exchange: Exchange, id: string): void {
    const { target } = exchange;
    const accepted = exchange.acceptWebSocket([["x-request-id", id]], (peer) => {
      return {
        message: (message) => void this.#answerTurn(peer, target, message),
        closed: () => {},
        stopping: () => {},
      };
    });
    if (!accepted) throw new GatewayError("bad_request", "The WebSocket handshake is invalid.");
  }

  async #answerTurn(peer: WebSocketPeer, target: string, { bytes }: Payload): Promise<void> {
    try {
      const recorded = this.#find({
        method: "POST",
        target,
        body: bytes,
        transport: "websocket",
      });
      for (const body of this.#replay.readAnswer(recorded)) await peer.send({ kind: "text", bytes: body });
    } catch (error) {
      await peer.send({ kind: "text", bytes: writeErrorEvent(this.#explain(error), null) });
    }
  }
}

/** Pages of another origin must not read prompts. */
function requireLocal(exchange: Exchange): void {
  if (!acceptsHost(exchange.field("host"), LOOPBACK, { allowedHosts: [] }))
    throw new GatewayError("host_refused", "A replay answers under the names of this machine only.");
  if (isOfOtherOrigin(exchange))
    throw new GatewayError("origin_refused", "A replay answers no page of another origin.");
}

function answerOwn(exchange: Exchange, id: string): void {
  const fields: Field[] = [
    ["content-type", "application/json"],
    ["x-request-id", id],
  ];
  const body = {
    name: "gateway",
    status: "ok",
    about: "A replay of a recording.",
  };
  exchange.answer(200, fields, JSON.stringify(body));
}
