// Asks the thread that has the ledger's table. The thread ends when it is idle.

import { statSync } from "node:fs";
import { locateWorker } from "../../lib/files/platform.ts";
import { Refusal } from "../../lib/refusal.ts";
import type { Gateway } from "../gateway.ts";
import type { Document, ReportName } from "./reports.ts";
import type { ReportQuestion } from "./worker.ts";

const IDLE_MS = 30_000;
const FOLLOW_MS = 60_000;
const MANY_BYTES = 1 << 20;

export class ReportThread {
  readonly #gateway: Gateway;
  readonly #waiting = new Map<number, PromiseWithResolvers<MessageEvent["data"]>>();
  #worker: Worker | null = null;
  #idle: Timer | null = null;
  #last = 0;
  #following: Timer | null = null;
  #followed = 0;

  constructor(gateway: Gateway) {
    this.#gateway = gateway;
  }

  /** Reads new lines as they come: a command then has few to read. */
  keepCurrent(): void {
    this.#followed = this.#measure();
    this.#following = setInterval(() => this.#follow(), FOLLOW_MS).unref();
  }

  ask<Name extends ReportName>(name: Name, input: ReportQuestion["input"]): Promise<Document<Name>>;
  ask(name: string | null, input: ReportQuestion["input"]): Promise<object>;
  ask(name: string | null, input: ReportQuestion["input"]): Promise<MessageEvent["data"]> {
    this.#worker ??= this.#start();
    this.#stay();
    this.#last += 1;
    const reply = Promise.withResolvers<MessageEvent["data"]>();
    this.#waiting.set(this.#last, reply);
    const { ledger, zone } = this.#gateway.catalog;
    const place = { ledgerPath: ledger.path, timezone: zone.name };
    this.#worker.postMessage({
      ...place,
      id: this.#last,
      name,
      input,
    } satisfies ReportQuestion);
    return reply.promise;
  }

  #follow(): void {
    const size = this.#measure();
    if (Math.abs(size - this.#followed) < MANY_BYTES) return;
    this.#followed = size;
    // If it fails, the next report says why.
    this.ask(null, {}).catch(() => {});
  }

  #measure(): number {
    return statSync(this.#gateway.catalog.ledger.path, { throwIfNoEntry: false })?.size ?? 0;
  }

  close(): void {
    if (this.#following !== null) clearInterval(this.#following);
    this.#end(new Refusal("The gateway stops.", 1));
  }

  #end(reason: Error): void {
    if (this.#idle !== null) clearTimeout(this.#idle);
    this.#worker?.terminate();
    this.#worker = null;
    for (const each of this.#waiting.values()) each.reject(reason);
    this.#waiting.clear();
  }

  #stay(): void {
    if (this.#idle !== null) clearTimeout(this.#idle);
    this.#idle = setTimeout(() => {
      if (this.#waiting.size === 0) this.#end(new Refusal("Nobody has asked for a while.", 1));
    }, IDLE_MS).unref();
  }

  #start(): Worker {
    const worker = new Worker(locateWorker(import.meta.url, "gateway/api"));
    worker.unref();
    worker.addEventListener("message", ({ data }: MessageEvent) => {
      if ("note" in data) {
        this.#gateway.observer.notice("warning", data.note);
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
