// Which of a route's channels is tried first, and what is remembered of each.

import type { Catalog, Channel } from "../config/catalog.ts";
import { GatewayError } from "../lib/errors.ts";
import type { ChannelView } from "./control-state.ts";
import type { Candidate, Route } from "./match.ts";
import type { Failure } from "./verdict.ts";

export interface Channels {
  /** The candidates worth trying now, best first. */
  order(route: Route, now: number): readonly Candidate[];
  /** The error to answer with when `order` gave none. */
  explainNone(route: Route, now: number): GatewayError;
  reportAnswer(channel: Channel, firstByteMs: number, now: number): void;
  reportFailure(channel: Channel, failure: Failure, now: number): void;
  setDisabled(channel: Channel, disabled: boolean, now: number): void;
  view(catalog: Catalog, now: number): ChannelView[];
}

export function createChannels(): Channels {
  return {
    order: (route) => route.candidates,
    explainNone: (route) =>
      new GatewayError("unavailable", `No channel of the group "${route.group.name}" is available now.`, {
        retryAfterSeconds: 5,
      }),
    reportAnswer: () => {},
    reportFailure: () => {},
    setDisabled: () => {},
    view: ({ channels }) =>
      [...channels.values()].map((channel) => ({
        name: channel.name,
        platform: channel.platform,
        groups: [...channel.groups],
        state: channel.disabled === true ? "disabled" : "unknown",
        since: null,
        reason: null,
        until: null,
        success_rate: null,
        latency_ms: null,
        latency_p95_ms: null,
        requests_hour: 0,
        errors_hour: 0,
        charge_today_usd: "0",
        hour: [],
      })),
  };
}
