// The live feed: what each open page gets, and what is kept for a page that reads nothing.

import { afterEach, beforeEach, expect, spyOn, test } from "bun:test";
import { FOLLOWS_NOTHING } from "../../src/gateway/control/console.ts";
import { createActivity } from "../../src/gateway/observe/activity.ts";
import type { RequestRecord } from "../../src/gateway/observe/observer.ts";
import { Fields } from "../../src/lib/http/fields.ts";
import type { Exchange } from "../../src/lib/http/exchange.ts";
import type { LiveEvent } from "../../src/web/api.ts";
import { createLive, type Live } from "../../src/web/live.ts";
import { type InsideGateway, makeConfig, startGatewayHere } from "../harness/gateway.ts";

let gateway: InsideGateway;
let live: Live;
beforeEach(() => {
  gateway = startGatewayHere({ config: makeConfig({ url: "http://127.0.0.1:9" }) });
  live = createLive({
    gateway: gateway.running.gateway,
    activity: createActivity(Date.now),
    port: () => gateway.port,
    configPath: null,
    follow: FOLLOWS_NOTHING,
  });
});
afterEach(async () => {
  live.close();
  await gateway.stop();
});

interface OpenPage {
  readonly events: LiveEvent[];
  /** Resolves at the next sign without data. */
  readonly nextSign: () => Promise<void>;
  /** Resolves once an event has what is looked for. */
  readonly until: (has: (event: LiveEvent) => boolean) => Promise<LiveEvent>;
  /** It reads no more, and then everything. */
  readonly stopReading: () => void;
  readonly readAgain: () => void;
  readonly isEnded: () => boolean;
}

/** When its browser leaves: before the page opens, or while it gets its first event. Without one, it stays. */
type Leaving = "before" | "first event" | null;

/** The exchange of a browser, which reads only if the test says so. */
function openPage(leaving: Leaving = null): OpenPage {
  const events: LiveEvent[] = [];
  let wake = Promise.withResolvers<void>();
  let sign = Promise.withResolvers<void>();
  let drained: PromiseWithResolvers<void> | null = null;
  let ended = false;
  let gone = leaving === "before";
  let listen = (): void => {};
  const exchange: Exchange = {
    method: "GET",
    target: "/console/api/live",
    fields: new Fields(),
    field: () => undefined,
    readBody: () => Promise.reject(new Error("it has no body")),
    answer: () => {},
    begin: () => {},
    write: (chunk) => {
      if (leaving === "first event") {
        gone = true;
        listen();
        return false;
      }
      const text = Buffer.from(chunk).toString();
      if (text.startsWith("data: ")) events.push(JSON.parse(text.slice("data: ".length)));
      else {
        sign.resolve();
        sign = Promise.withResolvers();
      }
      wake.resolve();
      wake = Promise.withResolvers();
      return drained === null;
    },
    flush: () => {},
    onceSent: (listener) => void (drained?.promise ?? Promise.resolve()).then(listener),
    addReplyFields: () => {},
    end: () => {
      ended = true;
    },
    reset: () => {},
    acceptWebSocket: () => {},
    begun: true,
    get gone() {
      return gone;
    },
    onGone: (listener) => {
      if (gone) listener();
      else listen = listener;
    },
  };
  live.open(exchange, () => true);
  return {
    events,
    nextSign: () => sign.promise,
    until: async (has) => {
      for (;;) {
        const found = events.find(has);
        if (found !== undefined) return found;
        await wake.promise;
      }
    },
    stopReading: () => {
      drained = Promise.withResolvers();
    },
    readAgain: () => {
      drained?.resolve();
      drained = null;
    },
    isEnded: () => ended,
  };
}

const recordOf = (index: number): RequestRecord => ({
  id: `req_${index}`,
  time: 0,
  key: "laptop",
  group: "claude",
  model: "m",
  channel: "main",
  client: null,
  endpoint: "/v1/messages",
  status: 200,
  outcome: "complete",
  firstByteMs: 5,
  durationMs: 9,
  usage: null,
  chargeUsd: null,
  problem: null,
});

const says = (text: string) => (event: LiveEvent) =>
  event.notices?.some((notice) => notice.text === text) ?? false;

test("a page that stops reading gets nothing until it reads again, and then the newest", async () => {
  const fast = openPage();
  const slow = openPage();
  slow.stopReading();
  live.observer.notice("note", "one");
  await Promise.all([fast.until(says("one")), slow.until(says("one"))]);
  const before = slow.events.length;
  live.observer.notice("note", "two");
  await fast.until(says("two"));
  for (let index = 0; index < 1000; index += 1) live.observer.requestDone(recordOf(index));
  for (let index = 0; index < 1000; index += 1) live.observer.notice("note", `notice ${index}`);
  await fast.until(says("notice 999"));
  expect(slow.events).toHaveLength(before);
  slow.readAgain();
  const { requests = [], notices = [] } = await slow.until(says("notice 999"));
  expect([requests.length, requests.at(-1)?.id]).toEqual([200, "req_999"]);
  expect([notices.length, notices.at(-1)?.text]).toEqual([50, "notice 999"]);
});

test("a page gets a sign while nothing happens, so that it can tell that from a gateway that is stopped", async () => {
  const page = openPage();
  await page.nextSign();
  const { length } = page.events;
  await page.nextSign();
  expect(page.events).toHaveLength(length);
});

test("a page hears of a changed config, once", async () => {
  const page = openPage();
  gateway.running.reload({ ...gateway.running.gateway.catalog });
  const { revision } = await page.until((event) => event.revision === 1);
  expect(revision).toBe(1);
  live.observer.notice("note", "later");
  await page.until(says("later"));
  expect(page.events.filter((event) => event.revision !== undefined)).toHaveLength(2);
});

test("a new page gets the last fifty notices", () => {
  for (let index = 0; index < 60; index += 1) live.observer.notice("warning", `notice ${index}`);
  const [first] = openPage().events;
  expect(first?.notices?.map(({ text }) => text)).toEqual(
    Array.from({ length: 50 }, (_, index) => `notice ${index + 10}`),
  );
});

test("the oldest of too many pages are ended, one for each new page, and all are at the end", () => {
  const pages = Array.from({ length: 35 }, () => openPage());
  expect(pages.map((page) => page.isEnded())).toEqual(pages.map((_, index) => index < 3));
  live.close();
  expect(pages.every((page) => page.isEnded())).toBe(true);
});

test.each(["before", "first event"] as const)(
  "nothing is collected for a browser that has left: %s",
  (leaving) => {
    const [started, stopped] = [spyOn(globalThis, "setInterval"), spyOn(globalThis, "clearInterval")];
    try {
      openPage(leaving);
      expect(started.mock.calls.length).toBe(stopped.mock.calls.length);
      // The next page starts the collection as the first one would.
      openPage();
      expect(started.mock.calls.length).toBe(stopped.mock.calls.length + 1);
    } finally {
      started.mockRestore();
      stopped.mockRestore();
    }
  },
);

test("a browser that has left before its page opens ends no other page", () => {
  const pages = Array.from({ length: 32 }, () => openPage());
  openPage("before");
  expect(pages.some((page) => page.isEnded())).toBe(false);
});
