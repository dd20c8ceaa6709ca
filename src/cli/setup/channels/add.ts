// `gateway channels add`: the flags. The action is in add-run.ts, which loads only when it runs.

import { Command } from "commander";
import { addExamples } from "../../terminal/help-text.ts";
import type { AddChannelFlags } from "./add-run.ts";

export function addChannelCommand(): Command {
  const command = new Command("add")
    .description("add an upstream: a provider that the gateway knows, or a URL")
    .argument(
      "<preset|url>",
      "anthropic, openai, google, openrouter, deepseek, moonshot, zai, xai, ollama, lmstudio, or a base URL",
    )
    .option("--name <name>", "the channel's name")
    .option("--platform <platform>", "for a URL: its platform")
    .option("--group <group>", "add it to this group (default: a new group)")
    .option("--credential <->", "read the credential from stdin")
    .option("--no-check", "do not check the credential")
    .option("--json", "the new channel as JSON on stdout")
    .option("--config <file>", "the config file")
    .action(async (what: string, _: unknown, self: Command) => {
      const { addChannel } = await import("./add-run.ts");
      // The parent command has `--json` and `--config` too.
      await addChannel(what, self.optsWithGlobals<AddChannelFlags>());
    });
  return addExamples(command, [
    ["gateway channels add deepseek", "asks for the credential, checks it, and adds a channel and a group"],
    ["gateway channels add openai --group codex --credential - < key.txt", "a second channel of a group"],
    ["gateway channels add https://relay.example.com --platform relay", "any other upstream"],
  ]);
}
