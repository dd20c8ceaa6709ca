import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import type { ChannelDay } from "../../../src/billing/ledger/sums/sums.ts";
import type { Catalog } from "../../../src/config/catalog.ts";
import { checkConfigText } from "../../../src/config/file/load.ts";
import { type Channels, createChannels, type RequestEnd } from "../../../src/gateway/channels/channels.ts";
import { findMatch, type Match } from "../../../src/gateway/intake/match.ts";
import { blame, type Failure } from "../../../src/gateway/upstream/failure-rules.ts";
import { UpstreamFault } from "../../../src/lib/http/upstream.ts";
import { ZERO_USD } from "../../../src/lib/money.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";

const START = Date.parse("2026-11-20T10:00:00Z");
const SECOND = 1000;
const MINUTE = 60 * SECOND;

type Section = Record<string, unknown>;

let folder: TempFolder;
let now: number;
let notices: string[];
/** The next random numbers; one half after the last. */
let lots: number[];
beforeEach(() => {
  folder = makeTempFolder();
  now = START;
  notices = [];
  lots = [];
});
afterEach(() => folder.remove());

const channelDay = (): ChannelDay => ({ charged: ZERO_USD, byPlan: ZERO_USD });

interface Book {
  readonly catalog: Catalog;
  readonly channels: Channels;
  readonly names: (asked?: Asked) => string[];
  readonly fail: (name: string, failure: Failure, model?: string) => void;
  readonly answer: (name: string, model?: string) => void;
  readonly end: (name: string, how: RequestEnd["how"]) => void;
  readonly state: (name: string) => string;
}

interface Asked {
  readonly model?: string;
  readonly session?: string;
}

function makeCatalog(sections: Readonly<Record<string, Section>>, more: Section = {}): Catalog {
  const config = {
    timezone: "UTC",
    ...more,
    channels: Object.fromEntries(
      Object.entries(sections).map(([name, more]) => [
        name,
        { platform: "messages", base_url: "http://127.0.0.1:9", credential: "xxxx", ...more },
      ]),
    ),
    groups: { g: { platform: "messages", channels: Object.keys(sections) } },
    keys: [{ name: "k", group: "g", secret: "sk-test" }],
  };
  return checkConfigText(JSON.stringify(config), folder.join("gateway.yaml"), {}).catalog;
}

function open(sections: Readonly<Record<string, Section>>): Book {
  const catalog = makeCatalog(sections);
  const observer = { notice: (_: string, text: string) => void notices.push(text) };
  const random = (): number => lots.shift() ?? 0.5;
  const channels = createChannels({ catalog, observer, now: () => now, random, ledger: { channelDay } });
  const route = (model = "m"): Match => findMatch(catalog.keys.get("k")!, model);
  const candidate = (name: string, model?: string) =>
    route(model).candidates.find(({ channel }) => channel.name === name)!;
  const asker = ({ session }: Asked) => ({
    client: { session },
    body: { plain: null, scan: null },
  });
  return {
    catalog,
    channels,
    names: (asked = {}) => {
      const { candidates } = channels.choose({ ...asker(asked), ...route(asked.model) }, now);
      return candidates.map(({ channel }) => channel.name);
    },
    end: (name, how) => channels.reportEnd(catalog.channels.get(name)!, { how, problem: "broke off" }, now),
    fail: (name, failure, model) => {
      channels.reportStart(candidate(name, model), now);
      channels.reportFailure(candidate(name, model), failure, now);
    },
    answer: (name, model) => {
      channels.reportStart(candidate(name, model), now);
      channels.reportAnswer(candidate(name, model), 100, now);
    },
    state: (name) => channels.view(catalog, now).find((view) => view.name === name)!.state,
  };
}

const status = (code: number, waitMs: number | null = null): Failure => ({
  ...blame("a", code, "said"),
  waitMs,
});
const fault = (kind: UpstreamFault["kind"]): Failure => ({
  kind: "fault",
  channel: "a",
  fault: new UpstreamFault(kind, "said", false),
});

const TWO = { a: { priority: 1 }, b: { priority: 2 } };

describe("the order", () => {
  test("is by priority", () => {
    expect(open({ c: { priority: 3 }, a: { priority: 1 }, b: { priority: 2 } }).names()).toEqual([
      "a",
      "b",
      "c",
    ]);
  });

  test("is random by weight if priorities are equal", () => {
    const { names } = open({ a: { weight: 3 }, b: { weight: 1 }, last: { priority: 2 } });
    let seed = 1;
    const firsts = { a: 0, b: 0 };
    for (let count = 0; count < 4000; count += 1) {
      lots = Array.from(
        { length: 3 },
        () => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) / 2 ** 32,
      );
      const order = names({ session: `s${count}` });
      expect(order[2]).toBe("last");
      firsts[order[0] === "a" ? "a" : "b"] += 1;
    }
    expect(firsts.a / firsts.b).toBeGreaterThan(2.6);
    expect(firsts.a / firsts.b).toBeLessThan(3.4);
  });

  test("leaves out channels that do not serve the model", () => {
    expect(open({ a: { models: ["x-*"] }, b: {} }).names({ model: "y" })).toEqual(["b"]);
  });
});

describe("a conversation", () => {
  const settle = ({ catalog, channels }: Book, name: string, session: string, model = "m"): void => {
    const route = findMatch(catalog.keys.get("k")!, model);
    const asker = { ...route, client: { session }, body: { plain: null, scan: null } };
    const choice = channels.choose(asker, now);
    const candidate = route.candidates.find(({ channel }) => channel.name === name)!;
    channels.keepConversation(choice, candidate, asker);
  };

  test("stays with the channel that responded to it", () => {
    const book = open({ a: {}, b: {} });
    settle(book, "b", "s");
    for (const lot of [0.01, 0.5, 0.99]) {
      lots = [lot, 1 - lot];
      expect(book.names({ session: "s" })[0]).toBe("b");
    }
  });

  test("that moved to the second channel stays there when the first is available again", () => {
    const book = open(TWO);
    book.fail("a", fault("connect"));
    settle(book, "b", "s");
    book.answer("a");
    expect(book.names({ session: "s" })).toEqual(["b", "a"]);
    expect(book.names({ session: "other" })).toEqual(["a", "b"]);
  });

  test("leaves a channel only if it is unavailable", () => {
    const book = open({ a: {}, b: {} });
    settle(book, "b", "s");
    book.fail("b", status(529));
    expect(book.names({ session: "s" })).toEqual(["a"]);
    settle(book, "a", "s");
    now += MINUTE;
    book.answer("b");
    expect(book.names({ session: "s" })[0]).toBe("a");
  });

  test("with several models has a channel for each of them", () => {
    const book = open({ a: { priority: 1 }, b: { priority: 2 } });
    settle(book, "a", "s", "opus");
    book.fail("a", status(429, MINUTE), "haiku");
    settle(book, "b", "s", "haiku");
    expect(book.names({ session: "s", model: "opus" })).toEqual(["a", "b"]);
    now += 2 * MINUTE;
    expect(book.names({ session: "s", model: "haiku" })).toEqual(["b", "a"]);
  });
});

describe("a failure starts a cooldown", () => {
  test("for one model if only that is rate limited", () => {
    const { names, fail, answer, state } = open(TWO);
    fail("a", status(429, MINUTE), "opus");
    expect(names({ model: "opus" })).toEqual(["b"]);
    expect(names({ model: "haiku" })).toEqual(["a", "b"]);
    expect(state("a")).toBe("resting");
    now += SECOND;
    answer("a", "haiku");
    expect(state("a")).toBe("degraded");
    expect(names({ model: "opus" })).toEqual(["b"]);
  });

  test.each<[string, Failure, string]>([
    ["a refused credential", status(401), "unavailable"],
    ["no credit", status(402), "unavailable"],
    ["no connection", fault("connect"), "unavailable"],
    ["no trust", fault("tls"), "unavailable"],
    ["no answer in time", fault("first_byte_timeout"), "resting"],
    ["overload", status(529), "resting"],
    ["unavailability", status(503), "resting"],
  ])("at once: %s", (_, failure, expected) => {
    const { names, fail, state, channels, catalog } = open(TWO);
    fail("a", failure);
    expect(names()).toEqual(["b"]);
    expect(state("a")).toBe(expected);
    expect(channels.view(catalog, now)[0]).toMatchObject({ since: "2026-11-20T10:00:00.000Z" });
    expect(notices).toHaveLength(1);
  });

  test("and its state is shown until a response has come", () => {
    const { fail, answer, state } = open(TWO);
    fail("a", fault("connect"));
    now += 10 * MINUTE;
    expect(state("a")).toBe("unavailable");
    answer("a");
    expect(state("a")).toBe("available");
  });
});

describe("a trial", () => {
  test("one request tries the channel, and others use other channels until it has a result", () => {
    const { names, channels, catalog, fail, answer } = open(TWO);
    const [first] = findMatch(catalog.keys.get("k")!, "m").candidates;
    fail("a", fault("connect"));
    now += 2 * SECOND;
    expect(names()).toEqual(["a", "b"]);
    channels.reportStart(first!, now);
    expect(names()).toEqual(["b"]);
    channels.reportLeft(first!);
    expect(names()).toEqual(["a", "b"]);
    channels.reportStart(first!, now);
    answer("a");
    expect(names()).toEqual(["a", "b"]);
  });

  test("if no channel is left, those with a guessed cooldown are tried", () => {
    const { names, fail } = open(TWO);
    fail("a", fault("connect"));
    fail("b", status(429, MINUTE));
    expect(names()).toEqual(["a"]);
    fail("a", fault("connect"));
    expect(names()).toEqual(["a"]);
  });
});

describe("no channel is left", () => {
  test("the error names each channel's reason and when to retry", () => {
    const { names, fail, channels, catalog } = open(TWO);
    fail("a", status(429, 30 * SECOND));
    fail("b", status(429, 20 * SECOND));
    expect(names()).toEqual([]);
    const error = channels.explainNone(findMatch(catalog.keys.get("k")!, "m"), now);
    expect(error).toMatchObject({ code: "unavailable", status: 503, retryAfterSeconds: 20 });
    expect(error.message).toContain('"a" is rate limited; "b" is rate limited.');
    // What an upstream said to one client is not for the others.
    expect(error.message).not.toContain("said");
  });

  test("a channel with a running trial can be retried soon, however long its cooldown was", () => {
    const { fail, channels, catalog, names } = open({ a: {} });
    const route = findMatch(catalog.keys.get("k")!, "m");
    for (let count = 0; count < 9; count += 1) fail("a", fault("connect"));
    channels.reportStart(route.candidates[0]!, now);
    expect(names()).toEqual([]);
    expect(channels.explainNone(route, now).retryAfterSeconds).toBe(2);
  });

  test("retry-after is never hours, because clients would wait", () => {
    const { fail, channels, catalog } = open({ a: {} });
    fail("a", status(429, 30 * MINUTE));
    expect(channels.explainNone(findMatch(catalog.keys.get("k")!, "m"), now).retryAfterSeconds).toBe(60);
  });
});

describe("by command", () => {
  test("a channel is disabled, and enabled again without cooldowns", () => {
    const { names, channels, catalog, fail, state } = open(TWO);
    const a = catalog.channels.get("a")!;
    fail("a", status(429, MINUTE));
    channels.setDisabled(a, true, now);
    expect([state("a"), names()]).toEqual(["disabled", ["b"]]);
    channels.setDisabled(a, false, now);
    expect(names()).toEqual(["a", "b"]);
  });

  test("a disabled channel is not tried even if no other is left", () => {
    const { names, channels, catalog } = open({ a: {} });
    channels.setDisabled(catalog.channels.get("a")!, true, now);
    expect(names()).toEqual([]);
  });
});

describe("a probe", () => {
  test("that succeeds ends a guessed cooldown, but no named one", () => {
    const { names, channels, catalog, fail, state } = open(TWO);
    const a = catalog.channels.get("a")!;
    fail("a", status(401));
    channels.reportProbe(a, null, now);
    expect([state("a"), names()]).toEqual(["available", ["a", "b"]]);
    fail("a", status(429, MINUTE));
    channels.reportProbe(a, null, now);
    expect(names()).toEqual(["b"]);
  });

  test("that fails starts a cooldown and does not count as a request", () => {
    const { names, channels, catalog, state } = open(TWO);
    channels.reportProbe(catalog.channels.get("a")!, status(401), now);
    expect([state("a"), names()]).toEqual(["unavailable", ["b"]]);
    expect(channels.view(catalog, now)[0]).toMatchObject({ requests_hour: 0, errors_hour: 0 });
  });
});

describe("the channel view", () => {
  test("is unknown before the first request", () => {
    const { state, answer } = open(TWO);
    expect(state("a")).toBe("unknown");
    answer("a");
    expect(state("a")).toBe("available");
  });

  test("is degraded while a fifth of the last minutes' requests failed", () => {
    const { state, answer, fail } = open(TWO);
    for (let count = 0; count < 8; count += 1) answer("a");
    fail("a", status(500));
    answer("a");
    expect(state("a")).toBe("available");
    fail("a", status(500));
    answer("a");
    fail("a", status(500));
    answer("a");
    expect(state("a")).toBe("degraded");
    now += 11 * MINUTE;
    expect(state("a")).toBe("available");
  });

  test("shows success, latency and the hour in steps", () => {
    const { channels, catalog, answer, fail } = open(TWO);
    for (let count = 0; count < 3; count += 1) answer("a");
    fail("a", status(500));
    const [view] = channels.view(catalog, now);
    expect(view).toMatchObject({
      success_rate: 0.75,
      latency_ms: 100,
      latency_p95_ms: 100,
      requests_hour: 4,
      errors_hour: 1,
    });
    expect(view!.hour).toHaveLength(12);
    expect(view!.hour.at(-1)).toEqual({ requests: 4, errors: 1 });
    now += 24 * 60 * MINUTE;
    expect(channels.view(catalog, now)[0]).toMatchObject({
      success_rate: null,
      requests_hour: 0,
    });
  });

  test("counts a broken response as one request and one error", () => {
    const { channels, catalog, answer, end } = open(TWO);
    answer("a");
    end("a", "cut");
    expect(channels.view(catalog, now)[0]).toMatchObject({ requests_hour: 1, errors_hour: 1 });
  });
});

test("streams that began long ago and break now do not make the success rate negative", () => {
  const { channels, catalog, answer, end } = open(TWO);
  for (let count = 0; count < 3; count += 1) answer("a");
  now += 30 * MINUTE;
  answer("a");
  for (let count = 0; count < 3; count += 1) end("a", "cut");
  expect(channels.view(catalog, now)[0]).toMatchObject({ success_rate: 0, errors_hour: 3 });
});

describe("responses that break off after their beginning", () => {
  const cut = ({ answer, end }: Book, times: number): void => {
    for (let count = 0; count < times; count += 1) {
      answer("a");
      end("a", "cut");
    }
  };

  test("start a cooldown with the third in a row, and other channels are tried first", () => {
    const book = open(TWO);
    cut(book, 2);
    expect([book.state("a"), book.names()]).toEqual(["degraded", ["a", "b"]]);
    cut(book, 1);
    expect([book.state("a"), book.names()]).toEqual(["resting", ["b"]]);
    expect(notices).toEqual([
      'channel "a" is resting: it broke off its response: its last responses were incomplete',
    ]);
    now += SECOND;
    expect(book.names()).toEqual(["a", "b"]);
  });
});

describe("a restart", () => {
  test("keeps cooldowns, disabled channels and the last hour", () => {
    const before = open(TWO);
    before.fail("a", status(429, MINUTE));
    before.channels.setDisabled(before.catalog.channels.get("b")!, true, now);
    before.channels.close();
    now += 10 * SECOND;
    const after = open(TWO);
    expect(after.names()).toEqual([]);
    expect([after.state("a"), after.state("b")]).toEqual(["resting", "disabled"]);
    expect(after.channels.view(after.catalog, now)[0]).toMatchObject({
      requests_hour: 1,
      since: "2026-11-20T10:00:00.000Z",
    });
  });

  test("keeps a channel disabled, however soon after the command the gateway was killed", () => {
    const before = open(TWO);
    before.channels.setDisabled(before.catalog.channels.get("a")!, true, now);
    const after = open(TWO);
    expect(after.names()).toEqual(["b"]);
    after.channels.setDisabled(after.catalog.channels.get("a")!, false, now);
    expect(open(TWO).names()).toEqual(["a", "b"]);
  });

  test("forgets what it knew about another upstream under the same name", () => {
    const before = open(TWO);
    before.fail("a", status(401));
    before.channels.close();
    expect(open({ ...TWO, a: { credential: "yyyy" } }).names()).toEqual(["a", "b"]);
    before.channels.retain(makeCatalog({ ...TWO, a: { base_url: "http://127.0.0.1:10" } }));
    expect(before.names()).toEqual(["a", "b"]);
  });

  test("ignores results of requests that still go to the former upstream", () => {
    const { names, channels, catalog, state } = open(TWO);
    const [old] = findMatch(catalog.keys.get("k")!, "m").candidates;
    channels.reportStart(old!, now);
    channels.retain(makeCatalog({ ...TWO, a: { credential: "yyyy" } }));
    channels.reportFailure(old!, status(401), now);
    channels.reportProbe(old!.channel, status(401), now);
    expect([state("a"), names()]).toEqual(["unknown", ["a", "b"]]);
  });

  test("keeps that the name was disabled by command", () => {
    const book = open(TWO);
    book.channels.setDisabled(book.catalog.channels.get("a")!, true, now);
    const changed = makeCatalog({ ...TWO, a: { credential: "yyyy" } });
    book.channels.retain(changed);
    expect(book.names()).toEqual(["b"]);
    expect(book.channels.view(changed, now)[0]).toMatchObject({ state: "disabled" });
  });

  test.each(["", "{", '{"v":2}', '{"v":1,"channels":[{"name":"a"}]}'])(
    "works without a memory file that it can read: %p",
    (text) => {
      writeFileSync(folder.join("ledger.jsonl.channels.json"), text);
      expect(open(TWO).names()).toEqual(["a", "b"]);
    },
  );
});
