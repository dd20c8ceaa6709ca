// The screen of `gateway serve`: the log of requests above a status line with open streams,
// tokens per second and the spending of the day.

import type { Catalog } from "../../config/catalog.ts";
import type { Observer, OpenStream } from "../../gateway/observe/observer.ts";
import { type LogScreen, openLogScreen } from "../live/log-screen.ts";
import { createRequestLog, type LogForm } from "../live/request-log.ts";
import { createTraffic } from "../../lib/traffic.ts";
import { describeStatus } from "../live/traffic.ts";

export interface ServeScreen extends LogScreen {
  readonly observer: Observer;
  /** Prints the titles of the columns. */
  readonly head: () => void;
}

/** `today`: the spending of the day so far, a decimal in USD. */
export function openServeScreen(form: LogForm, catalog: Catalog, today: () => string): ServeScreen {
  const streams = new Map<string, OpenStream>();
  const traffic = createTraffic();
  const readFlow = ({ id, tokens }: OpenStream) => ({ id, tokens: tokens() });
  const readStatus = (room: number): string => {
    traffic.see([...streams.values()].map(readFlow), performance.now());
    const tokensPerSecond = traffic.tokensPerSecond();
    return describeStatus({ open: streams.size, tokensPerSecond, today: today() }, room);
  };
  const screen = openLogScreen(form === "text" ? readStatus : null);
  const expected = { key: findLongest(catalog.keys), channel: findLongest(catalog.channels) };
  const log = createRequestLog({ form, screen, expected, today });
  return {
    ...screen,
    head: log.head,
    observer: {
      ...log,
      streamOpened: (stream) => void streams.set(stream.id, stream),
      streamClosed: (id) => {
        const stream = streams.get(id);
        if (stream !== undefined) traffic.end(readFlow(stream));
        streams.delete(id);
      },
    },
  };
}

function findLongest(named: ReadonlyMap<string, unknown>): string {
  return [...named.keys()].reduce((longest, name) => (name.length > longest.length ? name : longest), "");
}
