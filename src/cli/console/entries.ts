// The menus of `gateway console` for keys, models, prices and spending. Each entry calls the same function as the command.

import type { Dimension } from "../../billing/report/report.ts";
import type { Key } from "../../config/catalog.ts";
import { listSelectableGroups } from "../../config/changes/keys.ts";
import { showModels } from "../catalog/models.ts";
import { findKey } from "../../config/changes/names.ts";
import { type ConfigFlags, describeGroup, openConfig } from "../access/config.ts";
import { addKeys } from "../keys/add.ts";
import { limitKeys, moveKey, removeKeys, rotateKey, setKeysDisabled } from "../keys/change.ts";
import { showKey } from "../keys/list.ts";
import { verify } from "../money/ledger/ledger.ts";
import { checkPrices, setPrices, showPrices } from "../money/prices/prices.ts";
import { updatePrices } from "../money/prices/prices-update.ts";
import { showUsage } from "../money/usage/usage.ts";
import { askOne, askText, askYes, type Choice } from "../terminal/terminal.ts";
import { chooseEntry, type Entry } from "./menu.ts";
import { askLimit, askWhen, requireText } from "./questions.ts";

export function keyEntries(flags: ConfigFlags): Entry[] {
  const { keys } = openConfig(flags).catalog;
  const change = async (): Promise<void> => {
    const choices = [...keys.values()].map(({ name, group, disabled }) => ({
      value: name,
      label: `${name} · ${group.name} (${describeGroup(group)})${disabled ? " · disabled" : ""}`,
    }));
    const name = await askOne("Which key?", choices);
    const entry = await chooseEntry(
      `The key "${name}"`,
      listChanges(findKey(openConfig(flags).catalog, name).key, flags),
      "Back",
    );
    await entry?.run();
  };
  return [
    { label: "Create a key", run: () => addKeys(flags), changes: true },
    ...(keys.size === 0 ? [] : [{ label: "Change a key", run: change, changes: true } as const]),
  ];
}

function listChanges(key: Key, flags: ConfigFlags): Entry[] {
  const { name, disabled } = key;
  return [
    { label: "Show details", run: () => showKey(name, flags) },
    {
      label: disabled ? "Enable" : "Disable",
      run: () => setKeysDisabled([name], !disabled, flags),
    },
    { label: "Create a new secret", run: () => rotate(key, flags) },
    { label: "Move to another group", run: () => moveKey(name, flags) },
    { label: "Set a limit", run: () => askLimit(key.limits, (word) => limitKeys(name, [word], flags)) },
    { label: "Remove", run: () => removeKeys([name], flags) },
  ];
}

async function rotate({ name, expires }: Key, flags: ConfigFlags): Promise<void> {
  if (!(await askYes(`Create a new secret for "${name}"? The old one stops working.`))) return;
  const isOver = expires !== null && expires <= new Date();
  const until = isOver
    ? { expires: await askWhen("The key has expired. When should it expire now?", "30d") }
    : {};
  await rotateKey(name, { ...flags, ...until });
}

export async function showSomeModels(flags: ConfigFlags): Promise<void> {
  const groups = listSelectableGroups(openConfig(flags).catalog, new Date());
  const each: Choice[] = groups.map((group) => ({
    value: group.name,
    label: `${group.name} (${describeGroup(group)})`,
  }));
  const all = "";
  const group =
    each.length < 2 ? all : await askOne("Which group?", [{ value: all, label: "All groups" }, ...each]);
  await showModels(group === all ? flags : { ...flags, group });
}

const PERIODS: readonly Choice[] = [
  { value: "1d", label: "Today" },
  { value: "7d", label: "The last seven days" },
  { value: "30d", label: "The last thirty days" },
  { value: "", label: "Everything" },
];

const REPORTS = ["day", "month", "key", "group", "model", "channel"] as const satisfies readonly Dimension[];

export function spendingEntries(flags: ConfigFlags): Entry[] {
  return [
    ...REPORTS.map((by): Entry => ({
      label: `By ${by}`,
      run: async () => {
        const since = await askOne("Which period?", PERIODS);
        showUsage({ ...flags, by, ...(since === "" ? {} : { since }) });
      },
    })),
    { label: "Verify the ledger", run: () => verify(flags) },
  ];
}

export function priceEntries(flags: ConfigFlags): Entry[] {
  const askModel = (): Promise<string> => askText({ message: "Which model?", check: requireText });
  const set = async (): Promise<void> => {
    const model = await askModel();
    const message = "Prices in USD per million tokens (such as input=3 output=15; input=none removes one)";
    const words = await askText({ message, check: requireText });
    await setPrices(model, words.trim().split(/[\s,]+/), flags);
  };
  return [
    { label: "Models in use without a price", run: () => void checkPrices(flags) },
    { label: "The prices of a model", run: async () => showPrices(await askModel(), flags) },
    { label: "Set a price", run: set },
    {
      label: "What an update of the price book would change",
      run: () => updatePrices({ ...flags, dryRun: true }),
    },
    { label: "Update the price book", run: () => updatePrices(flags) },
  ];
}
