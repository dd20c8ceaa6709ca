// Settings as lines that a shell can evaluate, quoted so that every value arrives as it is.

import type { Prepared } from "./overlay.ts";

export const SHELLS = ["bash", "zsh", "fish", "powershell"] as const;
export type Shell = (typeof SHELLS)[number];

interface Syntax {
  readonly quote: (text: string) => string;
  readonly set: (name: string, quoted: string) => string;
  /** No error where a variable is not set. */
  readonly unset: (names: readonly string[]) => string;
  /** A function of the program's own name that runs it with these arguments first. */
  readonly wrap: (program: string, quoted: readonly string[]) => string;
}

const posix: Syntax = {
  quote: (text) => `'${text.replaceAll("'", "'\\''")}'`,
  set: (name, quoted) => `export ${name}=${quoted}`,
  unset: (names) => `unset ${names.join(" ")}`,
  wrap: (program, quoted) => `${program}() { command ${program} ${quoted.join(" ")} "$@"; }`,
};

const SYNTAX: Readonly<Record<Shell, Syntax>> = {
  bash: posix,
  zsh: posix,
  fish: {
    quote: (text) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`,
    set: (name, quoted) => `set -gx ${name} ${quoted}`,
    // A universal variable may stand behind a global one of the same name.
    unset: (names) => `set -eg ${names.join(" ")}; set -eU ${names.join(" ")}`,
    wrap: (program, quoted) => `function ${program}; command ${program} ${quoted.join(" ")} $argv; end`,
  },
  powershell: {
    // The typographic quotes end a string too.
    quote: (text) => `'${text.replaceAll(/['\u2018\u2019\u201A\u201B]/g, "$&$&")}'`,
    set: (name, quoted) => `$env:${name} = ${quoted}`,
    unset: (names) =>
      `Remove-Item ${names.map((name) => `Env:${name}`).join(", ")} -ErrorAction SilentlyContinue`,
    wrap: (program, quoted) =>
      `function ${program} { & (Get-Command -CommandType Application ${program})[0] ${quoted.join(" ")} @args }`,
  },
};

export function writeSetting(shell: Shell, program: string | null, setting: Prepared): string[] {
  const { env, unset: names, args } = setting;
  const { quote, set, unset, wrap } = SYNTAX[shell];
  const unsets = names.length === 0 ? [] : [unset(names)];
  const exports = Object.entries(env).map(([name, value]) => set(name, quote(value)));
  const wrapper = program === null || args.length === 0 ? [] : [wrap(program, args.map(quote))];
  return [...unsets, ...exports, ...wrapper];
}

/** By what the user runs; bash when that is none of ours. */
export function guessShell(env: Readonly<Record<string, string | undefined>>): Shell {
  if (process.platform === "win32" && env["SHELL"] === undefined) return "powershell";
  const name = (env["SHELL"] ?? "").split("/").at(-1) ?? "";
  if (name === "pwsh") return "powershell";
  return SHELLS.find((shell) => shell === name) ?? "bash";
}
