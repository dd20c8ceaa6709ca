// What needs somebody's attention, above everything else; one sentence if nothing does.

import type { OverviewReply } from "../../../gateway/api/documents.ts";
import type { Document } from "../../../gateway/api/reports.ts";
import { hrefOf } from "../state/route.ts";
import { useData, useLive, useNow } from "../state/use.ts";
import { listMatters } from "./matters.tsx";

export function StatusStrip({ data }: { readonly data: OverviewReply }) {
  const live = useLive();
  const now = useNow(10_000);
  const { data: versions } = useData<Document<"versions">>("reports/versions");
  const matters = listMatters({ ...data, ...versions }, live, now);
  if (live.connection !== "open") return null;
  return (
    <section class={`status ${matters[0]?.tone ?? "good"}`} aria-label="Status">
      {matters.length === 0 ? (
        <p>
          <span class="dot" aria-hidden="true" />
          Everything is in order: no limit is near, no channel fails, and no request of the last hour failed.
        </p>
      ) : (
        <ul>
          {matters.map(({ tone, title, text, to: [path, query] }, index) => (
            <li key={index} class={tone}>
              <span class="dot" aria-hidden="true" />
              <a href={hrefOf(path, query)}>{title}</a> <span class="matter">{text}</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
