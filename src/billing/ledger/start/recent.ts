// The requests before a start that limits per minute, inferred sessions and the expected answers of models go on from.

import type { Table } from "../../store/open.ts";
import type { ClientIdentity, Intent } from "../line.ts";

/** How many say enough about the answers of models. */
const LAST_REQUESTS = 1000;

export type Recent = Pick<Intent, "time" | "key" | "group" | "model"> & {
  readonly client: ClientIdentity;
  /** Its output tokens; null: they are not known exactly. */
  readonly output: number | null;
  readonly durationMs: number | null;
};

/** The last requests, and all since a moment. The oldest come first. */
export function readRecent(table: Table, since: number): Recent[] {
  // What limits count is not an estimate where it is the charge, or where a plan pays.
  const found = table.list(
    `SELECT at, key, group_name, model, tool, label, session, inferred, duration,
       IIF(basis = 'exact' AND (counted = charge OR paid_by IS NOT NULL), output, NULL)
     FROM requests WHERE at >= $since OR line > (SELECT MAX(line) FROM requests) - ${LAST_REQUESTS} ORDER BY at`,
    { $since: since },
  );
  return found.map(([at, key, group, model, tool, label, session, inferred, duration, output]) => {
    const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
    const client: ClientIdentity = {
      tool: text(tool),
      label: text(label),
      session: text(session),
      inferred: inferred === 1n ? true : undefined,
    };
    return {
      time: new Date(Number(at)).toISOString(),
      key: text(key) ?? "",
      group: text(group) ?? "",
      model: text(model) ?? "",
      client,
      output: typeof output === "bigint" ? Number(output) : null,
      durationMs: typeof duration === "bigint" ? Number(duration) : null,
    };
  });
}
