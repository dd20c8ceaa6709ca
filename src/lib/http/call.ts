// One request to an upstream. It is sent again only if nothing of it arrived.

import { NOTHING } from "../memory/bytes.ts";
import { atTurnEnd } from "../time/next-turn.ts";
import { writeProxyLogin } from "./dial.ts";
import { Malformed, writeFields } from "./fields.ts";
import { BodyDecoder, readHead, type ResponseHead, writeRequestLine } from "./message.ts";
import type { Pool } from "./pool.ts";
import { requireFit, UpstreamPeer, writeHandshake } from "./peer.ts";
import { type Answer, type SentRequest, UpstreamFault, type UpstreamRequest } from "./upstream.ts";
import type { Wire } from "./wire.ts";

/** Up to this length, copying a body costs less than a second packet. */
const MAX_COPIED_BYTES = 16 * 1024;
const METHODS_WITH_BODY = new Set(["POST", "PUT", "PATCH"]);
const MAX_INTERIM_RESPONSES = 32;
const CANCELLED = "the gateway cancelled the request";
const CUT = "the upstream closed the connection during its response";

export class Call implements SentRequest {
  readonly #request: UpstreamRequest;
  readonly #pool: Pool;
  /** The key of a WebSocket's handshake. */
  readonly #key: string | null;
  readonly #head: string;
  readonly #size: number;
  readonly #answer = Promise.withResolvers<Answer>();
  readonly answer = this.#answer.promise;
  #wire: Wire | null = null;
  #reply: Answer | null = null;
  #fault: UpstreamFault | null = null;

  constructor(request: UpstreamRequest, pool: Pool) {
    this.#request = request;
    this.#pool = pool;
    this.#key = request.memory !== undefined ? crypto.getRandomValues(new Uint8Array(16)).toBase64() : null;
    this.#head = writeHead(request, this.#key);
    this.#size = this.#head.length + (request.body?.length ?? 0);
    // The journal's record of an attempt is written before it leaves.
    atTurnEnd("requests", () => void this.#run());
  }

  cancel(): void {
    if (this.#reply !== null) return this.#reply.cancel();
    this.#fail(new UpstreamFault(this.#wire === null ? "withdrawn" : "cancelled", CANCELLED));
  }

  #fail(fault: UpstreamFault): void {
    this.#fault ??= fault;
    this.#wire?.terminate(fault);
    this.answer.catch(() => {}); // nobody may be waiting
    this.#answer.reject(fault);
  }

  async #run(): Promise<void> {
    if (this.#fault !== null) return;
    try {
      for (let wire = this.#pool.takeIdle(), isSecond = false; ; wire = null, isSecond = true) {
        wire ??= await this.#pool.connect(this.#request.deadlines.connectMs);
        if (this.#fault !== null) return this.#pool.keep(wire);
        this.#send(wire);
        let head = await readHead(wire, this.#request.deadlines);
        if (head !== null && head.status < 200) head = await this.#passInterims(wire, head);
        if (head !== null) return this.#answer.resolve((this.#reply = this.#begin(wire, head)));
        const { unsentBytes, error } = wire;
        if (isSecond || unsentBytes !== this.#size)
          throw new UpstreamFault("reset", "the upstream closed the connection before its response", error);
        this.#wire = null;
      }
    } catch (error) {
      this.#fail(toFault(error));
    }
  }

  async #passInterims(wire: Wire, first: ResponseHead): Promise<ResponseHead | null> {
    let head: ResponseHead | null = first;
    for (let interims = 1; head !== null && head.status < 200; interims += 1) {
      if (head.status === 101 && this.#key !== null) return head;
      if (head.status === 101 || interims > MAX_INTERIM_RESPONSES || announcesBody(head))
        throw new Malformed("an unexpected interim response");
      head = await readHead(wire, this.#request.deadlines, head.rest);
    }
    return head;
  }

  #send(wire: Wire): void {
    const { body } = this.#request;
    this.#wire = wire;
    wire.isUsed = true;
    const copied = body !== null && body.length <= MAX_COPIED_BYTES ? body : NOTHING;
    const packet = Buffer.allocUnsafe(this.#head.length + copied.length);
    packet.write(this.#head, "latin1");
    packet.set(copied, this.#head.length);
    wire.write(packet);
    if (body !== null && body !== copied) wire.write(body);
  }

  #begin(wire: Wire, head: ResponseHead): Answer {
    const { memory } = this.#request;
    if (head.status !== 101 || memory === undefined) return openReply(wire, head, this.#request, this.#pool);
    requireFit(head.fields, this.#key ?? "");
    this.#pool.forget(wire);
    const socket = new UpstreamPeer(wire, memory, head.rest);
    return {
      head: { status: 101, fields: head.fields, length: null, closeDelimited: false },
      socket,
      read: () => Promise.resolve(null),
      cancel: () => socket.reset(),
    };
  }
}

/** After the body, the pool keeps the connection or closes it. */
function openReply(wire: Wire, head: ResponseHead, request: UpstreamRequest, pool: Pool): Answer {
  const { status, fields, length } = head;
  const isBodiless = request.method === "HEAD" || status === 204 || status === 304;
  const closeDelimited = !isBodiless && length === "unknown";
  // A late body of a bodiless answer would look like the next answer.
  const isKept = head.staysOpen && !closeDelimited && !(isBodiless && announcesBody(head));
  const keepMs = isKept ? readKeepMs(fields.get("keep-alive")) : null;
  const decoder = new BodyDecoder(isBodiless ? 0 : length);
  const decode = (bytes: Buffer): Buffer | null => {
    const piece = decoder.decode(bytes);
    if (!decoder.done) return piece;
    const isClean = decoder.isClean && wire.unsentBytes === 0 && wire.unreadBytes === 0;
    if (isClean && keepMs !== null) pool.keep(wire, keepMs);
    else wire.terminate();
    return piece;
  };
  const readOn = async (): Promise<Buffer | null> => {
    let piece: Buffer | null = null;
    try {
      while (piece === null && !decoder.done) {
        const bytes = await wire.read(request.deadlines.idleMs, "idle_timeout");
        if (bytes !== null) piece = decode(bytes);
        else if (wire.error !== null || !decoder.finish()) throw new UpstreamFault("cut", CUT, wire.error);
      }
    } catch (error) {
      const fault = toFault(error);
      wire.terminate(fault);
      throw fault;
    }
    return piece;
  };
  let first = decode(head.rest);
  return {
    head: { status, fields, length: typeof length === "number" ? length : null, closeDelimited },
    read() {
      const piece = first;
      first = null;
      return piece === null && !decoder.done ? readOn() : Promise.resolve(piece);
    },
    cancel() {
      if (decoder.done) return;
      first = null;
      wire.terminate(new UpstreamFault("cancelled", CANCELLED));
    },
  };
}

/** A connection throws the fault that terminated it. */
function toFault(error: unknown): UpstreamFault {
  if (error instanceof UpstreamFault) return error;
  if (error instanceof Malformed) return new UpstreamFault("malformed", error.message);
  throw error;
}

const announcesBody = ({ length }: ResponseHead): boolean => length !== "unknown" && length !== 0;

/** `keep-alive: timeout=N`, minus a second for the way. Infinity: no field; null: too short. */
function readKeepMs(keepAlive = ""): number | null {
  const [, seconds] = /\btimeout=(\d{1,9})/i.exec(keepAlive) ?? [];
  if (seconds === undefined) return Infinity;
  return Number(seconds) > 1 ? (Number(seconds) - 1) * 1000 : null;
}

function writeHead({ origin, method, target, fields, body }: UpstreamRequest, key: string | null): string {
  const { tls, host, port, proxy } = origin;
  const authority = port === (tls ? 443 : 80) ? host : `${host}:${port}`;
  // A proxy needs the complete address of a plain origin.
  const isProxied = proxy !== undefined && !tls;
  const line = writeRequestLine(method, isProxied ? `http://${authority}${target}` : target);
  const login = isProxied ? writeProxyLogin(proxy) : "";
  const sendsBody = body !== null || METHODS_WITH_BODY.has(method);
  const length = sendsBody ? `content-length: ${body?.length ?? 0}\r\n` : "";
  const upgrade = key === null ? "" : writeHandshake(key);
  return `${line}host: ${authority}\r\n${login}${writeFields(fields)}${upgrade}${length}\r\n`;
}
