// Asks a channel for its models to see whether it works. This costs nothing. It happens by command, and repeatedly
// where the config says so (`probe`) and no request has shown the channel's state.

import type { Catalog, Channel } from "../../config/catalog.ts";
import { dialectOf } from "../../dialects/index.ts";
import { UpstreamFault } from "../../lib/http/faults.ts";
import { type Upstream } from "../../lib/http/upstream.ts";
import { type Observer, reportFault } from "../observe/observer.ts";
import { type Failure, isShortage, judgeRefusal } from "../upstream/failure-rules.ts";
import { channelSecrets } from "../intake/secrets.ts";
import type { Channels } from "./channels.ts";
import { fetchListPage } from "./model-list.ts";

/** The parts of the gateway that a probe uses. */
export interface ProbeContext {
  readonly client: Upstream;
  readonly channels: Channels;
  readonly observer: Observer;
  readonly now: () => number;
}

export async function probeChannel(channel: Channel, context: ProbeContext): Promise<void> {
  const failure = await probe(channel, context);
  if (failure === null || !isShortage(failure)) context.channels.reportProbe(channel, failure, context.now());
}

/** A response that only says that there is no such list comes from an upstream that works. */
async function probe(channel: Channel, { client }: ProbeContext): Promise<Failure | null> {
  const { name } = channel;
  try {
    const { status, body } = await fetchListPage(client, channel, "");
    const secrets = channelSecrets(channel);
    const failure = judgeRefusal(name, status, secrets.remove(body), dialectOf(channel.platform));
    return failure && secrets.removeIn(failure);
  } catch (fault) {
    if (fault instanceof UpstreamFault) return { kind: "fault", channel: name, fault };
    throw fault;
  }
}

export interface Probes {
  /** Probes the channels of this catalog from now on. */
  follow(catalog: Catalog): void;
  stop(): void;
}

export function startProbes(context: ProbeContext): Probes {
  let timers: Timer[] = [];
  const stop = (): void => {
    timers.forEach(clearInterval);
    timers = [];
  };
  const probeUnlessKnown = async (channel: Channel, probeMs: number): Promise<void> => {
    const age = context.now() - context.channels.lastAnswer(channel);
    // An answer of a time to come was before the clock was set back.
    if (age >= 0 && age < probeMs) return;
    try {
      await probeChannel(channel, context);
    } catch (error) {
      reportFault(error, context.observer);
    }
  };
  return {
    follow: (catalog) => {
      stop();
      for (const channel of catalog.channels.values()) {
        const { probeMs, disabled } = channel;
        if (probeMs === null || disabled) continue;
        void probeUnlessKnown(channel, probeMs);
        timers.push(setInterval(() => void probeUnlessKnown(channel, probeMs), probeMs).unref());
      }
    },
    stop,
  };
}
