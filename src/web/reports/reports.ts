// Questions to the thread that owns the index of the ledger. It is started when somebody asks, or when the index lacks
// many lines, and ends when neither has happened for a while, because it takes memory.

import { statSync } from "node:fs";
import type { Tallies } from "../../billing/ledger/sums/sums.ts";
import { Refusal } from "../../lib/refusal.ts";
import { everySecond } from "../../lib/time/heartbeat.ts";
import type { Overview, SessionReply, SessionsReply } from "../api.ts";
import type { OverviewQuery } from "./overview.ts";
import type { Answer, LedgerUse, Question, Result, WorkerSettings } from "./question.ts";
import type { SessionsQuery } from "./sessions.ts";

const IDLE_MS = 30_000;
/** A question reads so much in a moment: less than this waits for one. */
const MANY_BYTES = 1 << 20;
/** A ledger that grows by more in a second has traffic that needs the machine. The index waits for a lull, or a question. */
const DENSE_BYTES = 256 << 10;

export interface Reports {
  overview(query: OverviewQuery): Promise<Overview>;
  /** What `gateway ledger show` prints; null: no line has this id. */
  explain(request: string): Promise<readonly string[] | null>;
  sessions(query: SessionsQuery): Promise<SessionsReply>;
  session(session: string): Promise<SessionReply>;
  survey(): Promise<LedgerUse>;
  /** What the first lines of the ledger add up to, without the index. Takes a tenth of a core for a while. */
  tally(lines: number): Promise<Tallies>;
  /** Brings the index up to date. */
  follow(): Promise<void>;
  /** Does so from time to time, beside no dense traffic. */
  keepFollowing(): void;
  close(): void;
}

type ResultOf<Kind extends Result["kind"]> = Extract<Result, { readonly kind: Kind }>;
type Wish = Question extends infer Each
  ? Each extends Question
    ? Omit<Each, "id" | keyof WorkerSettings>
    : never
  : never;

/** `note` gets a line for the log when the index cannot be used. */
export function createReports(
  readSettings: () => WorkerSettings,
  note: (text: string) => void = () => {},
): Reports {
  const thread = new IndexThread(readSettings, note);
  const follow = async (): Promise<void> => {
    requireKind(await thread.ask({ kind: "follow" }), "followed");
  };
  let [seen, followed] = [measure(readSettings().ledgerPath), 0];
  let isFollowing = false;
  let endWatch = (): void => {};
  const watch = (): void => {
    const before = seen;
    seen = measure(readSettings().ledgerPath);
    if (isFollowing || !isWorthFollowing({ before, seen, followed })) return;
    followed = seen;
    isFollowing = true;
    void follow()
      // The next question says why.
      .catch(() => {})
      .finally(() => (isFollowing = false));
  };
  return {
    follow,
    keepFollowing: () => (endWatch = everySecond(watch)),
    survey: async () => requireKind(await thread.ask({ kind: "survey" }), "survey").use,
    tally: async (lines) => requireKind(await thread.ask({ kind: "tally", lines }), "tally").tallies,
    overview: async (query) =>
      requireKind(await thread.ask({ kind: "overview", query }), "overview").overview,
    explain: async (request) => requireKind(await thread.ask({ kind: "explain", request }), "explain").lines,
    sessions: async (query) =>
      requireKind(await thread.ask({ kind: "sessions", query }), "sessions").sessions,
    session: async (session) =>
      requireKind(await thread.ask({ kind: "session", session }), "session").session,
    close: () => {
      endWatch();
      thread.end(new Refusal("The gateway stops.", 1));
    },
  };
}

/** In bytes: the ledger's size a second ago, now, and when the index was followed. After a rotation it is smaller. */
export function isWorthFollowing(sizes: {
  readonly before: number;
  readonly seen: number;
  readonly followed: number;
}): boolean {
  const { before, seen, followed } = sizes;
  return Math.abs(seen - followed) >= MANY_BYTES && Math.abs(seen - before) <= DENSE_BYTES;
}

function measure(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

function requireKind<Kind extends Result["kind"]>(result: Result, kind: Kind): ResultOf<Kind> {
  if (isKind(result, kind)) return result;
  throw new Error(result.kind === "failed" ? result.error : "the thread answered something else");
}

function isKind<Kind extends Result["kind"]>(result: Result, kind: Kind): result is ResultOf<Kind> {
  return result.kind === kind;
}

class IndexThread {
  readonly #readSettings: () => WorkerSettings;
  readonly #note: (text: string) => void;
  readonly #waiting = new Map<number, PromiseWithResolvers<Result>>();
  #worker: Worker | null = null;
  #idle: Timer | null = null;
  #last = 0;

  constructor(readSettings: () => WorkerSettings, note: (text: string) => void) {
    this.#readSettings = readSettings;
    this.#note = note;
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
      if (data.id === null) {
        this.#note(data.note);
        return;
      }
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
