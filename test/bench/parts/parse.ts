// The least that reading a stream's events costs: decoding and parsing each of them.

import { writeEvents } from "../wire/answers.ts";
import { type Outcome, Tally } from "../wire/crowd.ts";

/** `requests` counts events, and `seconds` is the CPU time of all threads, as for a gateway. */
export function measureParse(ms: number): Outcome {
  const events = writeEvents("responses", 250, false)
    .filter((event) => event.startsWith("event: response.output_text.delta"))
    .map((event) => Buffer.from(event.slice(event.indexOf("{"))));
  const tally = new Tally();
  parseFor(ms / 2, events);
  const before = process.cpuUsage();
  tally.requests = parseFor(ms, events);
  const { user, system } = process.cpuUsage(before);
  return tally.report((user + system) / 1e6);
}

function parseFor(ms: number, events: readonly Buffer[]): number {
  const start = performance.now();
  let parsed = 0;
  while (performance.now() - start < ms) {
    for (const event of events) {
      const { type }: { readonly type: string } = JSON.parse(event.toString("utf8"));
      if (type !== "") parsed += 1;
    }
  }
  return parsed;
}
