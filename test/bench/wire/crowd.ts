// The load's clients: what they send, how they read answers, and what they count.

import { findShape, type RequestOptions, STAMP_DIGITS, writeRequest, writeTurns } from "./requests.ts";
import { BROKEN, openSet, READABLE, type Watched } from "./socket-set.ts";
import { closeSocket, connectTo, inbox, pin, type Pinned, readMicros, readSome, sendAll } from "./sockets.ts";

/** Microseconds. */
export interface Times {
  readonly p50: number;
  readonly p99: number;
}

export interface Outcome {
  readonly requests: number;
  /** Pieces in which the answers arrived. */
  readonly reads: number;
  /** Including those of the warm-up. */
  readonly served: number;
  readonly seconds: number;
  readonly megabytes: number;
  /** Answers that were not 200, and connections that broke. */
  readonly errors: number;
  /** From a request to its answer's end, from a request to its answer's first byte, from sending an event to its
   *  arrival. Null if it was not timed: with many connections the clock itself would cost too much. */
  readonly whole: Times | null;
  readonly first: Times | null;
  readonly delay: Times | null;
  /** When the first answer's first byte arrived, on the machine's monotonic clock. */
  readonly at: number;
}

export interface Client extends Watched {
  /** Bytes still to come of the answer; -1 before its head is complete, Infinity if it comes in chunks. */
  left: number;
  sentAt: number;
  /** The size of the last answer, head included: the next one usually has the same size. */
  usual: number;
  /** The bytes of a head that has not ended, or the last ones of a chunked answer. */
  tail: Buffer;
  streams: number;
  /** What it sends, one after the other, and then from the first one again. */
  requests: readonly Pinned[];
  asked: number;
}

/** The first digit of a status of success. */
const SUCCESS = 50;
const HEAD_END = Buffer.from("\r\n\r\n");
const CHUNKS_END = Buffer.from("\r\n0\r\n\r\n");
/** The text before a time in an event. */
const STAMP_MARKS = { messages: '"text":"', responses: '"delta":"', chat: '"content":"' } as const;

const TIMED_CONNECTIONS = 24;

/** What one job counts. */
class Tally {
  requests = 0;
  reads = 0;
  served = 0;
  bytes = 0;
  errors = 0;
  at = 0;
  readonly whole: number[] = [];
  readonly first: number[] = [];
  readonly delays: number[] = [];

  clear(): void {
    this.requests = this.reads = this.bytes = 0;
    this.whole.length = this.first.length = this.delays.length = 0;
  }

  report(seconds: number): Outcome {
    const { requests, reads, served, errors, at, bytes } = this;
    const [whole, first, delay] = [this.whole, this.first, this.delays].map(readTimes);
    return {
      requests,
      reads,
      served,
      seconds,
      megabytes: bytes / 1e6,
      errors,
      at,
      whole: whole ?? null,
      first: first ?? null,
      delay: delay ?? null,
    };
  }
}

function readTimes(samples: number[]): Times | null {
  const sorted = samples.sort((a, b) => a - b);
  const pick = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return sorted.length === 0 ? null : { p50: pick(0.5), p99: pick(0.99) };
}

/** Clients that send and read; the job decides what to count. */
export class Crowd {
  readonly tally = new Tally();
  readonly set = openSet<Client>();
  readonly #port: number;
  readonly #options: RequestOptions;
  readonly #requests: readonly Pinned[];
  /** Null if events contain no time. */
  readonly #mark: Buffer | null;
  readonly #timed: boolean;
  /** Runs when a client's answer has ended. */
  done: (client: Client) => void = (client) => this.ask(client);

  constructor(request: RequestOptions, connections: number) {
    this.#timed = connections <= TIMED_CONNECTIONS;
    this.#port = request.port;
    this.#options = request;
    this.#requests = request.kind === "turn" ? [] : [pin(writeRequest(request))];
    this.#mark = request.kind === "paced" ? Buffer.from(STAMP_MARKS[findShape(request.path)]) : null;
  }

  join(): Client {
    // Each client of this kind has a session of its own.
    const isAgent = this.#options.kind === "turn";
    const client = {
      requests: isAgent ? writeTurns(this.#options).map(pin) : this.#requests,
      asked: 0,
      fd: connectTo(this.#port),
      left: -1,
      sentAt: 0,
      usual: -1,
      tail: Buffer.alloc(0),
      streams: 0,
    };
    this.set.add(client);
    return client;
  }

  ask(client: Client): void {
    client.left = -1;
    if (this.#timed) client.sentAt = performance.now();
    const request = client.requests[client.asked % client.requests.length];
    client.asked += 1;
    if (request !== undefined) sendAll(client.fd, request);
  }

  leave(client: Client): void {
    this.set.remove(client);
    closeSocket(client.fd);
  }

  wait(ms: number): void {
    this.set.wait(ms, (client, events) => this.#receive(client, events));
  }

  end(): void {
    for (const client of this.set.items.values()) this.leave(client);
  }

  #receive(client: Client, events: number): void {
    const size = (events & (READABLE | BROKEN)) === 0 ? 0 : readSome(client.fd);
    if (size <= 0) {
      this.tally.errors += 1;
      this.leave(client);
      this.ask(this.join());
      return;
    }
    this.tally.bytes += size;
    this.tally.reads += 1;
    const bytes = inbox.subarray(0, size);
    if (client.left === -1) this.#begin(client, bytes);
    else if (client.left === Infinity) this.#endChunks(client, bytes);
    else client.left -= size;
    if (this.#mark !== null) this.#readStamps(bytes, this.#mark);
    if (client.left === 0) this.#finish(client);
  }

  #begin(client: Client, arrived: Buffer): void {
    const before = client.tail;
    if (this.tally.at === 0) this.tally.at = readMicros();
    if (this.#timed && before.length === 0) this.tally.first.push((performance.now() - client.sentAt) * 1000);
    const bytes = before.length === 0 ? arrived : Buffer.concat([before, arrived]);
    if (bytes.length === client.usual && bytes[9] === SUCCESS) {
      client.left = 0;
      return;
    }
    const end = bytes.indexOf(HEAD_END);
    if (end < 0) {
      client.tail = Buffer.from(bytes); // some peers send a head in pieces
      return;
    }
    if (bytes[9] !== SUCCESS) this.#fail(bytes);
    client.tail = Buffer.alloc(0);
    const length = /\r\ncontent-length: *(\d+)/i.exec(bytes.toString("latin1", 0, end))?.[1];
    if (length === undefined) {
      client.left = Infinity;
      this.#endChunks(client, bytes.subarray(end));
    } else {
      client.left = end + HEAD_END.length + Number(length) - bytes.length;
      if (client.left === 0) client.usual = bytes.length;
    }
  }

  #fail(bytes: Buffer): void {
    if (this.tally.errors === 0) process.stderr.write(`bench: ${bytes.toString("latin1", 0, 400)}\n`);
    this.tally.errors += 1;
  }

  #endChunks(client: Client, bytes: Buffer): void {
    const all = bytes.length >= CHUNKS_END.length ? bytes : Buffer.concat([client.tail, bytes]);
    client.tail = Buffer.from(all.subarray(-CHUNKS_END.length));
    if (client.tail.equals(CHUNKS_END)) client.left = 0;
  }

  #finish(client: Client): void {
    client.tail = Buffer.alloc(0);
    this.tally.requests += 1;
    this.tally.served += 1;
    if (this.#timed) this.tally.whole.push((performance.now() - client.sentAt) * 1000);
    this.done(client);
  }

  #readStamps(bytes: Buffer, mark: Buffer): void {
    const now = readMicros();
    for (let at = bytes.indexOf(mark); at >= 0; at = bytes.indexOf(mark, at + 1)) {
      const start = at + mark.length;
      const stamp = Number(bytes.toString("latin1", start, start + STAMP_DIGITS));
      if (stamp > 0) this.tally.delays.push(now - stamp);
    }
  }
}
