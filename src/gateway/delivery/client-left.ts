// What happens when a client leaves before its answer has ended: the upstream is left too, at
// once or, for what it is paid for, when the drain is over. When that is the same for all stages.

import type { Bill } from "../bill/bill.ts";
import type { Job } from "../upstream/job.ts";
import type { Gateway } from "../gateway.ts";

/** Returns what ends the watch. */
export function watchClient(job: Job, { open }: Bill, gateway: Gateway): () => void {
  const { halt } = gateway;
  const leave = (): void => job.cancel();
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
