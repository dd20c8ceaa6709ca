// Two channels for every platform, the second in case the first fails. Each has
// its own upstream, so that a test sees which channel got a request.

import { onTestFinished } from "bun:test";
import { PLATFORMS } from "../../src/config/schema.ts";
import { startDemoUpstream, type DemoUpstream } from "../harness/upstreams/demo-upstream.ts";
import type { ChannelView } from "../../src/gateway/channels/view.ts";
import type { RequestRecord } from "../../src/gateway/observe/observer.ts";
import { type InsideGateway, makeConfig, type Platform, startGatewayHere } from "../harness/gateway.ts";
import { type Exchanged, rawRequest, type RequestLines } from "../harness/raw.ts";
import type { TempFolder } from "../harness/temp.ts";
import { flushLedger, type Line } from "./world.ts";

type Section = Record<string, unknown>;

export interface PairOptions {
  /** Settings for the channels of the first and the second upstream. */
  readonly a?: Section;
  readonly b?: Section;
  readonly config?: Section;
  readonly folder?: TempFolder;
}

export interface Outcome {
  readonly answer: Exchanged;
  readonly record: RequestRecord;
  readonly line: Line | undefined;
  /** All requests that each upstream has got. */
  readonly sent: readonly [a: number, b: number];
}

export interface Pair {
  readonly a: DemoUpstream;
  readonly b: DemoUpstream;
  readonly gateway: InsideGateway;
  readonly ask: (request: RequestLines) => Promise<Outcome>;
  /** The view of a channel: `messages-a` and so on. */
  readonly view: (name: string) => ChannelView;
}

/** Starts two upstreams and a gateway, which stop when the test has finished. */
export function openPair(options: PairOptions = {}): Pair {
  const [a, b] = [startDemoUpstream(), startDemoUpstream()];
  const channel = (platform: Platform, url: string, more: Section = {}): Section => ({
    platform,
    base_url: url,
    credential: `credential-of-${url}`,
    timeouts: { connect: "60s", first_byte: "60s", idle: "60s" },
    ...more,
  });
  const channels = Object.fromEntries(
    PLATFORMS.flatMap((platform) => [
      [`${platform}-a`, channel(platform, a.url, options.a)],
      [`${platform}-b`, channel(platform, b.url, { priority: 2, ...options.b })],
    ]),
  );
  const groups = Object.fromEntries(
    PLATFORMS.map((platform) => [
      platform,
      { platform, multiplier: "1", channels: [`${platform}-a`, `${platform}-b`] },
    ]),
  );
  const config = makeConfig(a, { channels, groups, ...options.config });
  const gateway = startGatewayHere({ config, ...(options.folder && { folder: options.folder }) });
  for (const part of [gateway, a, b]) onTestFinished(() => part.stop());
  return {
    a,
    b,
    gateway,
    ask: async (request) => {
      const count = gateway.records.length;
      const answer = await rawRequest(gateway.port, request);
      const record = (await gateway.recorded(count + 1))[count]!;
      await flushLedger();
      const lines = gateway.ledger().filter((line) => line["id"] === record.id);
      if (lines.length > 1) throw new Error(`${lines.length} lines for one request`);
      return { answer, record, line: lines[0], sent: [a.requests.length, b.requests.length] };
    },
    view: (name) => {
      const { catalog, channels } = gateway.running.gateway;
      return channels.view(catalog, Date.now()).find((view) => view.name === name)!;
    },
  };
}
