// A menu that returns after each action, and continues after an error.

import { describe } from "../config-access.ts";
import { askOne, Cancelled, tell } from "../terminal.ts";

export interface Entry {
  readonly label: string;
  readonly run: () => void | Promise<void>;
}

/** Calls `entries` each time. The last entry or Escape ends the menu, Ctrl-C throws. */
export async function runMenu(
  message: string,
  entries: () => readonly Entry[],
  last = "Back",
): Promise<void> {
  for (;;) {
    const entry = await chooseEntry(message, entries(), last);
    if (entry === null) return;
    await runEntry(entry.run);
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

async function runEntry(run: Entry["run"]): Promise<void> {
  try {
    await run();
  } catch (error) {
    if (error instanceof Cancelled && error.interrupted) throw error;
    if (error instanceof Cancelled) tell(error.message);
    else tell(describe(error), "yellow");
  }
}
