// When a client disconnects before its response has ended, the upstream request is cancelled too. That happens at once,
// or, if the request is billed, after `on_disconnect.drain`, during which the usage may still come.

import type { Bill } from "../bill/bill.ts";
import type { Job } from "../upstream/job.ts";
import type { Gateway } from "../gateway.ts";

/** Returns a function that ends the watch. */
export function watchClient(job: Job, { open }: Bill, gateway: Gateway): () => void {
  const { halt } = gateway;
  const leave = (): void => job.running.cancel();
  let timer: Timer | null = null;
  job.call.exchange.onGone(() => {
    const { drainMs } = gateway.catalog.onDisconnect;
    if (drainMs === 0 || !open || halt.aborted) return leave();
    timer = setTimeout(leave, drainMs);
    halt.addEventListener("abort", leave);
  });
  return () => {
    if (timer === null) return;
    clearTimeout(timer);
    halt.removeEventListener("abort", leave);
  };
}
