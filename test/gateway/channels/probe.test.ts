// When a channel is probed: not while a request has shown its state, and whatever the clock does.

import { afterAll, afterEach, expect, test } from "bun:test";
import { checkConfigText } from "../../../src/config/file/load.ts";
import { createChannels } from "../../../src/gateway/channels/channels.ts";
import { probeChannel, startProbes } from "../../../src/gateway/channels/probe.ts";
import { type Upstream, UpstreamFault } from "../../../src/lib/http/upstream.ts";
import { createClient } from "../../../src/lib/http1/client/client.ts";
import { ZERO_USD } from "../../../src/lib/money.ts";
import { makeTempFolder } from "../../harness/temp.ts";

const START = Date.parse("2026-11-20T10:00:00Z");
const HOUR = 3_600_000;

let now = START;
let probes = 0;
const folder = makeTempFolder();
const client = createClient();
const upstream = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: () => {
    probes += 1;
    return Response.json({ data: [] });
  },
});

afterEach(() => {
  probes = 0;
  now = START;
});
afterAll(async () => {
  client.close();
  await upstream.stop(true);
  folder.remove();
});

const observer = {
  notice: () => {},
  requestDone: () => {},
  streamOpened: () => {},
  streamClosed: () => {},
  limitNear: () => {},
};

const ledger = { channelDay: () => ({ charged: ZERO_USD, byPlan: ZERO_USD }) };

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await Bun.sleep(1);
}

/** How often the channel is probed by itself, when it has answered at START and probes begin at this time. */
async function countProbes(time: number, expected: number): Promise<number> {
  const config = {
    channels: { a: { platform: "messages", base_url: upstream.url.origin, credential: "xxxx", probe: "1h" } },
    groups: { g: { platform: "messages", channels: ["a"] } },
    keys: [{ name: "k", group: "g", secret: "sk-test" }],
  };
  const { catalog } = checkConfigText(JSON.stringify(config), folder.join("gateway.yaml"), {});
  const channels = createChannels({ catalog, observer, now: () => now, random: () => 0.5, ledger });
  const channel = catalog.channels.get("a")!;
  channels.reportAnswer({ channel, model: "m" }, 5, now);
  now = time;
  const context = { client, channels, observer, now: () => now };
  const running = startProbes(context);
  running.follow(catalog);
  // One by command, behind those that have begun.
  await probeChannel(channel, context);
  await until(() => probes > expected);
  running.stop();
  return probes - 1;
}

test("the gateway's own shortage is no failure of a probed channel", async () => {
  const config = {
    channels: { a: { platform: "messages", base_url: upstream.url.origin, credential: "xxxx" } },
  };
  const { catalog } = checkConfigText(JSON.stringify(config), folder.join("gateway.yaml"), {});
  const channels = createChannels({ catalog, observer, now: () => now, random: () => 0.5, ledger });
  const shortage = new UpstreamFault("shortage", "no files", false);
  const send: Upstream["send"] = (_, listener) => {
    queueMicrotask(() => listener.fail(shortage));
    return { reused: false, pause: () => {}, resume: () => {}, cancel: () => {} };
  };
  const context = { client: { ...client, send }, channels, observer, now: () => now };
  await probeChannel(catalog.channels.get("a")!, context);
  expect(channels.view(catalog, now)).toMatchObject([{ state: "unknown" }]);
});

test.each([
  { when: "right after an answer", time: START, expected: 0 },
  { when: "when the last answer is older than the interval", time: START + HOUR, expected: 1 },
  { when: "when the clock was set back since the last answer", time: START - HOUR, expected: 1 },
])("$when, a channel is probed $expected times", async ({ time, expected }) => {
  expect(await countProbes(time, expected)).toBe(expected);
});
