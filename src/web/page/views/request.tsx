// How the charge of one request was computed: what `gateway ledger show` prints.

import { useEffect } from "preact/hooks";
import type { Derivation, RequestRow } from "../../api.ts";
import { Copy, Dialog, Failure } from "../parts/basic.tsx";
import { go, hrefOf } from "../state/route.ts";
import { useData } from "../state/use.ts";

/** A line is in the ledger a moment after its request has ended. */
const RETRY_MS = 400;
const BILLED = new Set(["complete", "client_closed", "upstream_cut", "upstream_error", "interrupted"]);

export function RequestPanel({ id, request }: { readonly id: string; readonly request: RequestRow | null }) {
  const { data, error, load } = useData<Derivation>(`request?id=${encodeURIComponent(id)}`);
  const mayCome = request === null || (BILLED.has(request.outcome) && request.channel !== null);
  const isAwaited =
    data !== null && data.lines === null && mayCome && Date.now() - readTime(request) < 10_000;
  useEffect(() => {
    if (!isAwaited) return undefined;
    const timer = setTimeout(load, RETRY_MS);
    return () => clearTimeout(timer);
  }, [data, isAwaited, load]);
  return (
    <Dialog title="How this charge was computed" side onClose={() => go(hrefOf(["live"]), "replace")}>
      {request?.problem != null && <p class="problem">{request.problem}</p>}
      {error !== null && <Failure text={error} retry={load} />}
      {data === null && error === null && <p class="loading">Reading the ledger …</p>}
      {data !== null && data.lines === null && (
        <p class="quiet">
          {isAwaited
            ? "Its line is being written …"
            : "The ledger has no line for this request: it reached no channel, so it cost nothing."}
        </p>
      )}
      {data?.lines != null && <Lines lines={data.lines} />}
      <p class="actions">
        <Copy text={id} label="the id of the request" />
        <code>{id}</code>
      </p>
    </Dialog>
  );
}

function readTime(request: RequestRow | null): number {
  return request === null ? 0 : request.time + request.durationMs;
}

/** A line without an indent begins a section. */
function Lines({ lines }: { readonly lines: readonly string[] }) {
  return (
    <div class="derivation" tabIndex={0} role="region" aria-label="Derivation">
      {splitSections(lines).map(({ title, text }) => (
        <section key={title}>
          <h3>{title}</h3>
          <pre>{text.join("\n")}</pre>
        </section>
      ))}
    </div>
  );
}

interface Section {
  readonly title: string;
  readonly text: string[];
}

function splitSections(lines: readonly string[]): Section[] {
  const sections: Section[] = [];
  for (const line of lines) {
    if (line === "") continue;
    if (line.startsWith(" ")) sections.at(-1)?.text.push(line.slice(2));
    else sections.push({ title: line, text: [] });
  }
  return sections;
}
