// Output and prompts. Only this module imports @clack/prompts.

import type * as Prompts from "@clack/prompts";
import { messageOf } from "../../lib/errors.ts";
import { fail, Refusal, refuseUsage } from "../../lib/refusal.ts";
import { escapeLines, escapeText, isPrintable } from "../../lib/text/printable.ts";
import { keepConfigs } from "./own-command.ts";
import { wrapWords } from "./text.ts";

export { fail, readGiven, refuseUsage } from "../../lib/refusal.ts";

/** A name in the line cannot control the terminal. */
export function print(line: string): void {
  process.stdout.write(`${escapeText(line)}\n`);
}

/** Prints lines with styles. Names in them must be escaped. */
export function printLines(lines: readonly string[]): void {
  const isPlain = lines.every(isPrintable);
  process.stdout.write([...(isPlain ? lines : lines.map(escapeBesideStyles)), ""].join("\n"));
}

export function printWrapped(line: string, hang = 2): void {
  printLines(wrapWords(escapeText(line), readRoom(), hang));
}

export function printNote(text: string, style?: Style): void {
  const lines = wrapMessage(escapeLines(keepConfigs(text)));
  process.stderr.write(`${style === undefined ? lines : paint(style, lines, process.stderr)}\n`);
}

export function wrapMessage(text: string): string {
  if (!process.stderr.isTTY) return text;
  const room = process.stderr.columns || readSize().columns;
  return text
    .split("\n")
    .flatMap((line) => wrapWords(line, room))
    .join("\n");
}

export function printJson(value: unknown): void {
  process.stdout.write(encodeJson(value));
  process.stdout.write("\n");
}

export function encodeJson(value: unknown): string {
  return escapeText(JSON.stringify(value));
}

const STYLES = {
  bold: 1,
  dim: 2,
  red: 31,
  green: 32,
  yellow: 33,
  cyan: 36,
} as const;

type Style = keyof typeof STYLES;

export function paint(style: Style, text: string, stream: NodeJS.WriteStream = process.stdout): string {
  return isPlain(stream) || text === "" ? text : `\u001B[${STYLES[style]}m${text}\u001B[0m`;
}

function isPlain(stream: NodeJS.WriteStream): boolean {
  return !stream.isTTY || (process.env["NO_COLOR"] ?? "") !== "" || process.env["TERM"] === "dumb";
}

const OWN_STYLE = new RegExp(`(\\u001B\\[(?:${[0, ...Object.values(STYLES)].join("|")})m)`);

function escapeBesideStyles(line: string): string {
  if (isPlain(process.stdout)) return escapeText(line);
  const parts = line.split(OWN_STYLE);
  return parts.map((part, index) => (index % 2 === 1 ? part : escapeText(part))).join("");
}

export function readSize() {
  const { columns, rows } = process.stdout;
  return { columns: columns || 80, rows: rows || 24 };
}

export function readRoom(): number {
  return process.stdout.isTTY ? readSize().columns : Infinity;
}

/** Prompts go to stderr: stdout can be captured. */
export function canPrompt(): boolean {
  return process.stdin.isTTY && process.stderr.isTTY && process.env["TERM"] !== "dumb";
}

const PROMPT_OPTIONS = { output: process.stderr, withGuide: false };

export interface Question {
  readonly message: string;
  readonly check?: (answer: string) => string | undefined;
}

export function complain(read: (text: string) => unknown): (text: string) => string | undefined {
  return (text) => {
    try {
      read(text);
      return undefined;
    } catch (error) {
      return messageOf(error);
    }
  };
}

export function askText(question: Question): Promise<string> {
  return ask<string>((prompts) => prompts.text(describeQuestion(question)));
}

export function askSecret(question: Question): Promise<string> {
  return ask<string>((prompts) => prompts.password(describeQuestion(question)));
}

function describeQuestion({ message, check }: Question) {
  const validate = (answer: string | undefined) => check?.(answer ?? "");
  return {
    message: escapeLines(message),
    validate,
    ...PROMPT_OPTIONS,
  };
}

export function askYes(message: string, initialValue = false): Promise<boolean> {
  return ask<boolean>((prompts) =>
    prompts.confirm({
      message: escapeLines(message),
      initialValue,
      ...PROMPT_OPTIONS,
    }),
  );
}

export async function confirmRemoval(what: string, { yes }: { readonly yes?: true }): Promise<void> {
  if (yes === true) return;
  if (!canPrompt()) refuseUsage(`--yes is missing: removing ${what} cannot be undone.`);
  if (!(await askYes(`Remove ${what} for good?`))) fail("Nothing was removed.");
}

export interface Choice {
  readonly value: string;
  readonly label: string;
}

export function askOne(message: string, choices: readonly Choice[]): Promise<string> {
  const question = { ...describeChoices(message, choices), maxItems: 12 };
  return ask<string>((prompts) => prompts.select<string>(question));
}

export function askSome(
  message: string,
  choices: readonly Choice[],
  initial: readonly string[],
): Promise<string[]> {
  const question = {
    ...describeChoices(message, choices),
    initialValues: [...initial],
    required: true,
  };
  return ask<string[]>((prompts) => prompts.multiselect<string>(question));
}

function describeChoices(message: string, choices: readonly Choice[]) {
  const options = choices.map(({ value, label }) => ({ value, label: escapeText(label) }));
  return { message: escapeLines(message), options, ...PROMPT_OPTIONS };
}

async function ask<T>(put: (prompts: typeof Prompts) => Promise<T | symbol>): Promise<T> {
  const answer = await put(await import("@clack/prompts"));
  if (typeof answer === "symbol") throw new Refusal("Cancelled: nothing was changed.", 130);
  return answer;
}

export async function readAll(): Promise<string> {
  let text = "";
  process.stdin.setEncoding("utf8");
  for await (const chunk of process.stdin) text += String(chunk);
  return text;
}
