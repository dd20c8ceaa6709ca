// `gateway groups …`: the flags. The action is in groups-list.ts, which loads only when it runs.

import { Command } from "commander";
import { addExamples } from "../terminal/help-text.ts";
import { LIMIT_WORDS } from "../keys/keys.ts";
import type { ConfigFlags } from "../access/config.ts";
import type { AddGroupFlags, RemoveGroupFlags } from "./groups-change-run.ts";
import type { GroupsFlags } from "./groups-list.ts";

export function groupsCommand(): Command {
  const list = new Command("list")
    .description("list the groups that a key can be bound to")
    .option("--all", "include the exclusive groups whose plan is not active")
    .option("--json", "one JSON document on stdout")
    .option("--config <file>", "the config file")
    .action(async (flags: GroupsFlags) => {
      const { listGroups } = await import("./groups-list.ts");
      listGroups(flags);
    });
  addExamples(list, [
    ["gateway groups list", "with platform, multiplier and channels"],
    ["gateway groups list --all --json", "all groups, for a script"],
  ]);
  const command = new Command("groups")
    .description("show and change the groups that keys are bound to")
    .addCommand(list)
    .addCommand(addCommand())
    .addCommand(setCommand())
    .addCommand(removeCommand())
    .addCommand(limitCommand());
  return addExamples(command, [["gateway groups list", "with platform, multiplier and channels"]]);
}

function addCommand(): Command {
  const command = new Command("add")
    .description("add a group of channels that keys can be bound to")
    .argument("<name>", "the group's name")
    .option("--channel <name...>", "its channels, which are of one platform")
    .option("--multiplier <decimal>", "what official amounts are multiplied by (default: 1)")
    .option("--description <text>", "what the dropdown of groups shows")
    .option("--exclusive", "only while a plan that includes it is active")
    .option("--config <file>", "the config file")
    .action(async (name: string, flags: AddGroupFlags) => {
      const { addGroup } = await import("./groups-change-run.ts");
      await addGroup(name, flags);
    });
  return addExamples(command, [
    [
      "gateway groups add cheap --channel anthropic-main --multiplier 0.8",
      "the same channel at another rate",
    ],
    ["gateway groups add claude-max --channel anthropic-max --exclusive", "for an active plan only"],
  ]);
}

function setCommand(): Command {
  const command = new Command("set")
    .description("change settings of a group in the config file")
    .argument("<name>", "the group's name")
    .argument("<settings...>", "NAME=VALUE or NAME=none; names: channels, multiplier, description, exclusive")
    .option("--config <file>", "the config file")
    .action(async (name: string, words: string[], flags: ConfigFlags) => {
      const { setGroup } = await import("./groups-change-run.ts");
      await setGroup(name, words, flags);
    });
  return addExamples(command, [
    ["gateway groups set claude multiplier=0.9 'description=Anthropic, discounted'", "two settings at once"],
    ["gateway groups set claude channels=anthropic-main,anthropic-second", "other channels"],
  ]);
}

function removeCommand(): Command {
  const command = new Command("remove")
    .description("remove a group to which no key is bound")
    .argument("<name>", "the group's name")
    .option("--yes", "remove without a prompt")
    .option("--config <file>", "the config file")
    .action(async (name: string, flags: RemoveGroupFlags) => {
      const { removeGroup } = await import("./groups-change-run.ts");
      await removeGroup(name, flags);
    });
  return addExamples(command, [["gateway groups remove cheap --yes", "without a prompt"]]);
}

function limitCommand(): Command {
  const command = new Command("limit")
    .description("set or remove limits of a group, for all of its keys together")
    .argument("<name>", "the group's name")
    .argument("<limits...>", LIMIT_WORDS)
    .option("--config <file>", "the config file")
    .action(async (name: string, limits: string[], flags: ConfigFlags) => {
      const { limitGroup } = await import("../keys/limits.ts");
      await limitGroup(name, limits, flags);
    });
  return addExamples(command, [["gateway groups limit claude usd_per_month=200", "at most $200 a month"]]);
}
