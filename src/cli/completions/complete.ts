// What can come next on a command line, from the command tree. The caller supplies the names of keys, groups, ….

import type { Argument, Command, Option } from "commander";

const NAME_KINDS = ["key", "group", "channel", "plan", "model", "tool"] as const;
export type NameKind = (typeof NAME_KINDS)[number];

export interface Suggestion {
  readonly value: string;
  /** A few words, or empty. */
  readonly description: string;
}

/** `config`: the file that the line gives with --config, if any. */
export type ReadNames = (what: NameKind, config: string | undefined) => readonly Suggestion[];

/** This line makes the shell offer files. */
const FILES: Suggestion = { value: ":files", description: "" };

interface CursorContext {
  readonly command: Command;
  /** The number of words so far that are neither flags nor subcommands. */
  readonly positionals: number;
  /** The flag whose value comes next. */
  readonly pending: Option | null;
  /** After a lone `--`. */
  readonly literal: boolean;
  readonly config: string | undefined;
}

/** The user is typing the last word. */
export function suggest(root: Command, words: readonly string[], read: ReadNames): Suggestion[] {
  const before = words.slice(0, -1).filter((word) => word !== "=");
  const typed = words.at(-1) ?? "";
  const current = typed === "=" ? "" : typed;
  const start: CursorContext = {
    command: root,
    positionals: 0,
    pending: null,
    literal: false,
    config: undefined,
  };
  const spot = before.reduce(advance, start);
  const [flag, joined] = splitFlag(current);
  const option = joined === null || spot.literal ? null : findOption(spot.command, flag);
  if (option !== null) {
    return listValues(option, option.attributeName(), spot, read)
      .map((each) => (each === FILES ? each : { ...each, value: `${flag}=${each.value}` }))
      .filter(({ value }) => value === FILES.value || value.startsWith(current));
  }
  return listNext(spot, current, read).filter((each) => each === FILES || each.value.startsWith(current));
}

function advance(spot: CursorContext, word: string): CursorContext {
  if (spot.pending !== null) {
    const config = spot.pending.attributeName() === "config" ? word : spot.config;
    return { ...spot, pending: null, config };
  }
  if (spot.literal) return { ...spot, positionals: spot.positionals + 1 };
  if (word === "--") return { ...spot, literal: true };
  if (word.startsWith("-") && word !== "-") return advanceFlag(spot, word);
  const command = spot.positionals === 0 ? findCommand(spot.command, word) : undefined;
  return command === undefined ? { ...spot, positionals: spot.positionals + 1 } : { ...spot, command };
}

function advanceFlag(spot: CursorContext, word: string): CursorContext {
  const [flag, value] = splitFlag(word);
  const option = findOption(spot.command, flag);
  if (option === null) return spot;
  if (value !== null) return option.attributeName() === "config" ? { ...spot, config: value } : spot;
  return option.required ? { ...spot, pending: option } : spot;
}

function findCommand(command: Command, word: string): Command | undefined {
  return command.commands.find((each) => each.name() === word || each.aliases().includes(word));
}

function splitFlag(word: string): readonly [flag: string, value: string | null] {
  const mark = word.startsWith("--") ? word.indexOf("=") : -1;
  return mark < 0 ? [word, null] : [word.slice(0, mark), word.slice(mark + 1)];
}

function findOption(command: Command, flag: string): Option | null {
  return command.options.find((option) => option.long === flag || option.short === flag) ?? null;
}

function listNext(spot: CursorContext, current: string, read: ReadNames): Suggestion[] {
  const { command, pending, literal, positionals } = spot;
  if (pending !== null) return listValues(pending, pending.attributeName(), spot, read);
  if (current.startsWith("-") && !literal) return listFlags(command);
  const commands = literal || positionals > 0 ? [] : listCommands(command);
  const argument = command.registeredArguments[positionals] ?? findVariadic(command);
  if (argument === undefined) return commands;
  return [...commands, ...listValues(argument, argument.name(), spot, read)];
}

function findVariadic(command: Command): Argument | undefined {
  return command.registeredArguments.find((argument) => argument.variadic);
}

function listCommands(command: Command): Suggestion[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .map((each) => ({ value: each.name(), description: each.description() }));
}

function listFlags(command: Command): Suggestion[] {
  return command
    .createHelp()
    .visibleOptions(command)
    .map((option) => ({ value: option.long ?? option.short ?? "", description: option.description }));
}

/** From its choices, otherwise from its name: `--group`, `--key-name`, the `name` of `plans activate`. */
function listValues(
  wants: Option | Argument,
  name: string,
  spot: CursorContext,
  read: ReadNames,
): Suggestion[] {
  if (wants.argChoices !== undefined) return wants.argChoices.map((value) => ({ value, description: "" }));
  if (["adopt", "config", "file", "ledger", "out"].includes(name)) return [FILES];
  const owner = spot.command.parent?.name() ?? "";
  const subject = /^names?$/.test(name) ? owner : name;
  const what = NAME_KINDS.find(
    (each) => subject === each || subject === `${each}s` || subject === `${each}Name`,
  );
  // The name of a new key cannot be an existing one.
  if (what === undefined || spot.command.name() === "add")
    return what === "group" ? [...read(what, spot.config)] : [];
  return [...read(what, spot.config)];
}
