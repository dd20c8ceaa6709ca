// Runs the commands.

import { type Argument, Command, CommanderError } from "commander";
import { messageOf } from "../lib/errors.ts";
import { escapeLines } from "../lib/text/printable.ts";
import { VERSION } from "../lib/version.ts";
import { addCommands, addHelp, addFlags, type CommandRow } from "./terminal/command.ts";
import { printNote, wrapMessage } from "./terminal/terminal.ts";
import { noteConfig } from "./terminal/own-command.ts";
import type { ConfigFlags } from "./access/config.ts";
import { explainRetired } from "../config/file/retired.ts";
import { didYouMean } from "../lib/text/nearest.ts";

export async function runProgram(row: CommandRow): Promise<void> {
  const words = normalizeArguments(process.argv.slice(2), row);
  const program = createProgram(row, words[0] ?? "");
  prepare(program);
  program.hook("preAction", (_, command) => noteConfig(command.opts<ConfigFlags>().config));
  process.stdout.once("error", stopWithoutReader);
  process.stderr.on("error", () => {});
  try {
    await program.parseAsync(words, { from: "user" });
  } catch (error) {
    process.exitCode = reportFailure(error);
  }
}

function createProgram({ commands = {}, ...row }: CommandRow, first: string): Command {
  const program = new Command("gateway").version(VERSION).description(row.about).enablePositionalOptions();
  addFlags(program, row);
  const all = Object.entries(commands);
  const [last = ""] = all.flatMap(([, { heading }]) => heading ?? []).slice(-1);
  program.commandsGroup(last).helpCommand(true);
  const only = all.filter(([name]) => name === first);
  addCommands(program, only.length > 0 ? only : all);
  return addHelp(program, row);
}

/** Stdout fails if its reader has left, as `head` does, or the disk is full. */
function stopWithoutReader(error: Error & { readonly code?: string }): void {
  const hasLeft = error.code === "EPIPE";
  if (!hasLeft) process.stderr.write(`gateway: cannot write to stdout: ${error.message}.\n`);
  if (process.stdout.listenerCount("error") > 0) return;
  process.stdout.on("error", () => {});
  // `undefined` keeps the command's exit status.
  setImmediate(() => process.exit(hasLeft ? undefined : 1));
}

const OVERVIEW = "__overview";

const ALIASES: Readonly<Record<string, string>> = {
  create: "add",
  new: "add",
  delete: "remove",
  rm: "remove",
  ls: "list",
};

function normalizeArguments(words: readonly string[], row: CommandRow): string[] {
  const [first = "", ...rest] = words;
  const configWords = first === "--config" ? 2 : first.startsWith("--config=") ? 1 : 0;
  if (words.length === configWords) return [OVERVIEW, ...words];
  const named = row.commands?.[first];
  if (named?.commands !== undefined) return [first, ...readBelow(rest, named)];
  if (first === "help") return [...rest.filter((word) => word !== "help"), "--help"];
  return [["-v", "version"].includes(first) ? "--version" : first, ...rest];
}

function readBelow([word = "", ...others]: readonly string[], row: CommandRow): string[] {
  if (word === "help") return [...others, "--help"];
  const { commands = {}, run } = row;
  const meant = ALIASES[word] ?? word;
  // `channels list` does what `channels` does.
  const isItself = meant === "list" && run !== undefined && !(meant in commands);
  if (word === "" || isItself) return others;
  return [meant in commands ? meant : word, ...others];
}

const MIN_HELP_CELLS = 20;

/** Commander's own exit would lose unwritten output. */
function prepare(command: Command): void {
  command.exitOverride().showSuggestionAfterError();
  command.configureHelp({ minWidthToWrap: MIN_HELP_CELLS, subcommandTerm });
  command.showHelpAfterError(`See \`${nameCommand(command)} --help\`.`);
  command.configureOutput({
    outputError: (text, write) => {
      const retired = findRetired(text, command);
      if (retired !== null) command.showHelpAfterError(false);
      write(wrapMessage(escapeLines(retired ?? reword(text, command))));
    },
  });
  if (command.commands.length > 0) command.addHelpText("before", () => refuseOtherHelp(command));
  command.commands.forEach(prepare);
}

/** Leaves out "[options]", because the descriptions need the room. */
function subcommandTerm(command: Command): string {
  return [command.name(), ...command.registeredArguments.map(nameArgument)].join(" ");
}

function nameArgument(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? "..." : ""}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}

function nameCommand(command: Command): string {
  return command.parent === null ? command.name() : `${nameCommand(command.parent)} ${command.name()}`;
}

/** Commander would show the help of `keys` for `keys lsit --help`. */
function refuseOtherHelp(command: Command): string {
  const word = command.args.find((arg) => arg !== "help");
  if (word === undefined || word.startsWith("-")) return "";
  return command.error(`error: unknown command '${word}'${didYouMean(word, listNames(command))}`);
}

function listNames(command: Command): string[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .map((each) => each.name());
}

function findRetired(text: string, command: Command): string | null {
  const [, word, value] = /^error: (?:unknown command '([^']+)'|.*?'?([^' ]*)' is invalid)/.exec(text) ?? [];
  const place = nameCommand(command).split(" ").slice(1);
  const found = [word, value, ...command.args]
    .map((given) => explainRetired([...place, given ?? ""].join(" ")))
    .find((each) => each !== null);
  return found === undefined ? null : `gateway: ${found}\n`;
}

const TOO_MANY = "error: too many arguments";

function reword(text: string, command: Command): string {
  // Commander takes an unknown subcommand for an argument.
  const [word] = command.commands.length > 0 && text.startsWith(TOO_MANY) ? command.args : [];
  if (word !== undefined)
    return `gateway: unknown command '${word}'${didYouMean(word, listNames(command))}\n`;
  const [, given, value = "", list = ""] =
    /^error: (.*?)'?([^' ]*)' is invalid.* Allowed choices are (.*)\.\n$/.exec(text) ?? [];
  if (given === undefined)
    return text
      .replace(/^error: /, "gateway: ")
      .replace(/\n\(Did you mean (.*)\?\)/, ' (did you mean "$1"?)');
  const flag = /^option '(--[\w-]+)/.exec(given)?.[1];
  const subject = flag === undefined ? "There is no" : `${flag}: there is no`;
  return `gateway: ${subject} "${value}"${didYouMean(value, list.split(", "))}. Known: ${list}.\n`;
}

function reportFailure(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  printNote(`gateway: ${messageOf(error)}`);
  const named = error instanceof Error && "exitStatus" in error ? error.exitStatus : 1;
  return typeof named === "number" ? named : 1;
}
