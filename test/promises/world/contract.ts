// Reads the contract's table of commands: their flags, and the fields of --json.

import { readFileSync } from "node:fs";
import { join } from "node:path";

export const contract = readFileSync(join(import.meta.dir, "../../../docs/contract.md"), "utf8");
const [, table = ""] = /\n\| command \| `--json` \|\n\|---\|---\|\n((?:\|.*\n)+)/.exec(contract) ?? [];

interface Row {
  readonly command: string;
  readonly flags: readonly string[];
  readonly json: string;
}

const SETS: Readonly<Record<string, readonly string[]>> = {
  PERIOD: ["--since", "--until"],
  FILTER: ["--key", "--group", "--model", "--channel", "--tool", "--session", "--label"],
  KEYS: ["--key", "--secret", "--new", "--group", "--cache", "--url"],
};

function readRow(line: string): Row[] {
  const [, left = "", right = ""] = line.replaceAll("\\|", "§").split("|");
  return [...left.matchAll(/`([^`]+)`/g)].flatMap(([, code = ""]) => {
    const [words = ""] = /^[a-z-]+(?: [a-z-]+(?:§[a-z-]+)*)*/.exec(code) ?? [];
    const flags = [
      ...(code.match(/--[a-z-]+/g) ?? []),
      ...Object.entries(SETS).flatMap(([name, each]) => (code.includes(name) ? each : [])),
    ];
    return expandChoices(words).map((command) => ({ command, flags, json: right }));
  });
}

/** Makes `keys disable` and `keys enable` of `keys disable|enable`. */
function expandChoices(words: string): string[] {
  const parts = words.split(" ");
  const at = parts.findIndex((part) => part.includes("§"));
  return at < 0 ? [words] : parts[at]!.split("§").map((choice) => parts.with(at, choice).join(" "));
}

export const rows = table
  .split("\n")
  .flatMap(readRow)
  .filter(({ command }) => command !== "" && command !== "state");
/** The flags of each command, in all of its rows. */
export const commands = new Map<string, Set<string>>();
for (const { command, flags, json } of rows) {
  // The word after `import`, `schema` and so on is an argument.
  const name = command.replace(/^(import|completions|schema|init|usage) .*/, "$1");
  const all = commands.get(name) ?? new Set();
  for (const flag of flags) all.add(flag);
  const [, only] = /^ (\w+): /.exec(json) ?? [];
  if (json.includes('"') && (only === undefined || name.endsWith(only))) all.add("--json");
  commands.set(name, all);
}
