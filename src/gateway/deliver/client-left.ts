// When a client disconnects before its response has ended, the upstream request is cancelled too. That happens at once,
// or, if the request is billed, after `on_disconnect.drain`, during which the usage may still come.

import type { Gateway } from "../gateway.ts";
import type { Request } from "../request.ts";
import { noteLeft } from "./delivery.ts";

export function watchClient(r: Request, gateway: Gateway): void {
  r.exchange.onGone(() => leave(r, gateway));
}

function leave(r: Request, { catalog, halt }: Gateway): void {
  if (r.settled) return;
  noteLeft(r);
  const { drainMs } = catalog.onDisconnect;
  const cancel = (): void => r.upstream.cancel();
  if (drainMs === 0 || !r.open || halt.aborted) return cancel();
  const timer = setTimeout(cancel, drainMs);
  halt.addEventListener("abort", cancel);
  r.endDrain = () => {
    clearTimeout(timer);
    halt.removeEventListener("abort", cancel);
  };
}
