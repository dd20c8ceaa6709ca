// Questions to the thread that owns the index of the ledger. It is started when somebody asks, or when the index lacks
// many lines, and ends when neither has happened for a while, because it takes memory.

import { statSync } from "node:fs";
import { Refusal } from "../../lib/refusal.ts";
import { everySecond } from "../../lib/time/heartbeat.ts";
import type { Question, QuestionName, Questions } from "./question.ts";
import { locateWorker } from "../../lib/files/platform.ts";

const IDLE_MS = 30_000;
/** A question reads so much in a moment: less than this waits for one. */
const MANY_BYTES = 1 << 20;
/** A ledger that grows by more in a second has traffic that needs the machine. The index waits for a lull, or a question. */
const DENSE_BYTES = 256 << 10;

type Settings = Pick<Question<QuestionName>, "ledgerPath" | "timezone">;

export class Reports {
  readonly #readSettings: () => Settings;
  readonly #note: (text: string) => void;
  readonly #waiting = new Map<number, PromiseWithResolvers<MessageEvent["data"]>>();
  #worker: Worker | null = null;
  #idle: Timer | null = null;
  #last = 0;
  #endWatch = (): void => {};

  /** `note` gets a line for the log when the index cannot be used. */
  constructor(readSettings: () => Settings, note: (text: string) => void) {
    this.#readSettings = readSettings;
    this.#note = note;
  }

  ask<Name extends QuestionName>(name: Name, by: Questions[Name]["by"]): Promise<Questions[Name]["answer"]> {
    this.#worker ??= this.#start();
    this.#stay();
    this.#last += 1;
    const reply = Promise.withResolvers<MessageEvent["data"]>();
    this.#waiting.set(this.#last, reply);
    const question: Question<Name> = { ...this.#readSettings(), id: this.#last, name, by };
    this.#worker.postMessage(question);
    return reply.promise;
  }

  /** Brings the index up to date from time to time, beside no dense traffic. */
  keepFollowing(): void {
    const measure = (): number =>
      statSync(this.#readSettings().ledgerPath, { throwIfNoEntry: false })?.size ?? 0;
    let [seen, followed] = [measure(), 0];
    this.#endWatch = everySecond(() => {
      const before = seen;
      seen = measure();
      if (!isWorthFollowing({ before, seen, followed })) return;
      followed = seen;
      // The next question says why it failed.
      this.ask("follow", null).catch(() => {});
    });
  }

  close(): void {
    this.#endWatch();
    this.#end(new Refusal("The gateway stops.", 1));
  }

  #end(reason: Error): void {
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
      if (this.#waiting.size === 0) this.#end(new Refusal("Nobody has asked for a while.", 1));
    }, IDLE_MS).unref();
  }

  #start(): Worker {
    const worker = new Worker(locateWorker(import.meta.url, "web/reports"));
    // The gateway's process may end while it runs.
    worker.unref();
    worker.addEventListener("message", ({ data }: MessageEvent) => {
      if ("note" in data) {
        this.#note(data.note);
        return;
      }
      const reply = this.#waiting.get(data.id);
      this.#waiting.delete(data.id);
      if ("error" in data)
        reply?.reject(data.isRefusal === true ? new Refusal(data.error, 2) : new Error(data.error));
      else reply?.resolve(data.answer);
      this.#stay();
    });
    worker.addEventListener("error", ({ message }) =>
      this.#end(new Error(`the ledger could not be read: ${message}`)),
    );
    return worker;
  }
}

/** In bytes: the ledger's size a second ago, now, and when the index was followed. After a rotation it is smaller. */
function isWorthFollowing(sizes: {
  readonly before: number;
  readonly seen: number;
  readonly followed: number;
}): boolean {
  const { before, seen, followed } = sizes;
  return Math.abs(seen - followed) >= MANY_BYTES && Math.abs(seen - before) <= DENSE_BYTES;
}
