// The menus of `gateway console` for keys, plans, channels, models and spending.
// Each entry calls the same function as the command.

import type { Dimension } from "../../billing/report/report.ts";
import { isPlanInForce, type Key, type Plan } from "../../config/catalog.ts";
import { actOnChannel, type ChannelAction, showChannels } from "../channels/run.ts";
import { listSelectableGroups } from "../../config/changes/keys.ts";
import { addKeys } from "../keys/add.ts";
import { moveKey, removeKeys, rotateKey, setKeysDisabled } from "../keys/change.ts";
import { showKey } from "../keys/list.ts";
import { verify } from "../money/ledger-run.ts";
import { chooseEntry, type Entry } from "./menu.ts";
import { showModels } from "../catalog/models-run.ts";
import {
  type ConfigFlags,
  describeGroup,
  findKey,
  formatMoment,
  openConfig,
  readFuture,
} from "../config-access.ts";
import { activatePlan, deactivatePlan } from "../catalog/plans-run.ts";
import { askOne, askText, askYes, type Choice } from "../terminal/terminal.ts";
import { showUsage } from "../money/usage-run.ts";

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

function askWhen(message: string, initial: string): Promise<string> {
  const check = (text: string): string | undefined => {
    const moment = readFuture(text, new Date());
    const fits = text === "never" || (moment !== null && moment > new Date());
    return fits ? undefined : "Enter a duration or a future date, such as 30d or 2027-01-31, or never.";
  };
  return askText({ message: `${message} (30d, a date, never)`, initial, check });
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
  return [
    ...(plans.length === 0 ? [] : [{ label: "Activate a plan", run: activate, changes: true } as const]),
    ...(active.length === 0 ? [] : [{ label: "Deactivate a plan", run: deactivate, changes: true } as const]),
  ];
}

export function channelEntries(flags: ConfigFlags): Entry[] {
  const act = (label: string, name: ChannelAction): Entry => ({
    label,
    run: async () =>
      actOnChannel(name, await chooseName("Which channel?", openConfig(flags).catalog.channels), flags),
  });
  return [
    { label: "Refresh", run: () => showChannels(flags) },
    { label: "Watch live", run: () => showChannels({ ...flags, watch: true }) },
    act("Check a channel now", "probe"),
    act("Disable a channel", "disable"),
    act("Enable a channel", "enable"),
  ];
}

function chooseName(message: string, named: ReadonlyMap<string, unknown>): Promise<string> {
  return askOne(
    message,
    [...named.keys()].map((name) => ({ value: name, label: name })),
  );
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
