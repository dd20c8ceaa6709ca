// A menu that returns after each action and continues after an error, and the questions that several menus ask.

import { getErrorMessage } from "../../lib/errors.ts";
import { askOne, Cancelled, printNote, askText, listChoices } from "../terminal/terminal.ts";
import type { Limits } from "../../config/catalog.ts";
import { listLimits, readFuture } from "../../config/changes/names.ts";
import { findChoices, LIMIT_NAMES, readLimits } from "../../config/changes/limits.ts";
import type { Settings } from "../access/settings.ts";
import { complain } from "../setup/init/init.ts";

export interface Entry {
  readonly label: string;
  readonly run: () => void | Promise<void>;
  /** The entry can change what the menu lists, which is then shown again. */
  readonly changes?: true;
}

export interface Menu {
  readonly message: string;
  /** Called again each time. */
  readonly entries: () => readonly Entry[];
  /** The label of the entry that ends the menu. */
  readonly last?: string;
  /** Prints the list that the menu is about. */
  readonly show?: () => void | Promise<void>;
}

/** Ends with the last entry or Escape. Ctrl-C throws. */
export async function runMenu({ message, entries, last = "Back", show = () => {} }: Menu): Promise<void> {
  await show();
  for (;;) {
    const entry = await chooseEntry(message, entries(), last);
    if (entry === null) return;
    if ((await runEntry(entry)) && entry.changes === true) await show();
  }
}

/** Asks once. Returns null for the last entry or Escape. */
export async function chooseEntry(
  message: string,
  entries: readonly Entry[],
  last: string,
): Promise<Entry | null> {
  const labels = [...entries.map(({ label }) => label), last];
  const choices = labels.map((label, index) => ({ value: String(index), label }));
  const chosen = await askOrBack(() => askOne(message, choices));
  return chosen === null ? null : (entries[Number(chosen)] ?? null);
}

/** Escape goes back one question and cancels the action. */
async function askOrBack<T>(ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof Cancelled && !error.interrupted) return null;
    throw error;
  }
}

/** False if the user went back, or the entry failed. */
async function runEntry({ run }: Entry): Promise<boolean> {
  try {
    await run();
    return true;
  } catch (error) {
    if (!(error instanceof Cancelled)) printNote(getErrorMessage(error), "yellow");
    else if (error.interrupted) throw error;
    return false;
  }
}

export function askWhen(message: string, initial: string): Promise<string> {
  const check = (text: string): string | undefined => {
    const moment = readFuture(text, new Date());
    const fits = text === "never" || (moment !== null && moment > new Date());
    return fits ? undefined : "Enter a duration or a future date, such as 30d or 2027-01-31, or never.";
  };
  return askText({ message: `${message} (30d, a date, never)`, initial, check });
}

/** Gives `set` a word such as `usd_per_day=5`. */
export async function askLimit(limits: Limits, set: (word: string) => Promise<void>): Promise<void> {
  const now = listLimits(limits);
  const name = await askOne(
    "Which limit?",
    LIMIT_NAMES.map((each) => ({ value: each, label: `${each} · ${now[each] ?? "none"}` })),
  );
  const choices = findChoices(name);
  if (choices !== undefined) {
    await set(`${name}=${await askOne(describeChoice(name), listChoices(choices))}`);
    return;
  }
  const value = await askText({
    message: name.startsWith("usd_")
      ? "At most how many USD? (such as 5 or 0.50, or none)"
      : "At most how many? (or none)",
    initial: String(now[name] ?? ""),
    check: (text) => requireText(text) ?? complain((value) => readLimits([`${name}=${value}`]))(text),
  });
  await set(`${name}=${value}`);
}

function describeChoice(name: string): string {
  return name === "strict"
    ? "Let a request in only if the most that it can cost fits?"
    : "What about models without a price, which no limit counts?";
}

/** Gives `set` a word such as `priority=2`. */
export async function askSetting(settings: Settings, set: (word: string) => Promise<void>): Promise<void> {
  const choices = Object.entries(settings).map(([value, { form }]) => ({
    value,
    label:
      form === "list"
        ? `${value} (names with commas between them)`
        : form === "map"
          ? `${value}.NAME`
          : value,
  }));
  const setting = await askOne("Which setting?", choices);
  const isMap = settings[setting]?.form === "map";
  const name = isMap
    ? `${setting}.${await askText({ message: "Which name?", check: requireText })}`
    : setting;
  const value = await askText({ message: `New value of ${name} (none removes it)`, check: requireText });
  await set(`${name}=${value}`);
}

export function requireText(text: string): string | undefined {
  return text.trim() === "" ? "Enter a value. Escape goes back." : undefined;
}
