// The flags of `gateway channels …`. run.ts does the work, and is loaded only when needed.

import { Command } from "commander";
import type { ActionFlags, ChannelAction, ChannelsFlags } from "./run.ts";
import { addExamples } from "../terminal/help-text.ts";

export function channelsCommand(): Command {
  const command = new Command("channels")
    .description("show the availability of each channel; exit status 1 if a group has none")
    .option("--watch", "keep showing it until q or Ctrl-C")
    .option("--json", "one JSON document on stdout")
    .option("--config <file>", "the config file")
    .action(async (flags: ChannelsFlags) => {
      const { showChannels } = await import("./run.ts");
      await showChannels(flags);
    });
  command.addCommand(createActionCommand("disable", "send nothing to a channel until it is enabled again"));
  command.addCommand(createActionCommand("enable", "use a channel again, and clear its cooldown"));
  command.addCommand(
    createActionCommand("probe", "check a channel now by fetching its model list, free of charge"),
  );
  return addExamples(command, [
    ["gateway channels", "the state of every channel in the running gateway"],
    ["gateway channels --watch", "the same, live"],
    ["gateway channels disable anthropic-main", "stop using a channel"],
  ]);
}

function createActionCommand(act: ChannelAction, about: string): Command {
  const command = new Command(act)
    .description(about)
    .argument("<name>", "the channel")
    .option("--json", "the channel's new state, as JSON on stdout")
    .option("--config <file>", "the config file")
    .action(async (name: string, _: unknown, self: Command) => {
      const { actOnChannel } = await import("./run.ts");
      // The parent command accepts `--json` and `--config` too, before the action.
      await actOnChannel(act, name, self.optsWithGlobals<ActionFlags>());
    });
  return addExamples(command, [[`gateway channels ${act} anthropic-main`, "prints the new state"]]);
}
