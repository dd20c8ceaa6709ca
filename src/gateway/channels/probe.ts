// Asks a channel for its models, to see whether it is there: free of charge, by
// command, or again and again where the config says so and nothing else has told.

import type { Catalog, Channel } from "../../config/catalog.ts";
import { UpstreamFault } from "../../lib/http1/types.ts";
import type { Gateway } from "../gateway.ts";
import { askPage } from "./model-list.ts";
import { reportFault } from "../observe/observer.ts";
import { redactFailure, redactText } from "../upstream/redact.ts";
import { type Failure, isShortage, judgeRefusal } from "../upstream/failure-rules.ts";

export async function probeChannel(channel: Channel, gateway: Gateway): Promise<void> {
  const failure = await ask(channel, gateway);
  if (failure === null || !isShortage(failure)) gateway.channels.reportProbe(channel, failure, gateway.now());
}

/** An answer that only says that there is no such list comes from an upstream that is well. */
async function ask(channel: Channel, { client, catalog }: Gateway): Promise<Failure | null> {
  const { name } = channel;
  try {
    const { status, body } = await askPage(client, channel, catalog.vendor, "");
    const failure = judgeRefusal(name, status, redactText(body, channel));
    return failure && redactFailure(failure, channel);
  } catch (fault) {
    if (fault instanceof UpstreamFault) return { kind: "fault", channel: name, fault };
    throw fault;
  }
}

export interface Probes {
  /** The channels of the catalog that now counts. */
  follow(catalog: Catalog): void;
  stop(): void;
}

export function startProbes(gateway: Gateway): Probes {
  let timers: Timer[] = [];
  const stop = (): void => {
    timers.forEach(clearInterval);
    timers = [];
  };
  const look = async (channel: Channel, probeMs: number): Promise<void> => {
    const isKnown = gateway.now() - gateway.channels.lastAnswer(channel) < probeMs;
    if (isKnown) return;
    try {
      await probeChannel(channel, gateway);
    } catch (error) {
      reportFault(error, gateway.observer);
    }
  };
  return {
    follow: (catalog) => {
      stop();
      for (const channel of catalog.channels.values()) {
        const { probeMs, disabled } = channel;
        if (probeMs === null || disabled === true) continue;
        void look(channel, probeMs);
        timers.push(setInterval(() => void look(channel, probeMs), probeMs).unref());
      }
    },
    stop,
  };
}
