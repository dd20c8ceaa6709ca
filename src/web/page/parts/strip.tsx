// The strip of a channel: one bar for each step of time. Its height is the number of requests, its colour how many
// failed. The same in words for a screen reader.

import type { ChannelView } from "../../../gateway/channels/view.ts";
import { formatCount } from "./format.ts";

type Counts = ChannelView["hour"][number];

const WIDTH = 8;
const HEIGHT = 28;
const EMPTY_HEIGHT = 2;

export function Strip({
  counts,
  label,
  href,
}: {
  readonly counts: readonly Counts[];
  readonly label: string;
  /** Their requests. */
  readonly href: string;
}) {
  const most = Math.max(1, ...counts.map(({ requests }) => requests));
  const requests = counts.reduce((sum, each) => sum + each.requests, 0);
  const errors = counts.reduce((sum, each) => sum + each.errors, 0);
  const words =
    requests === 0 ? "no requests" : `${formatCount(requests)} requests, ${formatCount(errors)} failed`;
  return (
    <figure class="strip">
      <svg
        viewBox={`0 0 ${counts.length * WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${label}: ${words}`}
      >
        {counts.map((each, index) => {
          const height = each.requests === 0 ? EMPTY_HEIGHT : Math.max(4, (each.requests / most) * HEIGHT);
          return (
            <rect
              key={index}
              class={toneOf(each)}
              x={index * WIDTH + 1}
              y={HEIGHT - height}
              width={WIDTH - 2}
              height={height}
              rx="1"
            />
          );
        })}
      </svg>
      <figcaption>
        <a href={href}>{label}</a>
      </figcaption>
    </figure>
  );
}

function toneOf({ requests, errors }: Counts): string {
  if (requests === 0 && errors === 0) return "none";
  if (errors === 0) return "good";
  return errors * 2 > requests ? "bad" : "warn";
}
