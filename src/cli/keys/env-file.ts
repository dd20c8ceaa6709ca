// An env-style file (`NAME=value`, as shells and dotenv read it) → names and values. Nothing is expanded.

export interface Assignment {
  readonly name: string;
  readonly value: string;
}

const ASSIGNMENT = /^(?:export\s+)?([A-Za-z_][\w.-]*)\s*=\s*(.*)$/;
const QUOTED = /^(["'])(.*)\1\s*(?:#.*)?$/;

/** Null when some line is none: the text is something else then. */
export function parseEnvFile(text: string): Assignment[] | null {
  const lines = text.split(/\r?\n/).map((line) => line.trim());
  const told = lines.filter((line) => line !== "" && !line.startsWith("#"));
  const assignments = told.map((line) => {
    const [, name, raw] = ASSIGNMENT.exec(line) ?? [];
    return name === undefined || raw === undefined ? null : { name, value: unquote(raw) };
  });
  const found = assignments.filter((assignment) => assignment !== null);
  return found.length === told.length && found.length > 0 ? found : null;
}

function unquote(raw: string): string {
  const quoted = QUOTED.exec(raw)?.[2];
  return quoted ?? raw.replace(/\s+#.*$/, "").trim();
}
