// A menu that returns after each action, and continues after an error.

import { getErrorMessage } from "../../lib/errors.ts";
import { askOne, Cancelled, printNote } from "../terminal/terminal.ts";

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
