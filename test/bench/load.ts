// The clients of every target, in a process of their own: takes one job a line
// on stdin, answers with one line of JSON on stdout. Requests are bytes made
// beforehand, answers are counted; what is timed is the wire.

import { readSync, writeSync } from "node:fs";
import { type RequestOptions, STAMP_DIGITS, writeRequest } from "./messages.ts";
import { BROKEN, openSet, READABLE, type Watched } from "./socket-set.ts";
import {
  closeSocket,
  connectTo,
  inbox,
  pin,
  type Pinned,
  readMicros,
  readSome,
  resetSocket,
  sendAll,
  sleep,
  tryConnect,
} from "./sockets.ts";

export type Job =
  /** Requests one after another on each connection, for so long after warming up. */
  | {
      readonly do: "repeat";
      readonly request: RequestOptions;
      readonly connections: number;
      readonly warmMs: number;
      readonly ms: number;
    }
  /** Streams begun evenly over a pace, until each has run so many times. */
  | {
      readonly do: "stream";
      readonly request: RequestOptions;
      readonly connections: number;
      readonly times: number;
    }
  /** Streams that are only held open, for so long after the last has begun. */
  | {
      readonly do: "hold";
      readonly request: RequestOptions;
      readonly connections: number;
      readonly ms: number;
    }
  /** So many streams, a share of which is left in the middle. */
  | {
      readonly do: "leave";
      readonly request: RequestOptions;
      readonly connections: number;
      readonly count: number;
      readonly leaveShare: number;
    }
  /** One request, as soon as somebody listens. */
  | { readonly do: "first"; readonly request: RequestOptions };

/** Microseconds. */
export interface Times {
  readonly p50: number;
  readonly p99: number;
}

export interface Outcome {
  readonly requests: number;
  /** With those of the time of warming up. */
  readonly served: number;
  readonly seconds: number;
  readonly megabytes: number;
  /** Answers that were not 200, and connections that broke. */
  readonly errors: number;
  /** From a request to its answer's end, from a request to its answer's first byte, from an event's sending to its
   *  coming. Null where nothing of the kind was timed: with many connections the clock itself would weigh. */
  readonly whole: Times | null;
  readonly first: Times | null;
  readonly delay: Times | null;
  /** When the first answer's first byte had come, on the machine's monotonic clock. */
  readonly at: number;
}

interface Client extends Watched {
  /** What is left of the answer; -1 while its head has not come, Infinity when it comes in chunks. */
  left: number;
  sentAt: number;
  /** The size of the last answer, head included: the next is mostly the same. */
  usual: number;
  /** The last bytes of an answer in chunks. */
  tail: Buffer;
  streams: number;
}

const HEAD_END = Buffer.from("\r\n\r\n");
const CHUNKS_END = Buffer.from("\r\n0\r\n\r\n");
const DELAY_MARK = Buffer.from('"text":"');

const TIMED_CONNECTIONS = 16;

/** What one job counts. */
class Tally {
  requests = 0;
  served = 0;
  bytes = 0;
  errors = 0;
  at = 0;
  readonly whole: number[] = [];
  readonly first: number[] = [];
  readonly delays: number[] = [];

  clear(): void {
    this.requests = this.bytes = 0;
    this.whole.length = this.first.length = this.delays.length = 0;
  }

  report(seconds: number): Outcome {
    const { requests, served, errors, at, bytes } = this;
    const [whole, first, delay] = [this.whole, this.first, this.delays].map(readTimes);
    return {
      requests,
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

/** Clients that are served, whatever the job makes of their answers. */
class Crowd {
  readonly tally = new Tally();
  readonly set = openSet<Client>();
  readonly #port: number;
  readonly #request: Pinned;
  readonly #stamped: boolean;
  readonly #timed: boolean;
  /** What a client does when its answer has ended. */
  done: (client: Client) => void = (client) => this.ask(client);
  /** What it does at each read before. */
  seen: (client: Client) => void = () => {};

  constructor(request: RequestOptions, connections: number) {
    this.#timed = connections <= TIMED_CONNECTIONS;
    this.#port = request.port;
    this.#request = pin(writeRequest(request));
    this.#stamped = request.kind === "paced";
  }

  join(): Client {
    const client = {
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
    sendAll(client.fd, this.#request);
  }

  leave(client: Client, close: (fd: number) => void = closeSocket): void {
    this.set.remove(client);
    close(client.fd);
  }

  wait(ms: number): void {
    this.set.wait(ms, (client, events) => this.#receive(client, events));
  }

  end(): void {
    for (const client of [...this.set.items.values()]) this.leave(client);
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
    const bytes = inbox.subarray(0, size);
    if (client.left === -1) this.#begin(client, bytes);
    else if (client.left === Infinity) this.#endChunks(client, bytes);
    else client.left -= size;
    if (this.#stamped) this.#readStamps(bytes);
    if (client.left === 0) this.#finish(client);
    else this.seen(client);
  }

  /** The head and the first bytes of the body are taken to come together, as all targets send them. */
  #begin(client: Client, bytes: Buffer): void {
    if (this.tally.at === 0) this.tally.at = readMicros();
    if (this.#timed) this.tally.first.push((performance.now() - client.sentAt) * 1000);
    if (bytes[9] !== 50) this.#fail(bytes);
    if (bytes.length === client.usual) {
      client.left = 0;
      return;
    }
    const end = bytes.indexOf(HEAD_END);
    const length = /\r\ncontent-length: *(\d+)/i.exec(bytes.toString("latin1", 0, end))?.[1];
    if (end < 0) throw new Error("an answer's head came in pieces");
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

  #readStamps(bytes: Buffer): void {
    const now = readMicros();
    for (let at = bytes.indexOf(DELAY_MARK); at >= 0; at = bytes.indexOf(DELAY_MARK, at + 1)) {
      const stamp = Number(
        bytes.toString("latin1", at + DELAY_MARK.length, at + DELAY_MARK.length + STAMP_DIGITS),
      );
      if (stamp > 0) this.tally.delays.push(now - stamp);
    }
  }
}

function repeat(job: Extract<Job, { do: "repeat" }>): Outcome {
  const crowd = new Crowd(job.request, job.connections);
  for (let i = 0; i < job.connections; i += 1) crowd.ask(crowd.join());
  runFor(crowd, job.warmMs);
  crowd.tally.clear();
  const seconds = runFor(crowd, job.ms);
  crowd.end();
  return crowd.tally.report(seconds);
}

function runFor(crowd: Crowd, ms: number): number {
  const start = performance.now();
  while (performance.now() - start < ms) crowd.wait(100);
  return (performance.now() - start) / 1000;
}

function stream(job: Extract<Job, { do: "stream" }>): Outcome {
  const crowd = new Crowd(job.request, job.connections);
  const start = performance.now();
  crowd.done = (client) => {
    client.streams += 1;
    if (client.streams < job.times) crowd.ask(client);
    else crowd.leave(client);
  };
  for (let i = 0; i < job.connections; i += 1) {
    crowd.ask(crowd.join());
    crowd.wait(3);
  }
  while (crowd.set.items.size > 0) crowd.wait(100);
  return crowd.tally.report((performance.now() - start) / 1000);
}

function hold(job: Extract<Job, { do: "hold" }>): Outcome {
  const crowd = new Crowd(job.request, job.connections);
  for (let i = 0; i < job.connections; i += 1) {
    crowd.ask(crowd.join());
    if (i % 10 === 9) crowd.wait(5);
  }
  writeLine({ holding: job.connections });
  const seconds = runFor(crowd, job.ms);
  crowd.end();
  return crowd.tally.report(seconds);
}

function leaveSome(job: Extract<Job, { do: "leave" }>): Outcome {
  const crowd = new Crowd(job.request, job.connections);
  const start = performance.now();
  let begun = 0;
  let due = 0;
  const next = (client: Client): void => {
    if (begun < job.count) {
      begun += 1;
      crowd.ask(client);
    } else {
      crowd.leave(client);
    }
  };
  crowd.done = next;
  // A stream of two halves is seen once before its end; the share is spread evenly over them.
  crowd.seen = (client) => {
    due += job.leaveShare;
    if (due < 1) return;
    due -= 1;
    crowd.tally.requests += 1;
    crowd.leave(client, resetSocket);
    if (begun < job.count) next(crowd.join());
  };
  for (let i = 0; i < job.connections; i += 1) next(crowd.join());
  while (crowd.set.items.size > 0) crowd.wait(100);
  return crowd.tally.report((performance.now() - start) / 1000);
}

function askFirst(job: Extract<Job, { do: "first" }>): Outcome {
  for (let probe = -1; probe < 0; sleep(1)) {
    probe = tryConnect(job.request.port);
    if (probe >= 0) closeSocket(probe);
  }
  const crowd = new Crowd(job.request, 1);
  crowd.done = (client) => crowd.leave(client);
  crowd.ask(crowd.join());
  while (crowd.set.items.size > 0) crowd.wait(100);
  return crowd.tally.report(0);
}

function run(job: Job): Outcome {
  switch (job.do) {
    case "repeat":
      return repeat(job);
    case "stream":
      return stream(job);
    case "hold":
      return hold(job);
    case "leave":
      return leaveSome(job);
    case "first":
      return askFirst(job);
  }
}

function writeLine(value: unknown): void {
  writeSync(1, `${JSON.stringify(value)}\n`);
}

function* readJobs(): Generator<Job> {
  const chunk = Buffer.alloc(64 * 1024);
  let text = "";
  for (let size = readSync(0, chunk); size > 0; size = readSync(0, chunk)) {
    text += chunk.toString("utf8", 0, size);
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
      yield JSON.parse(text.slice(0, end));
      text = text.slice(end + 1);
    }
  }
}

for (const job of readJobs()) writeLine(run(job));
