// A command as data, and what Commander needs.

import { Argument, Command, Option } from "commander";
import { readSize } from "./terminal.ts";
import { wrapWords } from "./text.ts";

export type CommandTable = Readonly<Record<string, CommandRow>>;

export interface CommandRow {
  readonly about: string;
  readonly usage?: string;
  readonly args?: readonly Parameter[];
  readonly flags?: readonly Parameter[];
  readonly remark?: string;
  readonly examples: readonly string[];
  /** A result that is a number is the exit status. */
  readonly run?: (...given: never[]) => Promise<unknown>;
  /** Words after the first argument belong to another program. */
  readonly passesOptions?: true;
  readonly commands?: CommandTable;
  readonly heading?: string;
  readonly hidden?: true;
}

/** `<name>`, or `--name <name>`. */
export type Parameter = readonly [form: string, about: string, details?: ParameterDetails];

interface ParameterDetails {
  readonly choices?: readonly string[];
  readonly default?: string;
  /** Throws an InvalidArgumentError. */
  readonly read?: (text: string) => unknown;
  readonly required?: true;
}

export function call<Name extends string>(
  load: () => Promise<Record<Name, (...given: never[]) => unknown>>,
  name: Name,
): NonNullable<CommandRow["run"]> {
  return async (...given) => (await load())[name](...given);
}

export const CONFIG: Parameter = ["--config <file>", "the config file"];

export function listFlags({ flags = [] }: CommandRow): readonly Parameter[] {
  return flags.some(([form]) => form === CONFIG[0]) ? flags : [...flags, CONFIG];
}

function createCommand(name: string, row: CommandRow): Command {
  const command = new Command(name).description(row.about);
  if (row.heading !== undefined) command.helpGroup(row.heading);
  if (row.usage !== undefined) command.usage(row.usage);
  for (const entry of row.args ?? []) command.addArgument(detail(new Argument(entry[0], entry[1]), entry));
  if (row.run !== undefined) {
    addFlags(command, row);
    command.action(createAction(row.run));
    command.enablePositionalOptions();
  }
  if (row.passesOptions === true) command.passThroughOptions();
  addCommands(command, Object.entries(row.commands ?? {}));
  return addHelp(command, row);
}

export function addCommands(
  to: Command,
  rows: ReadonlyArray<readonly [name: string, row: CommandRow]>,
): void {
  for (const [name, row] of rows) to.addCommand(createCommand(name, row), { hidden: row.hidden === true });
}

export function addFlags(to: Command, row: CommandRow): void {
  for (const entry of listFlags(row)) to.addOption(createOption(entry));
}

function createOption(entry: Parameter): Option {
  const [form, about, { required = false } = {}] = entry;
  return detail(new Option(form, about), entry).makeOptionMandatory(required);
}

function detail<T extends Argument | Option>(target: T, [, , details = {}]: Parameter): T {
  if (details.choices !== undefined) target.choices(details.choices);
  if (details.read !== undefined) target.argParser(details.read);
  if (details.default !== undefined) target.default(details.default);
  return target;
}

type Action = (...given: unknown[]) => Promise<void>;

function createAction(run: NonNullable<CommandRow["run"]>): Action {
  return async (...given) => {
    const command = given.at(-1);
    const flags = command instanceof Command ? mergeFlags(command) : {};
    const status: unknown = await Reflect.apply(run, undefined, [...given.slice(0, -2), flags]);
    if (typeof status === "number") process.exitCode = status;
  };
}

function mergeFlags(command: Command): object {
  return { ...(command.parent !== null && mergeFlags(command.parent)), ...command.opts() };
}

export function addHelp(
  command: Command,
  { remark, examples }: Pick<CommandRow, "remark" | "examples">,
): Command {
  const wrap = (line: string): string[] => wrapWords(line, readSize().columns);
  if (remark !== undefined)
    command.addHelpText("after", () => `\n${remark.split("\n").flatMap(wrap).join("\n")}`);
  // Not wrapped: a line break would end the command.
  const lines = examples.map((example) => {
    const [line, meaning] = example.split(/  # (?=[^#]*$)/);
    return `  # ${meaning}\n  ${line}`;
  });
  return command.addHelpText("after", `\nExamples:\n${lines.join("\n")}`);
}
