// The button that saves a `gateway report`.

import { useState } from "preact/hooks";
import type { Document } from "../../../gateway/api/reports.ts";
import { nameFile, writeHtml } from "../../report-file.ts";
import { describeError, get } from "../state/request.ts";
import { askScoped, type ViewScope } from "../state/scope.ts";

export function SaveReport({ scope }: { readonly scope: ViewScope }) {
  const [problem, setProblem] = useState<string | null>(null);
  const save = async (): Promise<void> => {
    const report = await get<Document<"evidence">>(`reports/evidence?${askScoped(scope)}`);
    if (report.requests === 0) throw new Error("There are no requests in this period.");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([writeHtml(report)], { type: "text/html" }));
    link.download = nameFile(report);
    link.click();
    URL.revokeObjectURL(link.href);
  };
  const press = (): void => {
    setProblem(null);
    save().catch((error: unknown) => setProblem(describeError(error)));
  };
  return (
    <>
      <button
        type="button"
        title="A file to show to others: what the cache missed, without a word of a prompt"
        onClick={press}
      >
        Save a report
      </button>
      {problem !== null && (
        <span class="quiet" role="alert">
          {problem}
        </span>
      )}
    </>
  );
}
