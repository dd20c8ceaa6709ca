// What can come next on a command line.

import bash from "./bash.txt" with { type: "text" };
import fish from "./fish.txt" with { type: "text" };
import zsh from "./zsh.txt" with { type: "text" };
import { listSelectableGroups } from "../../config/changes/keys.ts";
import type { LoadedConfig } from "../../config/file/load.ts";
import { ENV_TOOLS } from "../../dialects/platforms.ts";
import { escapeText, isPrintable } from "../../lib/text/printable.ts";
import { describeGroup, openConfig } from "../access/config.ts";
import { type CommandRow, listFlags, type Parameter } from "../terminal/command.ts";
import { TOOLS } from "../tools/tools.ts";

const SCRIPTS = { bash, zsh, fish } as const;

export function printScript(shell: keyof typeof SCRIPTS): void {
  process.stdout.write(SCRIPTS[shell]);
}

type Suggestion = readonly [value: string, about: string];

/** This line makes the shell offer files. */
const FILES: Suggestion = [":files", ""];
const HELP: Parameter = ["-h, --help", "display help for command"];
const VERSION: Parameter = ["-V, --version", "output the version number"];

interface Spot {
  readonly names: readonly string[];
  readonly row: CommandRow;
  readonly positionals: number;
  readonly pending: Parameter | null;
  readonly literal: boolean;
}

export function complete(root: CommandRow, words: readonly string[]): void {
  const before = words.slice(0, -1).filter((word) => word !== "=");
  const start: Spot = {
    names: [],
    row: root,
    positionals: 0,
    pending: null,
    literal: false,
  };
  const spot = before.reduce(advance, start);
  const typed = words.at(-1) ?? "";
  const current = typed === "=" ? "" : typed;
  for (const [word, about] of suggest(spot, current))
    if (word === FILES[0] || word.startsWith(current))
      process.stdout.write(about === "" ? `${word}\n` : `${word}\t${about}\n`);
}

function suggest(spot: Spot, current: string): readonly Suggestion[] {
  const [flag = ""] = spot.literal ? [] : (/^--[\w-]+=/.exec(current) ?? []);
  const entry = findFlag(spot, flag.slice(0, -1));
  if (entry === null) return listNext(spot, current);
  return listValues(entry, spot).map((each) => (each === FILES ? each : [flag + each[0], each[1]]));
}

function advance(spot: Spot, word: string): Spot {
  const { pending, literal, positionals, row, names } = spot;
  if (pending !== null) return { ...spot, pending: null };
  if (word === "--" && !literal) return { ...spot, literal: true };
  const below = positionals === 0 && !literal ? row.commands?.[word] : undefined;
  if (below !== undefined)
    return {
      ...spot,
      names: [...names, word],
      row: below,
    };
  if (!literal && word.startsWith("-") && word !== "-") return advanceFlag(spot, word);
  return { ...spot, positionals: positionals + 1 };
}

function advanceFlag(spot: Spot, word: string): Spot {
  const entry = findFlag(spot, word.split("=")[0] ?? "");
  return entry?.[0].includes("<") && !word.includes("=") ? { ...spot, pending: entry } : spot;
}

function flagsOf({ names, row }: Spot): readonly Parameter[] {
  if (names.length === 0) return [VERSION, ...listFlags(row), HELP];
  return row.run === undefined ? [HELP] : [...listFlags(row), HELP];
}

function findFlag(spot: Spot, flag: string): Parameter | null {
  return flagsOf(spot).find(([form]) => form.split(/[ ,]+/).includes(flag)) ?? null;
}

function nameOf([form]: Parameter): string {
  return /--([\w-]+)/.exec(form)?.[1] ?? form.replace(/[^\w-]/g, "");
}

function listNext(spot: Spot, current: string): readonly Suggestion[] {
  const { row, pending, literal, positionals } = spot;
  if (pending !== null) return listValues(pending, spot);
  if (current.startsWith("-") && !literal)
    return flagsOf(spot).map(([form, about]) => [/--[\w-]+/.exec(form)?.[0] ?? form, about]);
  const { args = [], commands = {}, run } = row;
  const shown = literal || positionals > 0 ? [] : Object.entries(commands);
  const visible = shown.filter(([, { hidden }]) => hidden !== true);
  const below = visible.map(([name, { about }]): Suggestion => [name, about]);
  if (below.length > 0 && run === undefined) below.push(["help", HELP[1]]);
  const argument = args[positionals] ?? args.find(([form]) => form.includes("..."));
  return argument === undefined ? below : [...below, ...listValues(argument, spot)];
}

const NAME_KINDS = ["key", "group", "channel", "plan", "tool"] as const;

function listValues(entry: Parameter, { names }: Spot): readonly Suggestion[] {
  const [, , { choices } = {}] = entry;
  if (choices !== undefined) return choices.map((value) => [value, ""]);
  const name = nameOf(entry);
  if (["config", "file", "ledger", "out"].includes(name)) return [FILES];
  const subject = /^names?$/.test(name) ? (names.at(-2) ?? "") : name;
  const what = NAME_KINDS.find((each) => [each, `${each}s`, `${each}-name`].includes(subject));
  // A new key or channel cannot have an existing name.
  if (what === undefined || (names.at(-1) === "add" && what !== "group")) return [];
  const tools = [...TOOLS.values()].filter((tool) => !ENV_TOOLS.has(tool.name));
  if (what === "tool") return tools.map((tool) => [tool.name, tool.title]);
  try {
    // An unprintable name cannot be typed anyway.
    const found = listNames(what, openConfig({})).filter(([name]) => isPrintable(name));
    return found.map(([name, about]) => [name, escapeText(about)]);
  } catch {
    // A broken config offers no names: the tab key must not print an error.
    return [];
  }
}

function listNames(
  what: Exclude<(typeof NAME_KINDS)[number], "tool">,
  { catalog }: LoadedConfig,
): readonly Suggestion[] {
  const groups = listSelectableGroups(catalog, new Date());
  const lists = {
    key: [...catalog.keys.values()].map(({ name, group }) => [name, `${group.name}, ${group.platform}`]),
    group: groups.map((group) => [group.name, describeGroup(group)]),
    channel: [...catalog.channels.values()].map((channel) => {
      return [channel.name, `${channel.platform}, ${channel.baseUrl.host}`];
    }),
    plan: [...catalog.plans.values()].map((plan) => [plan.name, plan.groups.join(", ")]),
  } satisfies Record<typeof what, Suggestion[]>;
  return lists[what];
}
