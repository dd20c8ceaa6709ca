// Runs the command tree: what goes wrong becomes a sentence on stderr and an exit status.

import { type Command, CommanderError } from "commander";
import { canAsk } from "./terminal.ts";
import { suggestNearest } from "../config/nearest.ts";

/** 0 done; 1 it failed; 2 wrong usage or a bad config file. */
export async function runProgram(program: Command): Promise<void> {
  prepare(program);
  process.stdout.once("error", endUnread);
  // What was to be told is lost; what was asked for need not be.
  process.stderr.on("error", () => {});
  try {
    await program.parseAsync(readWords(process.argv.slice(2)), { from: "user" });
  } catch (error) {
    process.exitCode = reportFailure(error);
  }
}

/** Whoever read the output has left, as `head` does, or it has no room. A command that goes on all the same listens itself. */
function endUnread(error: Error & { readonly code?: string }): void {
  const hasLeft = error.code === "EPIPE";
  if (!hasLeft) process.stderr.write(`gateway: stdout cannot be written: ${error.message}.\n`);
  if (process.stdout.listenerCount("error") > 0) return;
  process.stdout.on("error", () => {});
  // What has come out by now, a ledger that is not right perhaps, still becomes the exit status.
  setImmediate(() => process.exit(hasLeft ? undefined : 1));
}

/** Commander knows neither `-v` nor help on a command of a command. */
function readWords([first = chooseBare(), ...rest]: readonly string[]): string[] {
  if (first === "help") return [...rest.filter((word) => word !== "help"), "--help"];
  return [first === "-v" ? "--version" : first, ...rest];
}

/** Nothing was typed after the program's name. */
function chooseBare(): string {
  return canAsk() && process.stdout.isTTY ? "console" : "--help";
}

/** Commander's own exits would cut off what is still to be written. */
function prepare(command: Command): void {
  command.exitOverride().showSuggestionAfterError();
  command.showHelpAfterError(`\`${nameCommand(command)} --help\` tells more.`);
  command.configureOutput({ outputError: (text, write) => write(reword(text, command)) });
  if (command.commands.length > 0) command.addHelpText("before", () => refuseOtherHelp(command));
  command.commands.forEach(prepare);
}

function nameCommand(command: Command): string {
  return command.parent === null ? command.name() : `${nameCommand(command.parent)} ${command.name()}`;
}

/** Commander shows the help of `keys` to whoever asks for that of `keys lsit`. */
function refuseOtherHelp(command: Command): string {
  const word = command.args.find((arg) => arg !== "help");
  if (word === undefined || word.startsWith("-")) return "";
  return command.error(`error: unknown command '${word}'${suggestNearest(word, listNames(command))}`);
}

function listNames(command: Command): string[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .map((each) => each.name());
}

const TOO_MANY = "error: too many arguments";

/** As the other messages are worded, and with the choice that was probably meant. */
function reword(text: string, command: Command): string {
  // It does something without a command of its own, and takes none that it does not know.
  const [word] = command.commands.length > 0 && text.startsWith(TOO_MANY) ? command.args : [];
  if (word !== undefined)
    return `gateway: unknown command '${word}'${suggestNearest(word, listNames(command))}\n`;
  const [, given, value = "", list = ""] =
    /^error: (.*?)'?([^' ]*)' is invalid.* Allowed choices are (.*)\.\n$/.exec(text) ?? [];
  if (given === undefined) return text.replace(/^error: /, "gateway: ");
  const flag = /^option '(--[\w-]+)/.exec(given)?.[1];
  const subject = flag === undefined ? "There is no" : `${flag}: there is no`;
  return `gateway: ${subject} "${value}"${suggestNearest(value, list.split(", "))}. Known: ${list}.\n`;
}

function reportFailure(error: unknown): number {
  // Commander has told it already.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  const message = error instanceof Error ? error.message : String(error);
  process.stderr.write(`gateway: ${message}\n`);
  const named = error instanceof Error && "exitStatus" in error ? error.exitStatus : 1;
  return typeof named === "number" ? named : 1;
}
