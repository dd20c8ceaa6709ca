// Settings as shell lines.

import type { ToolEnvironment } from "./tool.ts";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

export const SHELLS = ["bash", "zsh", "fish", "powershell", "cmd"] as const;
export type Shell = (typeof SHELLS)[number];

interface ShellSyntax {
  readonly quote: (text: string) => string;
  readonly set: (name: string, quoted: string) => string;
  readonly unset: (names: readonly string[]) => string;
  readonly wrap: (program: string, quoted: readonly string[]) => string;
}

const posix: ShellSyntax = {
  quote: (text) => `'${text.replaceAll("'", "'\\''")}'`,
  set: (name, quoted) => `export ${name}=${quoted}`,
  unset: (names) => `unset ${names.join(" ")}`,
  wrap: (program, quoted) => `${program}() { command ${program} ${quoted.join(" ")} "$@"; }`,
};

const SYNTAX: Readonly<Record<Shell, ShellSyntax>> = {
  bash: posix,
  zsh: posix,
  fish: {
    quote: (text) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`,
    set: (name, quoted) => `set -gx ${name} ${quoted}`,
    // A global variable may hide a universal one of the same name.
    unset: (names) => `set -eg ${names.join(" ")}; set -eU ${names.join(" ")}`,
    wrap: (program, quoted) => `function ${program}; command ${program} ${quoted.join(" ")} $argv; end`,
  },
  powershell: {
    // PowerShell accepts typographic quotes as the end of a string, too.
    quote: (text) => `'${text.replaceAll(/['\u2018\u2019\u201A\u201B]/g, "$&$&")}'`,
    set: (name, quoted) => `$env:${name} = ${quoted}`,
    unset: (names) => {
      const items = names.map((name) => `Env:${name}`).join(", ");
      return `Remove-Item ${items} -ErrorAction SilentlyContinue`;
    },
    wrap: (program, quoted) => {
      const command = `(Get-Command -CommandType Application ${program})[0]`;
      return `function ${program} { & ${command} ${quoted.join(" ")} @args }`;
    },
  },
  // In cmd, the last quote ends the value, and others are part of it.
  cmd: {
    quote: (text) => text,
    set: (name, value) => `set "${name}=${value}"`,
    unset: (names) => names.map((name) => `set "${name}="`).join(" & "),
    wrap: (program, args) => {
      const quoted = args.map((arg) => `"${arg}"`).join(" ");
      return `doskey ${program}=${program} ${quoted} $*`;
    },
  },
};

export function writeSetting(shell: Shell, program: string | null, setting: ToolEnvironment): string[] {
  const { env, unset: names, args } = setting;
  const { quote, set, unset, wrap } = SYNTAX[shell];
  const unsets = names.length === 0 ? [] : [unset(names)];
  const exports = Object.entries(env).map(([name, value]) => set(name, quote(value)));
  const wrapper = program === null || args.length === 0 ? [] : [wrap(program, args.map(quote))];
  return [...unsets, ...exports, ...wrapper];
}

export function guessShell(env: Readonly<Record<string, string | undefined>>): Shell {
  if (process.platform === "win32" && env["SHELL"] === undefined) return "powershell";
  const name = (env["SHELL"] ?? "").split("/").at(-1) ?? "";
  if (name === "pwsh") return "powershell";
  return SHELLS.find((shell) => shell === name) ?? "bash";
}

/** The last command of the file that npm writes on Windows. */
const COMMAND = /(?:"%_prog%"((?:\s+-[^\s"]+)*)\s+)?"%dp0%\\([^"]+)"\s+%\*\s*$/;

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
