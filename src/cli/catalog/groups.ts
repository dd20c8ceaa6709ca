// `gateway groups …`: the flags. The action is in groups-list.ts, which loads only when it runs.

import { Command } from "commander";
import { addExamples } from "../examples.ts";
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
    .description("show the groups that keys are bound to")
    .addCommand(list);
  return addExamples(command, [["gateway groups list", "with platform, multiplier and channels"]]);
}
