// On Windows, npm starts each program by a small `.cmd`. cmd would read the arguments by rules of its own (quotes, `%`, `&`),
// so that the runtime refuses such ones, and Ctrl-C would ask a question. What that file starts is started instead.

import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** The last command of npm's file: Node with its flags, and a script; or another executable. */
const COMMAND = /(?:"%_prog%"((?:\s+-[^\s"]+)*)\s+)?"%dp0%\\([^"]+)"\s+%\*\s*$/;

/** The words that start a program of the PATH. */
export function findStart(program: string): readonly string[] {
  if (!/\.cmd$/i.test(program)) return [program];
  const text = readFileSync(program, "utf8");
  const [, flags, path = ""] = COMMAND.exec(text) ?? [];
  const [folder, file] = [dirname(program), join(dirname(program), ...path.split("\\"))];
  if (/\.exe$/i.test(path)) return [file];
  const beside = join(folder, "node.exe");
  const node = existsSync(beside) ? beside : Bun.which("node");
  if (flags === undefined || node === null || !text.includes('"_prog=node"')) return [program];
  return [node, ...flags.split(/\s+/).filter(Boolean), file];
}
