// Questions to the threads that read the ledger. A thread starts with its first question and ends when nobody has asked
// for a while, because its sums take memory. One keeps the sums of the overview, and saves them also while nobody has the
// page open. The other reads the ledger for what is looked up now and then, so that the overview does not wait for that.

import { statSync } from "node:fs";
import { SAVE_BYTES } from "../../billing/report/cube.ts";
import { listLedgerFiles } from "../../billing/ledger/rotation.ts";
import type { Observer } from "../../gateway/observe/observer.ts";
import { Refusal } from "../../lib/refusal.ts";
import type { Overview, SessionReply, SessionsReply } from "../api.ts";
import type { OverviewQuery } from "./overview.ts";
import type { Answer, Question, WorkerSettings } from "./question.ts";
import type { SessionsQuery } from "./sessions.ts";

const IDLE_MS = 5 * 60_000;
/** How often it is checked whether many lines were written since the sums of the overview were saved. */
const UPDATE_MS = 60_000;
/** Saving may take at most this share of a core, also when lines are written faster than they are read. */
const UPDATE_SHARE = 0.02;

export interface Reports {
  /** Counts the open streams, for which reports make room. */
  readonly observer: Pick<Observer, "streamOpened" | "streamClosed">;
  overview(query: OverviewQuery): Promise<Overview>;
  /** What `gateway ledger show` prints; null: no line has this id. */
  explain(request: string): Promise<readonly string[] | null>;
  sessions(query: SessionsQuery): Promise<SessionsReply>;
  session(session: string): Promise<SessionReply>;
  /** Saves the sums of the overview if many lines were written since, so that it is there at once after a start. */
  update(): Promise<void>;
  /** Does so every minute. */
  keepUpdated(): void;
  close(): void;
}

type Result = Answer["result"];
type ResultOf<Kind extends Result["kind"]> = Extract<Result, { readonly kind: Kind }>;
type Wish = Question extends infer Each
  ? Each extends Question
    ? Omit<Each, "id" | keyof WorkerSettings>
    : never
  : never;

export function createReports(readLedger: () => Omit<WorkerSettings, "streams">): Reports {
  const streams = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const open = new Set<string>();
  const count = (): void => void Atomics.store(streams, 0, open.size);
  const readSettings = (): WorkerSettings => ({ ...readLedger(), streams });
  const sums = new ReportThread(readSettings);
  const lookups = new ReportThread(readSettings);
  const update = createUpdate(sums, () => measureLedger(readSettings().ledgerPath));
  let timer: Timer | null = null;
  return {
    observer: {
      streamOpened: ({ id }) => {
        open.add(id);
        count();
      },
      streamClosed: (id) => {
        open.delete(id);
        count();
      },
    },
    update,
    // If it fails, the page reads the lines itself and shows why it cannot.
    keepUpdated: () => (timer ??= setInterval(() => void update().catch(() => {}), UPDATE_MS).unref()),
    overview: async (query) => requireKind(await sums.ask({ kind: "overview", query }), "overview").overview,
    explain: async (request) => requireKind(await lookups.ask({ kind: "explain", request }), "explain").lines,
    sessions: async (query) =>
      requireKind(await lookups.ask({ kind: "sessions", query }), "sessions").sessions,
    session: async (session) =>
      requireKind(await lookups.ask({ kind: "session", session }), "session").session,
    close: () => {
      if (timer !== null) clearInterval(timer);
      sums.end(new Refusal("The gateway stops.", 1));
      lookups.end(new Refusal("The gateway stops.", 1));
    },
  };
}

function createUpdate(thread: ReportThread, measure: () => number): () => Promise<void> {
  let saved = 0;
  let notBefore = 0;
  return async () => {
    const began = performance.now();
    if (began < notBefore) return;
    const size = measure();
    if (Math.abs(size - saved) < SAVE_BYTES) return;
    notBefore = Infinity;
    try {
      await thread.askAlone({ kind: "update" });
      saved = size;
    } finally {
      const end = performance.now();
      notBefore = end + (end - began) / UPDATE_SHARE;
    }
  };
}

function measureLedger(path: string): number {
  return listLedgerFiles(path).reduce(
    (sum, file) => sum + (statSync(file, { throwIfNoEntry: false })?.size ?? 0),
    0,
  );
}

function requireKind<Kind extends Result["kind"]>(result: Result, kind: Kind): ResultOf<Kind> {
  if (isKind(result, kind)) return result;
  throw new Error(result.kind === "failed" ? result.error : "the thread answered something else");
}

function isKind<Kind extends Result["kind"]>(result: Result, kind: Kind): result is ResultOf<Kind> {
  return result.kind === kind;
}

class ReportThread {
  readonly #readSettings: () => WorkerSettings;
  readonly #waiting = new Map<number, PromiseWithResolvers<Result>>();
  #worker: Worker | null = null;
  #idle: Timer | null = null;
  #last = 0;

  constructor(readSettings: () => WorkerSettings) {
    this.#readSettings = readSettings;
  }

  ask(wish: Wish): Promise<Result> {
    this.#worker ??= this.#start();
    this.#stay();
    this.#last += 1;
    const reply = Promise.withResolvers<Result>();
    this.#waiting.set(this.#last, reply);
    this.#worker.postMessage({ ...wish, ...this.#readSettings(), id: this.#last });
    return reply.promise;
  }

  /** The same. If nothing else was asked meanwhile or shortly before, the thread then ends. */
  async askAlone(wish: Wish): Promise<Result> {
    const isNew = this.#worker === null;
    const reply = this.ask(wish);
    const own = this.#last;
    const result = await reply;
    if (isNew && own === this.#last) this.end(new Refusal("It has answered.", 1));
    return result;
  }

  end(reason: Error): void {
    if (this.#idle !== null) clearTimeout(this.#idle);
    this.#worker?.terminate();
    this.#worker = null;
    for (const each of this.#waiting.values()) each.reject(reason);
    this.#waiting.clear();
  }

  /** Ends the thread when it has had nothing to do for a while. */
  #stay(): void {
    if (this.#idle !== null) clearTimeout(this.#idle);
    this.#idle = setTimeout(() => {
      if (this.#waiting.size === 0) this.end(new Refusal("Nobody has asked for a while.", 1));
    }, IDLE_MS).unref();
  }

  #start(): Worker {
    const worker = new Worker(locateWorker());
    // The gateway's process may end while it runs.
    worker.unref();
    worker.addEventListener("message", ({ data }: MessageEvent<Answer>) => {
      this.#waiting.get(data.id)?.resolve(data.result);
      this.#waiting.delete(data.id);
      this.#stay();
    });
    worker.addEventListener("error", ({ message }) =>
      this.end(new Error(`the ledger could not be read: ${message}`)),
    );
    return worker;
  }
}

/** In the executable, modules are parts of files in its root, and a worker keeps the place of its source. */
function locateWorker(): URL {
  const isSource = import.meta.url.endsWith("/reports/reports.ts");
  return new URL(isSource ? "./worker.ts" : "./web/reports/worker.js", import.meta.url);
}
