// `gateway groups …`: the flags. The action is in groups-list.ts, which loads only when it runs.

import { Command } from "commander";
import { addExamples } from "../terminal/examples.ts";
import type { ConfigFlags } from "../config-access.ts";
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
    .description("show and limit the groups that keys are bound to")
    .addCommand(list)
    .addCommand(limitCommand());
  return addExamples(command, [["gateway groups list", "with platform, multiplier and channels"]]);
}

function limitCommand(): Command {
  const command = new Command("limit")
    .description("set or remove limits of a group, for all of its keys together")
    .argument("<name>", "the group's name")
    .argument(
      "<limits...>",
      "NAME=VALUE or NAME=none; names: usd_per_day, usd_per_month, usd_total, usd_per_session, requests_per_minute, requests_per_minute_per_session, concurrent_requests",
    )
    .option("--config <file>", "the config file")
    .action(async (name: string, limits: string[], flags: ConfigFlags) => {
      const { limitGroup } = await import("../keys/limits.ts");
      await limitGroup(name, limits, flags);
    });
  return addExamples(command, [["gateway groups limit claude usd_per_month=200", "at most $200 a month"]]);
}
