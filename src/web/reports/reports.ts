// Questions to the thread that reads the ledger. It starts with the first question and ends when nobody has asked for a
// while, because its sums take memory.

import type { Overview } from "../api.ts";
import type { OverviewQuery } from "./overview.ts";
import type { Answer, Question, WorkerSettings } from "./question.ts";

const IDLE_MS = 5 * 60_000;

export interface Reports {
  overview(query: OverviewQuery): Promise<Overview>;
  /** What `gateway ledger show` prints; null: no line has this id. */
  explain(request: string): Promise<readonly string[] | null>;
  close(): void;
}

type Result = Answer["result"];
type Wish = Question extends infer Each
  ? Each extends Question
    ? Omit<Each, "id" | keyof WorkerSettings>
    : never
  : never;

export function createReports(readSettings: () => WorkerSettings): Reports {
  const waiting = new Map<number, PromiseWithResolvers<Result>>();
  let worker: Worker | null = null;
  let idle: Timer | null = null;
  let last = 0;
  const end = (reason: string): void => {
    worker?.terminate();
    worker = null;
    for (const each of waiting.values()) each.reject(new Error(reason));
    waiting.clear();
  };
  const start = (): Worker => {
    const started = new Worker(locateWorker());
    // The gateway's process may end while it runs.
    started.unref();
    started.addEventListener("message", ({ data }: MessageEvent<Answer>) => {
      waiting.get(data.id)?.resolve(data.result);
      waiting.delete(data.id);
    });
    started.addEventListener("error", ({ message }) => end(`the ledger could not be read: ${message}`));
    return started;
  };
  const ask = (wish: Wish): Promise<Result> => {
    worker ??= start();
    if (idle !== null) clearTimeout(idle);
    idle = setTimeout(() => end("the console was closed"), IDLE_MS).unref();
    last += 1;
    const reply = Promise.withResolvers<Result>();
    waiting.set(last, reply);
    worker.postMessage({ ...wish, ...readSettings(), id: last });
    return reply.promise;
  };
  return {
    overview: async (query) => {
      const result = await ask({ kind: "overview", query });
      if (result.kind === "overview") return result.overview;
      throw new Error(result.kind === "failed" ? result.error : "the thread answered something else");
    },
    explain: async (request) => {
      const result = await ask({ kind: "explain", request });
      if (result.kind === "explain") return result.lines;
      throw new Error(result.kind === "failed" ? result.error : "the thread answered something else");
    },
    close: () => {
      if (idle !== null) clearTimeout(idle);
      end("the gateway stops");
    },
  };
}

/** In the executable, every module is in one file, and the worker is a second one with the name of its source. */
function locateWorker(): URL {
  const isSource = import.meta.url.endsWith("/reports/reports.ts");
  return new URL(isSource ? "./worker.ts" : "./web/reports/worker.js", import.meta.url);
}
