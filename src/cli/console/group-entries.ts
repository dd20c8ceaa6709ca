// The menu of `gateway console` for groups and plans. Each entry calls the same function as the command.

import { isPlanInForce, type Plan } from "../../config/catalog.ts";
import { addGroup, GROUP_SETTINGS, removeGroup, setGroup } from "../catalog/groups.ts";
import { activatePlan, addPlan, deactivatePlan, removePlan } from "../catalog/plans.ts";
import { findGroup, formatMoment } from "../../config/changes/names.ts";
import { type ConfigFlags, openConfig } from "../access/config.ts";
import { limitGroup } from "../keys/change.ts";
import { askOne, askSome, listChoices, askText, askYes } from "../terminal/terminal.ts";
import { chooseEntry, type Entry } from "./menu.ts";
import { askLimit, askSetting, askWhen, requireText } from "./questions.ts";

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
    const entry = await chooseEntry(`The group "${name}"`, listChanges(name, flags), "Back");
    await entry?.run();
  };
  return [
    { label: "Add a group", run: add, changes: true },
    ...(groups.size === 0 ? [] : [{ label: "Change a group", run: change, changes: true } as const]),
  ];
}

function listChanges(name: string, flags: ConfigFlags): Entry[] {
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
