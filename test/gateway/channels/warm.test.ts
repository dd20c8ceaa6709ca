// Which upstreams get connections when the gateway starts and after a reload, and what is prepared for them.

import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { loadPriceBook } from "../../../src/billing/prices.ts";
import { checkConfigText } from "../../../src/config/file/load.ts";
import { countConnections, keepChannelsWarm } from "../../../src/gateway/channels/warm.ts";
import type { Channels } from "../../../src/gateway/channels/channels.ts";
import { describeWithoutGateway } from "../../../src/gateway/channels/view.ts";
import { fetchWhole } from "../../../src/gateway/upstream/fetch.ts";
import { createClient } from "../../../src/lib/http1/client/client.ts";
import type { Origin } from "../../../src/lib/http/upstream.ts";
import { ZERO_USD } from "../../../src/lib/money.ts";

const DAY = 24 * 3_600_000;
const NOW = 100 * DAY;

interface Case {
  /** When each channel answered last, in days ago. */
  readonly used?: Readonly<Record<string, number>>;
  readonly settings?: Readonly<Record<string, object>>;
  readonly warm?: boolean;
  readonly occasion?: "start" | "reload";
}

function decide({ used = {}, settings = {}, warm = true, occasion = "start" }: Case): {
  warm: string[];
  expected: string[];
  /** Whose prices are read soon. */
  read: Set<string>;
} {
  const channel = (name: string) => ({
    platform: "messages",
    base_url: `https://${name}.test`,
    credential: "c",
    ...settings[name],
  });
  const config = {
    warm,
    channels: {
      first: channel("first"),
      second: { ...channel("second"), priority: 2 },
      other: channel("other"),
    },
    groups: {
      main: { platform: "messages", channels: ["second", "first"] },
      idle: { platform: "messages", channels: ["other"] },
    },
    keys: [{ name: "k", group: "main", secret: "sk-1234567890" }],
  };
  const { catalog } = checkConfigText(JSON.stringify(config), "/nonexistent/gateway.yaml", {});
  const seen = { warm: [] as string[], expected: [] as string[], read: new Set<string>() };
  const name = ({ host }: Origin): string => host.replace(".test", "");
  const client = {
    ...createClient(),
    keepWarm: (origins: Iterable<Origin>, expected: Iterable<Origin> = []) => {
      seen.warm = [...origins].map(name);
      seen.expected = [...expected].map(name);
    },
  };
  const lastAnswer: Channels["lastAnswer"] = (each) => {
    const days = used[each.name];
    return days === undefined ? 0 : NOW - days * DAY;
  };
  const book = loadPriceBook();
  const prices = {
    ...book,
    listModels: (provider: string) => {
      seen.read.add(provider);
      return book.listModels(provider);
    },
  };
  keepChannelsWarm({ catalog, client, prices, channels: { lastAnswer }, now: () => NOW }, occasion);
  return seen;
}

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.runAllTimers();
  jest.useRealTimers();
});

describe("connections when the gateway starts", () => {
  test.each<[string, Case, string[], string[]]>([
    [
      "of an unused gateway: the first channel of each key's group",
      {},
      ["first", "second", "other"],
      ["first"],
    ],
    [
      "of a used one: the channels of the last days, the last one first",
      { used: { other: 1, second: 3, first: 9 } },
      ["first", "second", "other"],
      ["other", "second"],
    ],
    [
      "not those that are disabled",
      { used: { first: 1, second: 1 }, settings: { second: { disabled: true } } },
      ["first", "other"],
      ["first"],
    ],
    [
      "not those on this machine without TLS",
      { used: { first: 1 }, settings: { first: { base_url: "http://127.0.0.1:11434" } } },
      ["second", "other"],
      [],
    ],
    ["none, if the config switches them off", { warm: false, used: { first: 1 } }, [], []],
    [
      "after a reload, none until a request uses one",
      { occasion: "reload", used: { first: 1 } },
      ["first", "second", "other"],
      [],
    ],
  ])("%s", (_, given, warm, expected) => {
    expect(decide(given)).toMatchObject({ warm, expected });
  });
});

describe("prices after the start", () => {
  test("are read of the channels that are expected to be used, and not during the start", () => {
    const { read } = decide({ used: { other: 1 }, settings: { first: { price_provider: "x-ai" } } });
    expect(read).toEqual(new Set());
    jest.advanceTimersByTime(1000);
    expect(read).toEqual(new Set(["anthropic"]));
  });

  test("are those of the provider, where it is known", () => {
    const { read } = decide({ used: { other: 1 }, settings: { other: { price_provider: "zai" } } });
    jest.advanceTimersByTime(1000);
    expect(read).toEqual(new Set(["zai"]));
  });

  test("are not read if no channel is kept warm", () => {
    const { read } = decide({ warm: false });
    jest.advanceTimersByTime(1000);
    expect(read).toEqual(new Set());
  });
});

test("the view of a channel has the connections to its upstream", async () => {
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("ok") });
  const client = createClient();
  try {
    const config = {
      channels: {
        a: { platform: "messages", base_url: `http://127.0.0.1:${server.port}`, credential: "c" },
        b: { platform: "messages", base_url: "http://127.0.0.1:1", credential: "c" },
      },
    };
    const { catalog } = checkConfigText(JSON.stringify(config), "/nonexistent/gateway.yaml", {});
    const deadlines = { connectMs: 5000, firstByteMs: 5000, idleMs: 5000 };
    const origin = { tls: false, host: "127.0.0.1", port: server.port ?? 0 };
    const request = { origin, method: "GET", target: "/", fields: [], body: null, deadlines };
    await fetchWhole(client, request, 1000);
    const views = describeWithoutGateway(catalog, () => ({ charged: ZERO_USD, byPlan: ZERO_USD }), NOW);
    expect(
      countConnections(views, { catalog, client }).map(({ name, connections }) => [name, connections]),
    ).toEqual([
      ["a", { open: 1, idle: 1 }],
      ["b", { open: 0, idle: 0 }],
    ]);
  } finally {
    client.close();
    await server.stop(true);
  }
});
