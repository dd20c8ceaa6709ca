// Reading an upstream's error body: bounded in size and time, whatever the upstream does.

import { describe, expect, test } from "bun:test";
import {
  MAX_CONVERTED_BYTES,
  readErrorBody,
  readUpTo,
  repeatResponse,
} from "../../../src/gateway/upstream/answer.ts";
import { UpstreamFault } from "../../../src/lib/http1/types.ts";
import { ScriptedResponse } from "../scripted.ts";

/** A body that never comes. Cancelling it breaks the read, as a connection's end does. */
class StalledResponse extends ScriptedResponse {
  readonly #stalled = Promise.withResolvers<null>();

  override read(): Promise<null> {
    return this.#stalled.promise;
  }

  override cancel(): void {
    super.cancel();
    this.#stalled.reject(new UpstreamFault("cancelled", "cancelled", true));
  }
}

describe("an error's body", () => {
  test("that stalls is given up when the request's time is over", async () => {
    const response = new StalledResponse({ status: 500 });
    const late = Promise.withResolvers<string>();
    const timer = setTimeout(late.resolve, 5000, "late");
    expect(await Promise.race([readErrorBody(response, 1), late.promise])).toEqual(new Uint8Array(0));
    clearTimeout(timer);
    expect(response.cancelled).toBe(true);
  });

  test("that is cut counts as empty", async () => {
    const chunks = ["{", new UpstreamFault("cut", "closed", true)];
    expect(await readErrorBody(new ScriptedResponse({ status: 500, chunks }), 1000)).toHaveLength(0);
  });

  test("that is too long is not read to its end", async () => {
    const chunks = Array<string>(10).fill(" ".repeat(64 * 1024));
    const response = new ScriptedResponse({ status: 500, chunks });
    expect(await readErrorBody(response, 1000)).toHaveLength(256 * 1024);
    expect(response.cancelled).toBe(true);
  });
});

test("a large body waits for memory once, before more of it is read", async () => {
  const chunks = Array<string>(4).fill(" ".repeat(768 * 1024));
  const response = new ScriptedResponse({ chunks });
  const admitted = Promise.withResolvers<void>();
  let waits = 0;
  const reading = readUpTo(response, MAX_CONVERTED_BYTES, () => {
    waits += 1;
    return admitted.promise;
  });
  await new Promise(setImmediate);
  expect([waits, response.finished]).toEqual([1, false]);
  admitted.resolve();
  expect(await reading).toMatchObject({ hasMore: false });
  expect(waits).toBe(1);
});

test("a repeated error has the remaining time in whole seconds, and at least one", () => {
  const refused = { status: 503, dialect: "messages", fields: [], body: Buffer.from("{}") } as const;
  const candidate = { channel: Object.create(null), model: "m" };
  const waitOf = (ms: number) => repeatResponse(refused, candidate, ms).response.field("retry-after");
  expect([29_001, 1000, 1, 0].map(waitOf)).toEqual(["30", "1", "1", "1"]);
});
