// The bill of one request: opened before anything goes upstream, closed exactly once by settle.ts.

import { estimateInputTokens } from "../billing/estimate.ts";
import type { Call } from "./call.ts";
import type { Errand } from "./errand.ts";
import type { Gateway } from "./gateway.ts";
import type { Route } from "./match.ts";

/** A type, not an interface: a ledger line takes it as a record. */
export type Attempt = {
  readonly channel: string;
  /** The upstream's status, when it answered. */
  readonly status?: number;
  /** Why there was no answer. */
  readonly error?: string;
};

export interface Bill {
  readonly call: Call;
  readonly route: Route;
  readonly stream: boolean;
  /** Tokens of the prompt, by its size: for answers that break off before their usage is told. */
  readonly estimatedInput: number;
  /** What the upstream of the answering channel is asked for; the client's own name until then. */
  requested: string | null;
  readonly attempts: Attempt[];
  /** The ledger knows of the request: it gets a line, come what may. False where nothing is billed. */
  readonly open: boolean;
  settled: boolean;
  /** Milliseconds from arrival to the first byte of the answer. */
  firstByteMs: number | null;
}

const BILLED = new Set(["generate", "embed"]);

export async function openBill({ call, request }: Errand, route: Route, gateway: Gateway): Promise<Bill> {
  const first = route.candidates[0];
  const open = BILLED.has(call.target.endpoint.purpose) && first !== undefined;
  if (open) {
    const { key, group } = route;
    await gateway.ledger.open({
      id: call.id,
      time: new Date(call.time).toISOString(),
      key: key.name,
      group: group.name,
      platform: group.platform,
      channel: first.channel.name,
      endpoint: call.target.endpoint.label,
      model: request.model ?? "",
      upstream_model: first.model,
      stream: request.stream,
      multiplier: group.multiplier,
    });
  }
  return {
    call,
    route,
    stream: request.stream,
    estimatedInput: open && request.plain !== null ? estimateInputTokens(request.plain) : 0,
    requested: first?.model ?? null,
    attempts: [],
    open,
    settled: false,
    firstByteMs: null,
  };
}
