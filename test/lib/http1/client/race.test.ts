// In which order the addresses of a host are tried, and when the next one is.

import { describe, expect, test } from "bun:test";
import { Addresses } from "../../../../src/lib/http1/client/addresses.ts";
import { Race } from "../../../../src/lib/http1/client/race.ts";

interface Run {
  readonly tried: string[];
  /** Resolves when all attempts have failed. */
  readonly failed: Promise<unknown>;
  readonly race: Race;
  readonly fail: (address: string, error: Error) => void;
  /** Resolves when this many were tried. */
  readonly triedAll: (count: number) => Promise<void>;
}

function start(addresses: readonly string[]): Run {
  const tried: string[] = [];
  const attempts = new Map<string, PromiseWithResolvers<void>>();
  const failed = Promise.withResolvers<unknown>();
  let more = Promise.withResolvers<void>();
  const race = new Race(addresses, {
    connect: (address) => {
      tried.push(address);
      const attempt = Promise.withResolvers<void>();
      attempts.set(address, attempt);
      more.resolve();
      more = Promise.withResolvers<void>();
      return attempt.promise;
    },
    failed: failed.resolve,
    isFinal: (error) => error instanceof Error && error.message === "no files",
  });
  return {
    tried,
    failed: failed.promise,
    race,
    fail: (address, error) => attempts.get(address)?.reject(error),
    triedAll: async (count) => {
      while (tried.length < count) await more.promise;
    },
  };
}

describe("a race over addresses", () => {
  test("tries the next address when one does not respond, up to the last", async () => {
    const began = performance.now();
    const { tried, triedAll, race } = start(["a", "b", "c"]);
    expect(tried).toEqual(["a"]);
    await triedAll(3);
    race.end();
    expect(tried).toEqual(["a", "b", "c"]);
    expect(performance.now() - began).toBeGreaterThanOrEqual(500);
  });

  test("tries the next address at once when one fails", async () => {
    const { tried, fail, race } = start(["a", "b", "c", "d"]);
    // Only promises have to run: no timer does.
    const passPromises = async (): Promise<void> => {
      for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
    };
    fail("a", new Error("refused"));
    await passPromises();
    expect(tried).toEqual(["a", "b"]);
    fail("b", new Error("unreachable"));
    await passPromises();
    race.end();
    expect(tried).toEqual(["a", "b", "c"]);
  });

  test("fails with the first error when all have failed, whatever their order", async () => {
    const { failed, triedAll, fail } = start(["a", "b"]);
    await triedAll(2);
    fail("b", new Error("unreachable"));
    fail("a", new Error("refused"));
    expect(await failed).toEqual(new Error("unreachable"));
  });

  test("ends with a failure that every address would share", async () => {
    const { tried, failed, fail } = start(["a", "b"]);
    fail("a", new Error("no files"));
    expect(await failed).toEqual(new Error("no files"));
    expect(tried).toEqual(["a"]);
  });

  test("tries nothing more after its end", async () => {
    const { tried, race, fail } = start(["a", "b"]);
    race.end();
    fail("a", new Error("refused"));
    await new Promise(setImmediate);
    expect(tried).toEqual(["a"]);
  });
});

describe("the addresses of a host", () => {
  test("are looked up once for all who ask at the same time, and again after they were forgotten", async () => {
    const addresses = new Addresses("localhost");
    const first = addresses.find();
    expect(addresses.find()).toBe(first);
    expect(await first).toContain("127.0.0.1");
    expect(addresses.find()).toBe(first);
    addresses.forget();
    expect(addresses.find()).not.toBe(first);
  });

  test("are itself, if it is an address", async () => {
    expect(await new Addresses("::1").find()).toEqual(["::1"]);
  });

  test("that cannot be found are looked up again", async () => {
    const addresses = new Addresses("no-such-name.invalid");
    const first = addresses.find();
    expect(
      await first.then(
        () => "found",
        () => "failed",
      ),
    ).toBe("failed");
    const second = addresses.find();
    expect(second).not.toBe(first);
    await second.catch(() => {});
  });
});
