// How the charge of one request was computed: what `gateway ledger show` prints.

import { useEffect } from "preact/hooks";
import type { Derivation, RequestRecord } from "../../api.ts";
import { Copy, Dialog, Failure } from "../parts/basic.tsx";
import { localize } from "../parts/format.ts";
import { useData } from "../state/use.ts";

/** A line is in the ledger a moment after its request has ended. */
const RETRY_MS = 400;
const AWAITED_MS = 10_000;
const BILLED = new Set(["complete", "client_closed", "upstream_cut", "upstream_error", "interrupted"]);

export function RequestPanel({
  id,
  request,
  isOpen,
  onClose,
}: {
  readonly id: string;
  /** Null: it has not ended, or is none of the last ones. */
  readonly request: RequestRecord | null;
  /** Its answer is streaming now. */
  readonly isOpen: boolean;
  readonly onClose: () => void;
}) {
  const { data, error, load } = useData<Derivation>(`request?id=${encodeURIComponent(id)}`);
  const lines = data?.lines ?? null;
  const isAwaited = data !== null && lines === null && mayCome(request);
  useEffect(() => {
    if (!isAwaited) return undefined;
    const timer = setTimeout(load, RETRY_MS);
    return () => clearTimeout(timer);
  }, [data, isAwaited, load]);
  return (
    <Dialog title="How this charge was computed" side onClose={onClose}>
      {typeof request?.problem === "string" && <p class="problem">{localize(request.problem)}</p>}
      {error !== null && <Failure text={error} retry={load} />}
      {lines === null ? (
        error === null && (
          <p class="quiet">
            {data === null || isAwaited ? "Reading the ledger …" : explainNone(request, isOpen)}
          </p>
        )
      ) : (
        <Lines lines={lines} />
      )}
      <p class="actions">
        <Copy text={id} label="the id of the request" />
      </p>
    </Dialog>
  );
}

/** Why the ledger has no line of it. */
function explainNone(request: RequestRecord | null, isOpen: boolean): string {
  if (isOpen) return "This request is running. Its cost is here as soon as it has ended.";
  if (request === null)
    return "The ledger has no request with this id. One that is still running gets its line when it ends.";
  return hasLine(request)
    ? "The ledger has no line of this request yet."
    : "This request got no answer from a channel, so it cost nothing and has no line in the ledger.";
}

/** Whether the ledger has a line of it, or will have one. */
export function hasLine({ outcome, channel }: RequestRecord): boolean {
  return BILLED.has(outcome) && channel !== null;
}

/** Whether a line may still be written. */
function mayCome(request: RequestRecord | null): boolean {
  if (request === null || !hasLine(request)) return false;
  return Date.now() - request.time - request.durationMs < AWAITED_MS;
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
