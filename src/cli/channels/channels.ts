// `gateway channels …`: the flags. What they do is channels-run.ts, loaded only when asked for.

import { Command } from "commander";
import type { ActFlags, ChannelAct, ChannelsFlags } from "./channels-run.ts";
import { addExamples } from "../examples.ts";

export function channelsCommand(): Command {
  const command = new Command("channels")
    .description("see which channels can be used now; exit status 1 if a group has none")
    .option("--watch", "go on showing it, until q or Ctrl-C")
    .option("--json", "one JSON document on stdout")
    .option("--config <file>", "the config file")
    .action(async (flags: ChannelsFlags) => {
      const { showChannels } = await import("./channels-run.ts");
      await showChannels(flags);
    });
  command.addCommand(actCommand("disable", "send nothing to a channel until it is enabled again"));
  command.addCommand(actCommand("enable", "use a channel again, and forget why it rested"));
  command.addCommand(actCommand("probe", "ask a channel for its models now, which costs nothing"));
  return addExamples(command, [
    ["gateway channels", "the state of every channel, as the running gateway knows it"],
    ["gateway channels --watch", "the same, live"],
    ["gateway channels disable anthropic-main", "leave a channel alone"],
  ]);
}

function actCommand(act: ChannelAct, about: string): Command {
  const command = new Command(act)
    .description(about)
    .argument("<name>", "the channel")
    .option("--json", "the channel's state after it, as JSON on stdout")
    .option("--config <file>", "the config file")
    .action(async (name: string, _: unknown, self: Command) => {
      const { actOnChannel } = await import("./channels-run.ts");
      // `--json` and `--config` may stand before or after the act: the parent knows them, too.
      await actOnChannel(act, name, self.optsWithGlobals<ActFlags>());
    });
  return addExamples(command, [[`gateway channels ${act} anthropic-main`, "its state after it is printed"]]);
}
