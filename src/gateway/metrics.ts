// Counters in Prometheus' text form, fed by what is observed. No secret and no prompt ever gets here.

import type { Observer } from "./observer.ts";

export interface Metrics {
  readonly observer: Observer;
  readonly render: () => string;
}

export function createMetrics(): Metrics {
  const requests = new Map<string, number>();
  let openStreams = 0;
  return {
    observer: {
      requestDone: ({ endpoint, status, outcome }) => {
        const labels = `endpoint="${endpoint}",status="${status}",outcome="${outcome}"`;
        requests.set(labels, (requests.get(labels) ?? 0) + 1);
      },
      streamOpened: () => (openStreams += 1),
      streamClosed: () => (openStreams -= 1),
      notice: () => {},
    },
    render: () =>
      [
        "# TYPE gateway_requests_total counter",
        ...[...requests].map(([labels, count]) => `gateway_requests_total{${labels}} ${count}`),
        "# TYPE gateway_open_streams gauge",
        `gateway_open_streams ${openStreams}`,
        "",
      ].join("\n"),
  };
}
