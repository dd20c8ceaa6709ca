// The menus of `gateway console`: what can be done with keys, plans, channels,
// models and spending. What an entry does is the command's own.

import { DIMENSIONS } from "../../billing/report/report.ts";
import { isPlanInForce, type Key, type Plan } from "../../config/catalog.ts";
import { actOnChannel, type ChannelAct, showChannels } from "../channels/channels-run.ts";
import { listSelectable } from "../keys/group-choice.ts";
import { addKeys } from "../keys/add.ts";
import { moveKey, removeKeys, rotateKey, switchKeys } from "../keys/change.ts";
import { listKeys, showKey } from "../keys/list.ts";
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
import { activatePlan, deactivatePlan, listPlans } from "../catalog/plans-run.ts";
import { askOne, askText, askYes, type Choice } from "../terminal.ts";
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
    { label: "List them", run: () => listKeys(flags) },
    { label: "Create a key", run: () => addKeys(flags) },
    ...(keys.size === 0 ? [] : [{ label: "Change a key", run: change }]),
  ];
}

function listChanges(key: Key, flags: ConfigFlags): Entry[] {
  const { name, disabled } = key;
  return [
    { label: "Show it", run: () => showKey(name, flags) },
    {
      label: disabled ? "Enable it" : "Disable it",
      run: () => switchKeys([name], !disabled, flags),
    },
    { label: "Give it a new secret", run: () => rotate(key, flags) },
    { label: "Move it to another group", run: () => moveKey(name, flags) },
    { label: "Remove it", run: () => removeKeys([name], flags) },
  ];
}

async function rotate({ name, expires }: Key, flags: ConfigFlags): Promise<void> {
  if (!(await askYes(`Give "${name}" a new secret? The old one stops working.`))) return;
  const isOver = expires !== null && expires <= new Date();
  const until = isOver
    ? { expires: await askWhen("It has expired. Until when does it run now?", "30d") }
    : {};
  await rotateKey(name, { ...flags, ...until });
}

function askWhen(message: string, initial: string): Promise<string> {
  const check = (text: string): string | undefined => {
    const moment = readFuture(text, new Date());
    const fits = text === "never" || (moment !== null && moment > new Date());
    return fits ? undefined : "A duration or a date to come, such as 30d or 2027-01-31, or never.";
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
    await activatePlan(name, { ...flags, until: await askWhen("Until when?", initial) });
  };
  return [
    { label: "List plans", run: () => listPlans(flags) },
    ...(plans.length === 0 ? [] : [{ label: "Activate a plan", run: activate }]),
    ...(active.length === 0
      ? []
      : [{ label: "Deactivate a plan", run: async () => deactivatePlan(await choosePlan(active), flags) }]),
  ];
}

export function channelEntries(flags: ConfigFlags): Entry[] {
  const act = (label: string, name: ChannelAct): Entry => ({
    label,
    run: async () =>
      actOnChannel(name, await chooseName("Which channel?", openConfig(flags).catalog.channels), flags),
  });
  return [
    { label: "Look again", run: () => showChannels(flags) },
    { label: "Watch them", run: () => showChannels({ ...flags, watch: true }) },
    act("Probe one", "probe"),
    act("Disable one", "disable"),
    act("Enable one", "enable"),
  ];
}

function chooseName(message: string, named: ReadonlyMap<string, unknown>): Promise<string> {
  return askOne(
    message,
    [...named.keys()].map((name) => ({ value: name, label: name })),
  );
}

export async function showSomeModels(flags: ConfigFlags): Promise<void> {
  const groups = listSelectable(openConfig(flags).catalog, new Date());
  const each: Choice[] = groups.map((group) => ({
    value: group.name,
    label: `${group.name} (${describeGroup(group)})`,
  }));
  const all = "";
  const group =
    each.length < 2 ? all : await askOne("Of which group?", [{ value: all, label: "All groups" }, ...each]);
  await showModels(group === all ? flags : { ...flags, group });
}

const PERIODS: readonly Choice[] = [
  { value: "1d", label: "Today" },
  { value: "7d", label: "The last seven days" },
  { value: "30d", label: "The last thirty days" },
  { value: "", label: "All of it" },
];

export function spendingEntries(flags: ConfigFlags): Entry[] {
  return [
    ...DIMENSIONS.map((by): Entry => ({
      label: `By ${by}`,
      run: async () => {
        const since = await askOne("Since when?", PERIODS);
        showUsage({ ...flags, by, ...(since === "" ? {} : { since }) });
      },
    })),
    { label: "Prove the ledger", run: () => verify(flags) },
  ];
}
