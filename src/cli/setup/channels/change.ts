// `gateway channels set` and `remove`: the flags. The actions are in change-run.ts, which loads only when they run.

import { Command } from "commander";
import { addExamples } from "../../terminal/help-text.ts";
import type { RemoveChannelFlags, SetChannelFlags } from "./change-run.ts";

export function setChannelCommand(): Command {
  const command = new Command("set")
    .description("change settings of a channel in the config file")
    .argument("<name>", "the channel")
    .argument(
      "[settings...]",
      "NAME=VALUE or NAME=none; names: base_url, credential, priority, weight, models, aliases.NAME, headers.NAME, " +
        "proxy, ca, timeouts.first_byte, timeouts.idle, timeouts.connect, probe, warm, websocket, price_provider, free, disabled",
    )
    .option("--credential <->", "read the credential from stdin")
    .option("--no-check", "do not check the credential")
    .option("--config <file>", "the config file")
    .action(async (name: string, words: string[], _: unknown, self: Command) => {
      const { setChannel } = await import("./change-run.ts");
      await setChannel(name, words, self.optsWithGlobals<SetChannelFlags>());
    });
  return addExamples(command, [
    ["gateway channels set anthropic-main priority=2 timeouts.idle=20m", "other values for two settings"],
    ["gateway channels set anthropic-main --credential - < key.txt", "a new credential, checked first"],
    [
      "gateway channels set relay-main 'models=claude-*,gemini-*' aliases.fast=claude-haiku-4-5",
      "lists and names",
    ],
    ["gateway channels set anthropic-main proxy=none", "remove a setting"],
  ]);
}

export function removeChannelCommand(): Command {
  const command = new Command("remove")
    .description("remove a channel from the config file and from its groups")
    .argument("<name>", "the channel")
    .option("--yes", "remove without a prompt")
    .option("--config <file>", "the config file")
    .action(async (name: string, _: unknown, self: Command) => {
      const { removeChannel } = await import("./change-run.ts");
      await removeChannel(name, self.optsWithGlobals<RemoveChannelFlags>());
    });
  return addExamples(command, [["gateway channels remove old-relay --yes", "without a prompt"]]);
}
