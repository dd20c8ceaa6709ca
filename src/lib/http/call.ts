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

/** Up to this length, copying a body costs less than another packet. */
const MAX_COPIED_BYTES = 16 * 1024;
const METHODS_WITH_BODY = new Set(["POST", "PUT", "PATCH"]);
const BODILESS = new Set([101, 204, 304]);
const MAX_INTERIM_RESPONSES = 32;
const NO_BODY = new BodyDecoder("unknown");
const CUT = "the upstream closed the connection during its response";

export class Call implements SentRequest, Answer {
  #request: UpstreamRequest;
  readonly #pool: Pool;
  /** The key of a WebSocket's handshake. */
  readonly #key: string;
  readonly #head: string;
  readonly #size: number;
  readonly #answer = Promise.withResolvers<Answer>();
  readonly answer = this.#answer.promise;
  #wire: Wire | null = null;
  #fault: UpstreamFault | null = null;
  head!: Answer["head"];
  whole: Buffer | undefined;
  socket: Answer["socket"];
  #decoder = NO_BODY;
  #first: Buffer | null = null;
  /** Null: the connection serves no other request. */
  #keepMs: number | null = null;

  constructor(request: UpstreamRequest, pool: Pool) {
    this.#request = request;
    this.#pool = pool;
    this.#key = request.memory !== undefined ? crypto.getRandomValues(new Uint8Array(16)).toBase64() : "";
    this.#head = writeHead(request, this.#key);
    this.#size = this.#head.length + (request.body?.length ?? 0);
    // An attempt is in the journal before its request leaves.
    atTurnEnd("requests", () => void this.#run());
  }

  cancel(): void {
    if (this.#decoder.done) return;
    this.#first = null;
    const kind = this.#wire === null ? "withdrawn" : "cancelled";
    this.#fail(new UpstreamFault(kind, "the gateway cancelled the request"));
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
        if (head !== null) return this.#begin(wire, head);
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
      if (head.status === 101 && this.#key !== "") return head;
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

  #begin(wire: Wire, received: ResponseHead): void {
    const { method, memory } = this.#request;
    const { status, fields, length, rest } = received;
    this.#request = { ...this.#request, body: null }; // it is not sent again
    const isBodiless = method === "HEAD" || BODILESS.has(status);
    const closeDelimited = !isBodiless && length === "unknown";
    this.head = { status, fields, length: typeof length === "number" ? length : null, closeDelimited };
    if (status === 101 && memory !== undefined) {
      requireFit(fields, this.#key);
      this.#pool.forget(wire);
      this.socket = new UpstreamPeer(wire, memory, rest);
      return this.#answer.resolve(this);
    }
    // A late body of a bodiless answer would look like the next answer.
    const isLost = closeDelimited || (isBodiless && announcesBody(received));
    this.#keepMs = isLost ? null : readKeepMs(received);
    this.#decoder = new BodyDecoder(isBodiless ? 0 : length);
    this.#first = this.#decode(wire, rest);
    if (this.#decoder.done) this.whole = this.#first ?? NOTHING;
    atTurnEnd("steps", () => this.#answer.resolve(this));
  }

  async read(): Promise<Buffer | null> {
    const wire = this.#wire;
    let piece = this.#first;
    this.#first = null;
    if (wire === null) return piece;
    try {
      while (piece === null && !this.#decoder.done) {
        const bytes = await wire.read(this.#request.deadlines.idleMs, "idle_timeout");
        if (bytes !== null) piece = this.#decode(wire, bytes);
        else if (wire.error !== null || !this.#decoder.finish())
          throw new UpstreamFault("cut", CUT, wire.error);
      }
    } catch (error) {
      const fault = toFault(error);
      wire.terminate(fault);
      throw fault;
    }
    return piece;
  }

  #decode(wire: Wire, bytes: Buffer): Buffer | null {
    const piece = this.#decoder.decode(bytes);
    if (!this.#decoder.done) return piece;
    const isClean = this.#decoder.isClean && wire.unsentBytes === 0 && wire.unreadBytes === 0;
    if (isClean && this.#keepMs !== null) this.#pool.keep(wire, this.#keepMs);
    else wire.terminate();
    return piece;
  }
}

/** A connection throws the fault that terminated it. */
function toFault(error: unknown): UpstreamFault {
  if (error instanceof UpstreamFault) return error;
  if (error instanceof Malformed) return new UpstreamFault("malformed", error.message);
  throw error;
}

const announcesBody = ({ length }: ResponseHead): boolean => length !== "unknown" && length !== 0;

/** A second of `timeout=N` may pass on the way. Null:
 *  the connection is not kept. */
function readKeepMs({ staysOpen, fields }: ResponseHead): number | null {
  if (!staysOpen) return null;
  const [, seconds] = /\btimeout=(\d{1,9})/i.exec(fields.get("keep-alive") ?? "") ?? [];
  if (seconds === undefined) return Infinity;
  return Number(seconds) > 1 ? (Number(seconds) - 1) * 1000 : null;
}

function writeHead({ origin, method, target, fields, body }: UpstreamRequest, key: string): string {
  const { tls, host, port, proxy } = origin;
  const authority = port === (tls ? 443 : 80) ? host : `${host}:${port}`;
  // A proxy needs the complete address of a plain origin.
  const isProxied = proxy !== undefined && !tls;
  const line = writeRequestLine(method, isProxied ? `http://${authority}${target}` : target);
  const login = isProxied ? writeProxyLogin(proxy) : "";
  const sendsBody = body !== null || METHODS_WITH_BODY.has(method);
  const length = sendsBody ? `content-length: ${body?.length ?? 0}\r\n` : "";
  const upgrade = key === "" ? "" : writeHandshake(key);
  return `${line}host: ${authority}\r\n${login}${writeFields(fields)}${upgrade}${length}\r\n`;
}
