// Which of a route's channels is tried first, and what is remembered of each.

import type { Channel } from "../config/catalog.ts";
import { GatewayError } from "../lib/errors.ts";
import type { Candidate, Route } from "./match.ts";
import type { Failure } from "./verdict.ts";

export interface Channels {
  /** The candidates worth trying now, best first. */
  order(route: Route, now: number): readonly Candidate[];
  /** The error to answer with when `order` gave none. */
  explainNone(route: Route, now: number): GatewayError;
  reportAnswer(channel: Channel, firstByteMs: number, now: number): void;
  reportFailure(channel: Channel, failure: Failure, now: number): void;
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
  };
}
