// The streams that are open now and the tokens that flow through them, for the
// status line. Told by an observer or by what a gateway says of itself.

interface Flow {
  readonly id: string;
  readonly tokens: number;
}

export interface Traffic {
  /** What is open at `now`, in milliseconds. */
  see(flows: readonly Flow[], now: number): void;
  /** Tokens of a stream that has just ended. */
  end(flow: Flow): void;
  /** Over the last seconds. */
  tokensPerSecond(): number;
}

/** Short enough to follow, long enough to be calm. */
const WINDOW_MS = 3000;

export function createTraffic(): Traffic {
  const counted = new Map<string, number>();
  let total = 0;
  let samples: { readonly at: number; readonly total: number }[] = [];
  const count = ({ id, tokens }: Flow): void => {
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

export interface Status {
  readonly open: number;
  readonly tokensPerSecond: number;
  /** A decimal in USD. */
  readonly today: string;
}

/** As wordy as there is room for. */
export function describeStatus({ open, tokensPerSecond, today }: Status, room: number): string {
  const forms = [
    [`${open} open ${open === 1 ? "stream" : "streams"}`, `${tokensPerSecond} tokens/s`, `$${today} today`],
    [`${open} open`, `${tokensPerSecond} tok/s`, `$${today}`],
  ].map((parts) => parts.join(" · "));
  return forms.find((form) => Bun.stringWidth(form) <= room) ?? forms.at(-1) ?? "";
}
