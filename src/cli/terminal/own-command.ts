// The words that start this program. npm's `gateway` is another package.

import { realpathSync } from "node:fs";
import { relative, resolve, sep } from "node:path";
import { quoteWord } from "../../lib/text/shell-word.ts";

export function findOwnCommand(): string[] {
  const isCompiled = /^(\/\$bunfs\/|[A-Z]:[/\\]~BUN[/\\])/.test(Bun.main);
  return isCompiled ? [process.execPath] : [process.execPath, resolve(Bun.main)];
}

export function nameOwnCommand(): string {
  const launcher = process.env["GATEWAY_LAUNCHER"] ?? "";
  const words = launcher === "" ? findOwnCommand() : [launcher];
  const found = Bun.which("gateway");
  return found !== null && isSameFile(found, words.at(-1) ?? "") ? "gateway" : words.map(shorten).join(" ");
}

let config: string | undefined;

export function noteConfig(file: string | undefined): void {
  config = file && resolve(file);
}

const BEGINNING = /^gateway run|^gateway(?: [^\s,-][^\s,]*)+/;

/** Adds `--config`, so that a proposed command uses the config of this run. */
export function keepConfig(command: string): string {
  if (config === undefined || command.includes("--config")) return command;
  const flag = ` --config ${quoteWord(config)}`;
  return command.replace(BEGINNING, (words) => words + flag);
}

export function proposeCommand(words: string): string {
  return nameOwnCommand() + keepConfig(`gateway ${words}`).slice("gateway".length);
}

export function keepConfigs(text: string): string {
  return text.replaceAll(/(?<=`)gateway [^`]+/g, keepConfig);
}

export function isSameFile(one: string, other: string): boolean {
  try {
    return realpathSync(one) === realpathSync(other);
  } catch {
    return one === other;
  }
}

function shorten(file: string): string {
  const near = relative(process.cwd(), file);
  if (near.startsWith("..") || resolve(near) !== file) return quoteWord(file);
  return quoteWord(/[/\\]/.test(near) ? near : `.${sep}${near}`);
}
