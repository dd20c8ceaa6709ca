// What can come next on a command line, from the table of commands.

import bash from "./bash.txt" with { type: "text" };
import fish from "./fish.txt" with { type: "text" };
import zsh from "./zsh.txt" with { type: "text" };
import { type CommandRow, type Parameter, listFlags } from "../terminal/command.ts";
import { listBookedModels, loadPriceBook, sellerOf } from "../../billing/prices.ts";
import type { Catalog } from "../../config/catalog.ts";
import type { LoadedConfig } from "../../config/file/load.ts";
import { escapeUnprintable, isPrintable } from "../../lib/text/printable.ts";
import { matchesGlob } from "../../lib/text/glob.ts";
import { listSelectableGroups } from "../../config/changes/keys.ts";
import { describeGroup, openConfig } from "../access/config.ts";
import { ENV_TOOLS } from "../../dialects/platforms.ts";
import { TOOLS } from "../tools/programs/tools.ts";

const SCRIPTS = { bash, zsh, fish } as const;

/** The shell's side: it runs `gateway __complete` and shows its lines. */
export function printScript(shell: keyof typeof SCRIPTS): void {
  process.stdout.write(SCRIPTS[shell]);
}

/** This line makes the shell offer files. */
const FILES: Suggestion = { value: ":files", description: "" };
/** What Commander adds. */
const HELP: Parameter = ["-h, --help", "display help for command"];
const VERSION: Parameter = ["-V, --version", "output the version number"];
const HELP_COMMAND: Suggestion = { value: "help", description: "display help for command" };

interface CursorContext {
  /** The commands so far; the first one is the program. */
  readonly commands: readonly Named[];
  /** The number of words so far that are neither flags nor subcommands. */
  readonly positionals: number;
  /** The flag whose value comes next. */
  readonly pending: Parameter | null;
  /** After a lone `--`. */
  readonly literal: boolean;
  readonly config: string | undefined;
}

type Named = readonly [name: string, row: CommandRow];

/** `gateway __complete -- WORD… CURRENT`: one line per suggestion, `value<tab>description`, or `:files`. */
export function complete(root: CommandRow, words: readonly string[]): void {
  const lines = suggest(root, words).map(({ value, description }) =>
    description === "" ? value : `${value}\t${description}`,
  );
  process.stdout.write(lines.map((line) => `${line}\n`).join(""));
}

/** The user is typing the last word. */
function suggest(root: CommandRow, words: readonly string[]): Suggestion[] {
  const before = words.slice(0, -1).filter((word) => word !== "=");
  const typed = words.at(-1) ?? "";
  const current = typed === "=" ? "" : typed;
  const start: CursorContext = {
    commands: [["gateway", root]],
    positionals: 0,
    pending: null,
    literal: false,
    config: undefined,
  };
  const spot = before.reduce(advance, start);
  const [flag, joined] = splitFlag(current);
  const entry = joined === null || spot.literal ? null : findFlag(spot, flag);
  if (entry !== null) {
    return listValues(entry, spot)
      .map((each) => (each === FILES ? each : { ...each, value: `${flag}=${each.value}` }))
      .filter(({ value }) => value === FILES.value || value.startsWith(current));
  }
  return listNext(spot, current).filter((each) => each === FILES || each.value.startsWith(current));
}

function advance(spot: CursorContext, word: string): CursorContext {
  if (spot.pending !== null) {
    const config = nameOf(spot.pending) === "config" ? word : spot.config;
    return { ...spot, pending: null, config };
  }
  if (spot.literal) return { ...spot, positionals: spot.positionals + 1 };
  if (word === "--") return { ...spot, literal: true };
  if (word.startsWith("-") && word !== "-") return advanceFlag(spot, word);
  const below = spot.positionals === 0 ? rowOf(spot).commands?.[word] : undefined;
  return below === undefined
    ? { ...spot, positionals: spot.positionals + 1 }
    : { ...spot, commands: [...spot.commands, [word, below]] };
}

function advanceFlag(spot: CursorContext, word: string): CursorContext {
  const [flag, value] = splitFlag(word);
  const entry = findFlag(spot, flag);
  if (entry === null) return spot;
  if (value !== null) return nameOf(entry) === "config" ? { ...spot, config: value } : spot;
  return entry[0].includes("<") ? { ...spot, pending: entry } : spot;
}

function splitFlag(word: string): readonly [flag: string, value: string | null] {
  const mark = word.startsWith("--") ? word.indexOf("=") : -1;
  return mark < 0 ? [word, null] : [word.slice(0, mark), word.slice(mark + 1)];
}

function rowOf({ commands }: CursorContext): CommandRow {
  const [, row] = commands.at(-1) ?? [];
  return row ?? { about: "", examples: [] };
}

function flagsOf(spot: CursorContext): readonly Parameter[] {
  const row = rowOf(spot);
  if (spot.commands.length === 1) return [VERSION, ...listFlags(row), HELP];
  return row.run === undefined ? [HELP] : [...listFlags(row), HELP];
}

function findFlag(spot: CursorContext, flag: string): Parameter | null {
  return flagsOf(spot).find(([form]) => form.split(/[ ,]+/).includes(flag)) ?? null;
}

/** `key-name` of `--key-name <name>`, `names` of `<names...>`. */
function nameOf([form]: Parameter): string {
  return /--([\w-]+)/.exec(form)?.[1] ?? form.replace(/[^\w-]/g, "");
}

function listNext(spot: CursorContext, current: string): Suggestion[] {
  const { pending, literal, positionals } = spot;
  if (pending !== null) return listValues(pending, spot);
  if (current.startsWith("-") && !literal)
    return flagsOf(spot).map(([form, description]) => ({
      value: /--[\w-]+/.exec(form)?.[0] ?? form,
      description,
    }));
  const { args = [] } = rowOf(spot);
  const below = literal || positionals > 0 ? [] : listCommands(rowOf(spot));
  const argument = args[positionals] ?? args.find(([form]) => form.includes("..."));
  return argument === undefined ? below : [...below, ...listValues(argument, spot)];
}

function listCommands({ commands = {}, run }: CommandRow): Suggestion[] {
  const shown = Object.entries(commands).filter(([, { hidden }]) => hidden !== true);
  const suggestions = shown.map(([value, { about }]) => ({ value, description: about }));
  return suggestions.length === 0 || run !== undefined ? suggestions : [...suggestions, HELP_COMMAND];
}

/** From its choices, otherwise from its name: `--group`, `--key-name`, the `name` of `plans activate`. */
function listValues(entry: Parameter, { commands, config }: CursorContext): Suggestion[] {
  const [, , { choices } = {}] = entry;
  if (choices !== undefined) return choices.map((value) => ({ value, description: "" }));
  const name = nameOf(entry);
  if (["config", "file", "ledger", "out"].includes(name)) return [FILES];
  const [owner, own] = [commands.at(-2)?.[0] ?? "", commands.at(-1)?.[0]];
  const subject = /^names?$/.test(name) ? owner : name;
  const what = NAME_KINDS.find((each) => [each, `${each}s`, `${each}-name`].includes(subject));
  // The name of a new key cannot be an existing one.
  if (what === undefined || (own === "add" && what !== "group")) return [];
  return [...readNames(what, config)];
}

// The names come from the config file and without the network. A broken config offers none: the tab key must not print an
// error.

const NAME_KINDS = ["key", "group", "channel", "plan", "model", "tool"] as const;
type NameKind = (typeof NAME_KINDS)[number];

interface Suggestion {
  readonly value: string;
  /** A few words, or empty. */
  readonly description: string;
}

function readNames(what: NameKind, config: string | undefined): Suggestion[] {
  if (what === "tool")
    return [...TOOLS.values()]
      .filter(({ name }) => !ENV_TOOLS.has(name))
      .map(({ name, title }) => ({ value: name, description: title }));
  try {
    const names = listNames(what, openConfig(config === undefined ? {} : { config }));
    // Each suggestion is a line. Such a name cannot be typed anyway.
    return names
      .filter(({ value }) => isPrintable(value))
      .map(({ value, description }) => ({ value, description: escapeUnprintable(description) }));
  } catch {
    return [];
  }
}

function listNames(what: Exclude<NameKind, "tool">, { catalog, path }: LoadedConfig): Suggestion[] {
  switch (what) {
    case "key":
      return [...catalog.keys.values()].map(({ name, group }) => ({
        value: name,
        description: `${group.name}, ${group.platform}`,
      }));
    case "group":
      return listSelectableGroups(catalog, new Date()).map((group) => ({
        value: group.name,
        description: describeGroup(group),
      }));
    case "channel":
      return [...catalog.channels.values()].map(({ name, platform, baseUrl }) => ({
        value: name,
        description: `${platform}, ${baseUrl.host}`,
      }));
    case "plan":
      return [...catalog.plans.values()].map(({ name, groups }) => ({
        value: name,
        description: groups.join(", "),
      }));
    case "model":
      return listModels(catalog, path).map((value) => ({ value, description: "" }));
  }
}

/** The models that the config names, and those of the price book that a channel accepts. */
function listModels({ channels, prices }: Catalog, path: string): string[] {
  const book = loadPriceBook(path);
  const names = [...channels.values()].flatMap((channel) => {
    const { models, aliases } = channel;
    const { provider, makers } = sellerOf(channel);
    return [
      ...aliases.keys(),
      ...(models ?? []).filter((model) => !model.includes("*")),
      ...listBookedModels(book, provider === null ? makers : [provider])
        .map(({ id }) => id)
        .filter((id) => models?.some((glob) => matchesGlob(glob, id)) ?? true),
    ];
  });
  return [...new Set([...names, ...prices.keys()])];
}
