// The menus of `gateway console`. Each entry calls the same function as the command.

import type { Dimension } from "../../billing/report/report.ts";
import { type Key, isPlanInForce, type Plan } from "../../config/catalog.ts";
import { listSelectableGroups } from "../../config/changes/keys.ts";
import { showModels } from "../catalog/models.ts";
import { findKey, findGroup, formatMoment } from "../../config/changes/names.ts";
import { type ConfigFlags, describeGroup, openConfig } from "../access/config.ts";
import { addKeys } from "../keys/add.ts";
import { limitKeys, moveKey, removeKeys, rotateKey, setKeysDisabled, limitGroup } from "../keys/change.ts";
import { showKey } from "../keys/list.ts";
import { verify } from "../money/ledger/ledger.ts";
import { checkPrices, setPrices, showPrices } from "../money/prices/prices.ts";
import { updatePrices } from "../money/prices/prices-update.ts";
import { showUsage } from "../money/usage/usage.ts";
import {
  askOne,
  askText,
  askYes,
  type Choice,
  askSecret,
  listChoices,
  askSome,
} from "../terminal/terminal.ts";
import { chooseEntry, type Entry, askLimit, askWhen, requireText, askSetting } from "./menu.ts";
import { readSecretText } from "../../config/yaml/scalars.ts";
import { actOnChannel, type ChannelAction, showChannels } from "../channels/channels.ts";
import { addChannel } from "../setup/channels/add.ts";
import { listChannelSettings, removeChannel, setChannel } from "../setup/channels/change.ts";
import { complain } from "../setup/init/init.ts";
import { needsAddress, PRESETS } from "../setup/presets.ts";
import { addGroup, GROUP_SETTINGS, removeGroup, setGroup } from "../catalog/groups.ts";
import { activatePlan, addPlan, deactivatePlan, removePlan } from "../catalog/plans.ts";

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
      listKeyChanges(findKey(openConfig(flags).catalog, name).key, flags),
      "Back",
    );
    await entry?.run();
  };
  return [
    { label: "Create a key", run: () => addKeys(flags), changes: true },
    ...(keys.size === 0 ? [] : [{ label: "Change a key", run: change, changes: true } as const]),
  ];
}

function listKeyChanges(key: Key, flags: ConfigFlags): Entry[] {
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

export function channelEntries(flags: ConfigFlags): Entry[] {
  const choose = (): Promise<string> =>
    askOne("Which channel?", listChoices(openConfig(flags).catalog.channels.keys()));
  const act = (label: string, name: ChannelAction): Entry => ({
    label,
    run: async () => actOnChannel(name, await choose(), flags),
  });
  const change = async (): Promise<void> => {
    const name = await choose();
    const entry = await chooseEntry(`The channel "${name}"`, listChannelChanges(name, flags), "Back");
    await entry?.run();
  };
  return [
    { label: "Refresh", run: () => showChannels(flags) },
    { label: "Watch live", run: () => showChannels({ ...flags, watch: true }) },
    act("Check a channel now", "probe"),
    act("Disable a channel", "disable"),
    act("Enable a channel", "enable"),
    { label: "Add a channel", run: () => add(flags), changes: true },
    { label: "Change a channel", run: change, changes: true },
  ];
}

const URL_CHOICE = "";

async function add(flags: ConfigFlags): Promise<void> {
  const { channels, groups } = openConfig(flags).catalog;
  const presets = PRESETS.filter((preset) => !needsAddress(preset));
  const chosen = await askOne("Which provider?", [
    ...presets.map(({ id, title }) => ({ value: id, label: title })),
    { value: URL_CHOICE, label: "Another one, by its base URL" },
  ]);
  const what =
    chosen === URL_CHOICE ? await askText({ message: "The base URL", check: requireText }) : chosen;
  const preset = presets.find(({ id }) => id === what);
  const isNew = preset !== undefined && !channels.has(preset.channel);
  const name = isNew ? undefined : await askText({ message: "Name of the channel", check: requireText });
  const group = await askOne("For which group?", [
    { value: "", label: "A new group" },
    ...[...groups.values()]
      .filter(({ platform }) => preset === undefined || preset.platform === platform)
      .map((each) => ({ value: each.name, label: `${each.name} (${each.platform})` })),
  ]);
  await addChannel(what, {
    ...flags,
    check: true,
    ...(name !== undefined && { name }),
    ...(group !== "" && { group }),
  });
}

function listChannelChanges(name: string, flags: ConfigFlags): Entry[] {
  const checked = { ...flags, check: true };
  const changeCredential = async (): Promise<void> => {
    const secret = await askSecret({ message: "The new credential", check: complain(readSecretText) });
    await setChannel(name, [], { ...checked, secret });
  };
  const { credential: _, ...settings } = listChannelSettings();
  return [
    {
      label: "Change a setting",
      run: () => askSetting(settings, (word) => setChannel(name, [word], checked)),
    },
    { label: "Change the credential", run: changeCredential },
    { label: "Remove", run: () => removeChannel(name, flags) },
  ];
}

export function planEntries(flags: ConfigFlags): Entry[] {
  const now = new Date();
  const plans = [...openConfig(flags).catalog.plans.values()];
  const active = plans.filter((plan) => isPlanInForce(plan, now));
  const choosePlan = (among: readonly Plan[]): Promise<string> =>
    askOne(
      "Which plan?",
      among.map(({ name, groups }) => ({ value: name, label: `${name} · ${groups.join(", ")}` })),
    );
  const activate = async (): Promise<void> => {
    const name = await choosePlan(plans);
    const until = plans.find((plan) => plan.name === name)?.until ?? null;
    const initial = until !== null && until > now ? formatMoment(until) : "never";
    await activatePlan(name, { ...flags, until: await askWhen("Active until when?", initial) });
  };
  const deactivate = async (): Promise<void> => deactivatePlan(await choosePlan(active), flags);
  const add = async (): Promise<void> => {
    const { groups } = openConfig(flags).catalog;
    const name = await askText({ message: "Name of the plan", check: requireText });
    const chosen = await askSome("Which groups does it include?", listChoices(groups.keys()), []);
    const isBought = await askYes("Is it bought already?");
    await addPlan(name, { ...flags, group: chosen, ...(isBought && { active: true }) });
  };
  const remove = async (): Promise<void> => removePlan(await choosePlan(plans), flags);
  return [
    ...(plans.length === 0 ? [] : [{ label: "Activate a plan", run: activate, changes: true } as const]),
    ...(active.length === 0 ? [] : [{ label: "Deactivate a plan", run: deactivate, changes: true } as const]),
    { label: "Add a plan", run: add, changes: true },
    ...(plans.length === 0 ? [] : [{ label: "Remove a plan", run: remove, changes: true } as const]),
  ];
}

export function groupEntries(flags: ConfigFlags): Entry[] {
  const { groups } = openConfig(flags).catalog;
  const add = async (): Promise<void> => {
    const { channels } = openConfig(flags).catalog;
    const name = await askText({ message: "Name of the group", check: requireText });
    const channel = await askSome(
      "Which channels serve it? (of one platform)",
      listChoices(channels.keys()),
      [],
    );
    const multiplier = await askText({ message: "Multiplier", initial: "1", check: requireText });
    const description = await askText({ message: "Description (may be empty)" });
    const isExclusive = await askYes("Only while a plan that includes it is active?");
    await addGroup(name, {
      ...flags,
      channel,
      multiplier,
      ...(description !== "" && { description }),
      ...(isExclusive && { exclusive: true }),
    });
  };
  const change = async (): Promise<void> => {
    const name = await askOne("Which group?", listChoices(groups.keys()));
    const entry = await chooseEntry(`The group "${name}"`, listGroupChanges(name, flags), "Back");
    await entry?.run();
  };
  return [
    { label: "Add a group", run: add, changes: true },
    ...(groups.size === 0 ? [] : [{ label: "Change a group", run: change, changes: true } as const]),
  ];
}

function listGroupChanges(name: string, flags: ConfigFlags): Entry[] {
  const limits = () => findGroup(openConfig(flags).catalog, name).limits;
  return [
    {
      label: "Change a setting",
      run: () => askSetting(GROUP_SETTINGS, (word) => setGroup(name, [word], flags)),
    },
    { label: "Set a limit", run: () => askLimit(limits(), (word) => limitGroup(name, [word], flags)) },
    { label: "Remove", run: () => removeGroup(name, flags) },
  ];
}
