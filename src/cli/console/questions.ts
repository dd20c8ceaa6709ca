// Questions that several menus ask.

import type { Limits } from "../../config/catalog.ts";
import { listLimits, readFuture } from "../../config/changes/names.ts";
import { findChoices, LIMIT_NAMES, readLimits } from "../../config/changes/limits.ts";
import type { Settings } from "../access/settings.ts";
import { complain } from "../setup/init/init.ts";
import { askOne, askText, listChoices } from "../terminal/terminal.ts";

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
