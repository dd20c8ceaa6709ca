// Records requests: which ones, and within which bounds. worker.ts does the work, after the bytes have passed.

import { join } from "node:path";
import type { Catalog } from "../../../config/catalog.ts";
import { pathOf } from "../../../dialects/path.ts";
import { getErrorMessage } from "../../../lib/errors.ts";
import { parseJson } from "../../../lib/json/json.ts";
import { nameRecordings, removeOld } from "../../../recording/store.ts";
import type { Gateway, Recorder } from "../../gateway.ts";
import { listOwnSecrets, listSecrets, secretsOf } from "../../intake/secrets.ts";
import type { Request } from "../../request.ts";
import { requestFields } from "../../send/headers.ts";
import { type Kept, Tap, TappedExchange } from "./tap.ts";
import type { Done, Job, Settings } from "./worker.ts";
import { locateWorker } from "../../../lib/files/platform.ts";

/** What running requests and waiting ones hold together. */
const MAX_HELD_BYTES = 256 * 1024 * 1024;
/** The header of `gateway run`, by which its requests are known. */
const RUN_HEADER = "x-gateway-session";
const MAX_RUNS = 1000;
const CLOSE_MS = 10_000;

export class RequestRecorder implements Recorder {
  readonly #gateway: Gateway;
  readonly #root: string;
  /** By the ids of `gateway run`. */
  readonly #runs = new Map<string, { readonly name: string; requests: number }>();
  /** Recordings that could not go on. They begin again after a change of the config. */
  readonly #stopped = new Set<string>();
  /** The recordings of keys that the log has named. */
  #named = new Set<string>();
  #worker: Worker | null = null;
  #heldBytes = 0;
  #waiting = 0;
  #dropped = 0;
  #idle: PromiseWithResolvers<void> | null = null;

  constructor(gateway: Gateway) {
    this.#gateway = gateway;
    this.#root = nameRecordings(gateway.catalog.ledger.path);
    this.follow(gateway.catalog);
  }

  get active(): Recorder["active"] {
    const keys = [...this.#gateway.catalog.keys.values()].flatMap(({ name: key, record }) =>
      record === undefined ? [] : [{ name: record, key }],
    );
    const runs = [...new Set(this.#runs.values().map(({ name }) => name))].map((name) => ({
      name,
      key: null,
    }));
    return [...keys, ...runs].filter(({ name }) => !this.#stopped.has(name));
  }

  follow(catalog: Catalog): void {
    this.#stopped.clear();
    this.#configure(catalog);
    const { observer } = this.#gateway;
    const named = new Set<string>();
    for (const { name: key, record } of catalog.keys.values()) {
      if (record === undefined) continue;
      const text = `recording: requests of the key "${key}" and their answers are written to ${join(this.#root, record)}`;
      named.add(text);
      if (!this.#named.has(text)) observer.notice("warning", text);
    }
    this.#named = named;
    this.#removeOld(catalog);
  }

  recordRun(session: string, name: string | null): ReturnType<Recorder["recordRun"]> {
    const { observer } = this.#gateway;
    const known = this.#runs.get(session) ?? { name: name ?? "", requests: 0 };
    const folder = join(this.#root, known.name);
    if (name === null) {
      if (this.#runs.delete(session))
        observer.notice(
          "note",
          `recording: a run has ended, and its requests are no longer written to "${known.name}"`,
        );
      return { folder, requests: known.requests };
    }
    if (this.#runs.size >= MAX_RUNS) this.#runs.clear();
    this.#runs.set(session, known);
    this.#stopped.delete(name);
    observer.notice("warning", `recording: requests of a run and their answers are written to ${folder}`);
    return { folder, requests: 0 };
  }

  open(r: Request): void {
    const tap = this.#openTap(r);
    if (tap === null) return;
    r.exchange = new TappedExchange(r.exchange, tap);
    r.recorded = tap;
  }

  openTurn(r: Request, message: Uint8Array): void {
    const tap = this.#openTap(r);
    if (tap === null) return;
    tap.keepRequest(message);
    tap.begin(200, []);
    r.recorded = tap;
  }

  async close(): Promise<void> {
    this.#idle = Promise.withResolvers<void>();
    const timer = setTimeout(this.#idle.resolve, CLOSE_MS);
    if (this.#waiting > 0) await this.#idle.promise;
    clearTimeout(timer);
    if (this.#waiting > 0)
      this.#gateway.observer.notice("error", `recording: ${this.#waiting} requests were not written`);
    this.#worker?.terminate();
    this.#worker = null;
  }

  #openTap(r: Request): Tap | null {
    const run = this.#runs.get(r.exchange.field(RUN_HEADER) ?? "");
    const name = run?.name ?? r.key.record;
    if (name === undefined || this.#stopped.has(name)) return null;
    if (run !== undefined) run.requests += 1;
    const target = pathOf(r.exchange.target) + r.query;
    const { catalog } = this.#gateway;
    if (secretsOf(catalog).holds(target)) return null;
    let bytes = 0;
    let fits = true;
    const hold = (more: number): boolean => {
      fits &&= this.#heldBytes + more <= MAX_HELD_BYTES;
      if (fits) bytes += more;
      if (fits) this.#heldBytes += more;
      return fits;
    };
    // A failed request may end before its turn comes.
    let done = (kept: Kept): void => {
      done = () => {};
      this.#heldBytes -= bytes;
      // Nobody can replay what has no answer.
      if (!fits) this.#drop();
      else if (kept.status > 0) this.#send(this.#describe(r, target, kept));
    };
    return new Tap({ name, arrived: r.arrived, hold, done: (kept) => done(kept) });
  }

  #describe(
    r: Request,
    target: string,
    { name, request, status, fields, chunks, times, end, line }: Kept,
  ): Job {
    const { exchange, method } = r;
    const secrets = secretsOf(this.#gateway.catalog);
    return {
      name,
      own: listOwnSecrets(exchange),
      coding: r.transport === null ? exchange.field("content-encoding") : undefined,
      request: copy([request ?? new Uint8Array(0)]),
      response: copy(chunks),
      line: {
        v: 1,
        id: r.id,
        time: r.isoTime,
        key: r.key.name,
        ...(r.transport !== null && { transport: r.transport }),
        request: { method, target, fields: [...requestFields(exchange.fields, false, secrets)] },
        response: {
          status,
          fields: [...fields],
          chunks: chunks.map(({ length }, index) => [times[index] ?? 0, length]),
          end: r.transport === null ? end : r.ending.outcome === "complete" ? "whole" : "reset",
        },
        duration_ms: r.durationMs,
        line: line === null ? null : { ...line, raw_usage: parseJson(line.raw_usage ?? "null") },
      },
    };
  }

  #send(job: Job): void {
    this.#worker ??= this.#start();
    const bytes = job.request.length + job.response.length;
    this.#worker.postMessage(job, [job.request.buffer, job.response.buffer]);
    // After the post: what was not posted is never given back.
    this.#heldBytes += bytes;
    this.#waiting += 1;
  }

  #start(): Worker {
    const worker = new Worker(locateWorker(import.meta.url, "gateway/deliver/recording"));
    // The gateway's process may end while it runs.
    worker.unref();
    worker.addEventListener("message", ({ data }: MessageEvent<Done>) => this.#note(data));
    worker.addEventListener("error", ({ message }) => this.#lose(message));
    this.#worker = worker;
    this.#configure(this.#gateway.catalog);
    return worker;
  }

  #configure(catalog: Catalog): void {
    const settings: Settings = {
      root: this.#root,
      maxBytes: catalog.recordings.maxBytes,
      credentials: [...catalog.channels.values()].flatMap(listSecrets),
      keys: new Set(catalog.keysBySha256.keys()),
    };
    this.#worker?.postMessage(settings);
  }

  #note({ bytes, name, problem }: Done): void {
    this.#heldBytes -= bytes;
    this.#waiting -= 1;
    if (problem !== null) this.#stop(name, problem);
    if (this.#waiting === 0) this.#idle?.resolve();
  }

  #stop(name: string, why: string): void {
    if (this.#stopped.has(name)) return;
    this.#stopped.add(name);
    this.#gateway.observer.notice("error", `recording: "${name}" has stopped: ${why}`);
  }

  /** The thread has failed, and what waited with it. */
  #lose(why: string): void {
    for (const { name } of this.active) this.#stop(name, why);
    this.#worker?.terminate();
    this.#worker = null;
    this.#heldBytes = 0;
    this.#waiting = 0;
    this.#idle?.resolve();
  }

  #drop(): void {
    this.#dropped += 1;
    const isRound = /^10*$/.test(String(this.#dropped));
    if (isRound)
      this.#gateway.observer.notice(
        "warning",
        `recording: too much passes at once; requests that were not recorded so far: ${this.#dropped}`,
      );
  }

  #removeOld({ recordings }: Catalog): void {
    const { observer, now } = this.#gateway;
    try {
      for (const name of removeOld(this.#root, recordings.maxAgeMs, now()))
        observer.notice("note", `recording: "${name}" was removed: nothing was written to it for so long`);
    } catch (error) {
      observer.notice("warning", `recording: old recordings were not removed: ${getErrorMessage(error)}`);
    }
  }
}

/** In memory of its own, which is given to the thread. */
function copy(chunks: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = Buffer.concat(chunks);
  return new Uint8Array(bytes.length === bytes.buffer.byteLength ? bytes.buffer : bytes);
}
