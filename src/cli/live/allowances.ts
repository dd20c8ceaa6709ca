// What is left on each channel, as lines below a table.

import type { ChannelView } from "../../gateway/channels/view.ts";
import { writeAllowance } from "../../lib/text/allowance.ts";
import { formatAgo } from "../terminal/text.ts";

/** With its age. */
export function describeAllowances(views: readonly ChannelView[], now: Date): string[] {
  return views.flatMap(({ name, allowance = [] }) => {
    const texts = allowance.map(({ resets, seen, ...each }) => {
      const ends = resets === null ? [] : [`resets ${formatAgo(new Date(resets), now)}`];
      const times = [...ends, `seen ${formatAgo(new Date(seen), now)}`];
      return `${writeAllowance({ ...each, resets, seen })} (${times.join(", ")})`;
    });
    return texts.length === 0 ? [] : [`${name}: ${texts.join("; ")}`];
  });
}
