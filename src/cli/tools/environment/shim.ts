// On Windows, npm starts each program by a small `.cmd`. cmd would read the arguments by rules of its own (quotes, `%`, `&`),
// the runtime refuses such arguments for this reason, and Ctrl-C would ask a question. So what that file starts is started.

import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** The last command of npm's file: Node with its flags, and a script; or another executable. */
const COMMAND = /(?:"%_prog%"((?:\s+-[^\s"]+)*)\s+)?"%dp0%\\([^"]+)"\s+%\*\s*$/;

/** The words that start a program of the PATH. */
export function findStart(program: string): readonly string[] {
  if (!/\.cmd$/i.test(program)) return [program];
  const text = readFileSync(program, "utf8");
  const [, flags, path = ""] = COMMAND.exec(text) ?? [];
  const file = join(dirname(program), ...path.split("\\"));
  if (/\.exe$/i.test(path)) return [file];
  const node = findNode(dirname(program));
  if (flags === undefined || node === null || !text.includes('"_prog=node"')) return [program];
  return [node, ...flags.split(/\s+/).filter((flag) => flag !== ""), file];
}

function findNode(folder: string): string | null {
  const beside = join(folder, "node.exe");
  return existsSync(beside) ? beside : Bun.which("node");
}
