// The gateway's own want of files, ports or memory: the operator is told, and not for every request.

import type { Observer } from "./observer.ts";

const PAUSE_MS = 60_000;

export type ShortageAlarm = (why: string) => void;

export function createShortageAlarm(observer: Pick<Observer, "notice">, now: () => number): ShortageAlarm {
  let told = Number.NEGATIVE_INFINITY;
  return (why) => {
    // A clock that was set back has no say.
    if (Math.abs(now() - told) < PAUSE_MS) return;
    told = now();
    observer.notice(
      "warning",
      `requests are turned away: ${why}. The channels are not to blame, and none rests for it.`,
    );
  };
}
