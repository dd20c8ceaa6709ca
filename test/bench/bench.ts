// The inputs and the result of a measurement.

import type { Load, Upstream } from "./wire/ends.ts";
import type { Cores } from "./machine.ts";
import type { Kind, RequestOptions } from "./wire/requests.ts";
import type { Target } from "./targets/targets.ts";

/** The results of one round, by metric. */
export type Sample = Readonly<Record<string, number>>;

/** The inputs of every measurement. */
export interface Bench {
  readonly cores: Cores | null;
  readonly upstream: Upstream;
  readonly load: Load;
  /** Other clients at the same time. */
  readonly others: Load;
  readonly rounds: number;
  /** Of one measurement. */
  readonly ms: number;
}

export const KB = 1000;

export function describeRequest(target: Target, kind: Kind, bytes = KB): RequestOptions {
  const { port, path, fields, model } = target;
  return { kind, port, path, fields, model, bytes };
}
