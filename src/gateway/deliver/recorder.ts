// Decides which requests are recorded, bounds their size, and removes secrets.

import { join } from "node:path";
import type { LineDraft } from "../../billing/ledger/line.ts";
import type { Catalog } from "../../config/catalog.ts";
import { pathOf } from "../../dialects/path.ts";
import { messageOf } from "../../lib/errors.ts";
import { decodeBody } from "../../lib/codings.ts";
import { BoundedMap } from "../../lib/memory/bounded-map.ts";
import { nextTurn } from "../../lib/time/next-turn.ts";
import { nameRecordings, type RecordedExchange, RecordingWriter, removeOld } from "../../recording/store.ts";
import type { Recorder } from "../gateway.ts";
import { listOwnSecrets } from "../intake/authenticate.ts";
import { MIN_LENGTH, type Secrets, secretsOf } from "../intake/secrets.ts";
import type { Observer } from "../observe/observer.ts";
import type { Request } from "../request.ts";
import { requestFields } from "../send/headers.ts";
import { Tap, tapExchange } from "../intake/tap.ts";

const MAX_RUNS = 1000;
const CLOSE_MS = 10_000;
const MAX_DECODED_BYTES = 256 * 1024 * 1024;
/** The last requests' keys and logins: each is removed from all recordings. */
const MAX_SENT = 32;
/** Cleaning this much takes half a millisecond. Then the event loop turns. */
const SLICE_BYTES = 6 * 1024;

export class RequestRecorder implements Recorder {
  readonly #observer: Pick<Observer, "notice">;
  readonly #now: () => number;
  #catalog: Catalog;
  readonly #root: string;
  readonly #runs = new BoundedMap<string, { readonly name: string; requests: number }>(MAX_RUNS);
  readonly #writers = new Map<string, RecordingWriter>();
  readonly #stopped = new Set<string>();
  #named = new Set<string>();
  readonly #held = { bytes: 0 };
  readonly #unwritten = new Set<Tap>();
  readonly #sent = new BoundedMap<string, true>(MAX_SENT);
  #dropped = 0;
  #waiting = 0;
  #written = Promise.resolve();

  constructor(catalog: Catalog, observer: Pick<Observer, "notice">, now: () => number) {
    this.#observer = observer;
    this.#now = now;
    this.#catalog = catalog;
    this.#root = nameRecordings(catalog.ledger.path);
    this.follow(catalog);
  }

  get active(): Recorder["active"] {
    const keys = [...this.#catalog.keys.values()].flatMap(({ name: key, record }) =>
      record === undefined ? [] : [{ name: record, key }],
    );
    const runs = new Set([...this.#runs.values(), ...this.#unwritten].map(({ name }) => name));
    return [...keys, ...[...runs].map((name) => ({ name, key: null }))].filter(
      ({ name }) => !this.#stopped.has(name),
    );
  }

  follow(catalog: Catalog): void {
    this.#catalog = catalog;
    this.#stopped.clear();
    const named = new Set<string>();
    for (const { name: key, record } of catalog.keys.values()) {
      if (record === undefined) continue;
      const text = `recording: requests of the key "${key}" and their answers are written to ${join(this.#root, record)}`;
      named.add(text);
      if (!this.#named.has(text)) this.#observer.notice("warning", text);
    }
    this.#named = named;
    try {
      for (const name of removeOld(this.#root, catalog.recordings.maxAgeMs, this.#now()))
        this.#observer.notice("note", `recording: "${name}" was removed, unused for \`recordings.max_age\``);
    } catch (error) {
      this.#observer.notice("warning", `recording: old recordings were not removed: ${messageOf(error)}`);
    }
  }

  recordRun(session: string, name: string | null): ReturnType<Recorder["recordRun"]> {
    const observer = this.#observer;
    const known = this.#runs.get(session) ?? { name: name ?? "", requests: 0 };
    const folder = join(this.#root, known.name);
    if (name === null) {
      const text = `recording: a run has ended, and its requests are no longer written to "${known.name}"`;
      if (this.#runs.delete(session)) observer.notice("note", text);
      return { folder, requests: known.requests };
    }
    this.#runs.set(session, known);
    this.#stopped.delete(name);
    observer.notice("warning", `recording: requests of a run and their answers are written to ${folder}`);
    return { folder, requests: 0 };
  }

  async close(): Promise<void> {
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, CLOSE_MS);
    await Promise.race([this.#written, late.promise]);
    clearTimeout(timer);
    if (this.#waiting > 0)
      this.#observer.notice("error", `recording: ${this.#waiting} requests were not written`);
  }

  open(r: Request, message?: Uint8Array): void {
    const run = r.run === null ? undefined : this.#runs.get(r.run.id);
    const name = run?.name ?? r.key.record;
    if (name === undefined || this.#stopped.has(name)) return;
    if (secretsOf(this.#catalog).holds(targetOf(r))) return;
    if (run !== undefined) run.requests += 1;
    const tap = new Tap(name, r.arrived, this.#held);
    r.recorded = tap;
    this.#unwritten.add(tap);
    if (message === undefined) r.exchange = tapExchange(r.exchange, tap);
    else {
      tap.keepRequest(message);
      tap.begin(200, []);
    }
  }

  finish(r: Request, tap: Tap, line: LineDraft | null): void {
    if (!tap.fits) this.#drop();
    this.#waiting += 1;
    const write = async (): Promise<void> => {
      // A request without an answer cannot be replayed.
      if (tap.fits && tap.status > 0) await this.#write(r, tap, line);
      this.#held.bytes -= tap.bytes;
      this.#waiting -= 1;
      this.#unwritten.delete(tap);
    };
    this.#written = this.#written.then(write);
  }

  async #write(r: Request, tap: Tap, line: LineDraft | null): Promise<void> {
    const { name } = tap;
    const catalog = this.#catalog;
    try {
      const coding = r.transport === null ? r.exchange.field("content-encoding") : undefined;
      // What cannot be read may hold a secret.
      const plain =
        coding === undefined
          ? tap.request
          : await decodeBody(tap.request, coding, MAX_DECODED_BYTES).catch(() => null);
      if (plain === null) return;
      for (const secret of listOwnSecrets(r.exchange)) this.#sent.set(secret, true);
      const secrets = secretsOf(catalog).forSender([...this.#sent.keys()]);
      const clean = (bytes: Uint8Array): Promise<Buffer> => removeSecrets(bytes, secrets);
      const facts = Buffer.from(JSON.stringify(describe(r, tap, line, catalog)));
      const exchange: RecordedExchange = JSON.parse((await clean(facts)).toString());
      const request = await clean(plain);
      const response = await clean(Buffer.concat(tap.chunks));
      const writer = this.#writers.getOrInsertComputed(name, () => new RecordingWriter(this.#root, name));
      if (!this.#stopped.has(name))
        writer.write(exchange, { request, response }, catalog.recordings.maxBytes);
    } catch (error) {
      this.#stopped.add(name);
      const text = `recording: "${name}" has stopped: ${messageOf(error)}`;
      this.#observer.notice("error", text);
    }
  }

  #drop(): void {
    this.#dropped += 1;
    const text = `recording: too many bytes at once; requests that were not recorded so far: ${this.#dropped}`;
    if (/^10*$/.test(String(this.#dropped))) this.#observer.notice("warning", text);
  }
}

function targetOf({ exchange, query }: Request): string {
  return pathOf(exchange.target) + query;
}

async function removeSecrets(bytes: Uint8Array, secrets: Secrets): Promise<Buffer> {
  const clean = Buffer.from(await secrets.maskInTurns(bytes));
  for (let from = 0; from < clean.length; from += SLICE_BYTES) {
    const text = clean.toString("latin1", from, from + SLICE_BYTES + MIN_LENGTH);
    for (const at of secrets.findParts(text)) clean.fill("*", from + at, from + at + MIN_LENGTH);
    await nextTurn();
  }
  return clean;
}

function describe(r: Request, tap: Tap, line: LineDraft | null, catalog: Catalog): RecordedExchange {
  const { exchange, method, transport, ending } = r;
  const end = transport === null ? tap.end : ending.outcome === "complete" ? "whole" : "reset";
  return {
    v: 2,
    id: r.id,
    time: r.isoTime,
    key: r.key.name,
    ...(transport !== null && { transport }),
    request: {
      method,
      target: targetOf(r),
      fields: [...requestFields(exchange.fields, false, secretsOf(catalog))],
      pieces: [],
    },
    response: {
      status: tap.status,
      fields: tap.fields,
      chunks: tap.chunks.map(({ length }, index) => [tap.times[index] ?? 0, length]),
      end,
    },
    duration_ms: r.durationMs,
    line,
  };
}
