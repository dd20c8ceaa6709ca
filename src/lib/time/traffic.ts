// Counts tokens per second of open streams, from an observer or from the state of a running gateway. Runs in browsers too.

interface StreamCount {
  readonly id: string;
  readonly tokens: number;
}

export interface Traffic {
  /** Takes the streams that are open at `now`, in milliseconds. */
  see(flows: readonly StreamCount[], now: number): void;
  /** Takes the final count of a stream that has just ended. */
  end(flow: StreamCount): void;
  /** The average of the last seconds. */
  tokensPerSecond(): number;
}

/** Short enough to follow changes, long enough not to jump. */
const WINDOW_MS = 3000;

export function createTraffic(): Traffic {
  const counted = new Map<string, number>();
  let total = 0;
  let samples: { readonly at: number; readonly total: number }[] = [];
  const count = ({ id, tokens }: StreamCount): void => {
    const before = counted.get(id) ?? 0;
    total += Math.max(0, tokens - before);
    counted.set(id, Math.max(before, tokens));
  };
  return {
    see: (flows, now) => {
      flows.forEach(count);
      const open = new Set(flows.map(({ id }) => id));
      for (const id of counted.keys()) if (!open.has(id)) counted.delete(id);
      samples = [...samples.filter(({ at }) => now - at <= WINDOW_MS), { at: now, total }];
    },
    end: (flow) => {
      count(flow);
      counted.delete(flow.id);
    },
    tokensPerSecond: () => {
      const [first] = samples;
      const last = samples.at(-1);
      if (first === undefined || last === undefined || last.at === first.at) return 0;
      return Math.round(((last.total - first.total) * 1000) / (last.at - first.at));
    },
  };
}
