// The words that start this program again in the user's shell, for hints to copy. Plain
// `gateway` works only once the program is installed, and on npm that name is another
// author's package.

import { realpathSync } from "node:fs";
import { basename, delimiter, dirname, join, relative, resolve, sep } from "node:path";
import { quoteWord } from "../../lib/text/shell-word.ts";

export interface ProgramStart {
  /** The main module. In an executable, a path that no disk has. */
  readonly main: string;
  readonly program: string;
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

const EMBEDDED = /^(\/\$bunfs\/|[A-Z]:[/\\]~BUN[/\\])/;

export function nameOwnCommand(start: ProgramStart = describeStart()): string {
  const { main, program, folder, env } = start;
  const path = readUserPath(env);
  if (EMBEDDED.test(main)) return nameExecutable(start, path);
  const file = resolve(main);
  if (isSameFile(Bun.which("gateway", { PATH: path }), file)) return "gateway";
  const root = dirname(dirname(file));
  if (env["npm_package_json"] === join(root, "package.json") && folder === root)
    return "npm run -s gateway --";
  const bun = Bun.which("bun", { PATH: path }) === null ? shorten(program, folder) : "bun";
  return `${bun} ${shorten(file, folder)}`;
}

/** If the command of the npm package has started it, the name of that command. */
function nameExecutable({ program, folder, env }: ProgramStart, path: string): string {
  const launcher = env["GATEWAY_LAUNCHER"] ?? "";
  const [name, file] = launcher === "" ? [basename(program), program] : ["gateway", launcher];
  return isSameFile(Bun.which(name, { PATH: path }), file) ? name : shorten(file, folder);
}

function describeStart(): ProgramStart {
  return { main: Bun.main, program: process.execPath, folder: process.cwd(), env: process.env };
}

/** npm puts folders of its own in front of the PATH of a script. The user's shell does not have them. */
function readUserPath(env: ProgramStart["env"]): string {
  const folders = (env["PATH"] ?? "").split(delimiter);
  return folders.filter((folder) => !folder.endsWith(join("node_modules", ".bin"))).join(delimiter);
}

function isSameFile(found: string | null, file: string): boolean {
  try {
    return found !== null && realpathSync(found) === realpathSync(file);
  } catch {
    return false;
  }
}

/** Relative to the current folder if the file is in it. */
function shorten(file: string, folder: string): string {
  const near = relative(folder, file);
  if (near.startsWith("..") || resolve(folder, near) !== file) return quoteWord(file);
  return quoteWord(near.includes("/") || near.includes("\\") ? near : `.${sep}${near}`);
}
