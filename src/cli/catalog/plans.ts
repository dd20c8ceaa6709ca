// `gateway plans …`: the flags. The actions are in plans-run.ts, which loads only when they run.

import { Command } from "commander";
import { addExamples } from "../terminal/help-text.ts";
import type { ActivateFlags, AddPlanFlags, PlansFlags, RemovePlanFlags } from "./plans-run.ts";

const CONFIG = ["--config <file>", "the config file"] as const;

export function plansCommand(): Command {
  const list = new Command("list")
    .description("list the plans and their groups")
    .option("--json", "one JSON document on stdout")
    .option(...CONFIG)
    .action(async (flags: PlansFlags) => {
      const { listPlans } = await import("./plans-run.ts");
      listPlans(flags);
    });
  addExamples(list, [["gateway plans list", "which plans are active, and until when"]]);
  const activate = new Command("activate")
    .description("mark a plan as bought: its exclusive groups become selectable")
    .argument("<name>", "the plan's name")
    .option("--until <when>", "when the plan ends: a date, 30d, or never")
    .option(...CONFIG)
    .action(async (name: string, flags: ActivateFlags) => {
      const { activatePlan } = await import("./plans-run.ts");
      await activatePlan(name, flags);
    });
  addExamples(activate, [
    ["gateway plans activate max", "from now on keys can use its exclusive groups"],
    ["gateway plans activate max --until 2027-01-31", "until the end of January"],
  ]);
  const deactivate = new Command("deactivate")
    .description("end a plan: the gateway refuses keys of its exclusive groups")
    .argument("<name>", "the plan's name")
    .option(...CONFIG)
    .action(async (name: string, flags: PlansFlags) => {
      const { deactivatePlan } = await import("./plans-run.ts");
      await deactivatePlan(name, flags);
    });
  addExamples(deactivate, [
    ["gateway plans deactivate max", "keys of its groups get a clear error until it is active again"],
  ]);
  const command = new Command("plans")
    .description("manage subscription plans, which unlock exclusive groups")
    .addCommand(list)
    .addCommand(addCommand())
    .addCommand(activate)
    .addCommand(deactivate)
    .addCommand(removeCommand());
  return addExamples(command, [
    ["gateway plans list", "which plans are active, and until when"],
    ["gateway plans activate max --until 2027-01-31", "a plan that was bought until the end of January"],
  ]);
}

function addCommand(): Command {
  const command = new Command("add")
    .description("add a plan that unlocks exclusive groups while it is active")
    .argument("<name>", "the plan's name")
    .option("--group <name...>", "the groups that it includes")
    .option("--active", "it is bought already")
    .option(...CONFIG)
    .action(async (name: string, flags: AddPlanFlags) => {
      const { addPlan } = await import("./plans-run.ts");
      await addPlan(name, flags);
    });
  return addExamples(command, [
    ["gateway plans add max --group claude-max --active", "a plan that was bought"],
  ]);
}

function removeCommand(): Command {
  const command = new Command("remove")
    .description("remove a plan; without another one, nobody can use its exclusive groups")
    .argument("<name>", "the plan's name")
    .option("--yes", "remove without a prompt")
    .option(...CONFIG)
    .action(async (name: string, flags: RemovePlanFlags) => {
      const { removePlan } = await import("./plans-run.ts");
      await removePlan(name, flags);
    });
  return addExamples(command, [["gateway plans remove max --yes", "without a prompt"]]);
}
