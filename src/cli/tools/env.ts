// `gateway env`: the flags. The action is in env-print.ts, which loads only when it runs.

import { Command, Option } from "commander";
import type { EnvFlags } from "./env-print.ts";
import { addExamples } from "../terminal/help-text.ts";
import { SHELLS } from "./environment/shells.ts";

const KEY_OPTIONS: ReadonlyArray<readonly [flags: string, description: string]> = [
  ["--key <name>", "the key's name; with --new, the new key's"],
  ["--secret <secret>", "the key's secret, - for stdin (default: GATEWAY_KEY)"],
  ["--new", "create a key for this tool"],
  ["--group <group>", "the group of the tool's own or new key"],
  ["--url <url>", "the gateway's address, if it differs from the config"],
  ["--config <file>", "the config file"],
];

export function addKeyOptions(command: Command): Command {
  return KEY_OPTIONS.reduce((each, [flags, description]) => each.option(flags, description), command);
}

export function envCommand(): Command {
  const command = new Command("env")
    .description("print the settings with which a tool uses this gateway")
    .usage("[options] <tool> [key]")
    .argument(
      "<tool>",
      "claude, codex, gemini, opencode, qwen, copilot, pi, continue; openai, anthropic, google (SDKs)",
    )
    .argument("[key]", "a key's name or secret; it can also come before the tool")
    .addOption(new Option("--shell <shell>", "the shell to write for (default: yours)").choices(SHELLS))
    .option("--json", "one JSON document on stdout")
    .action(async (tool: string, key: string | undefined, flags: EnvFlags) => {
      const { printEnv } = await import("./env-print.ts");
      await printEnv([tool, ...(key === undefined ? [] : [key])], flags);
    });
  return addExamples(addKeyOptions(command), [
    ['eval "$(gateway env claude --new)"', "set up Claude Code in this shell, with a new key"],
    ["gateway env codex laptop --secret - < secret.txt", "use the key laptop, with its secret from a file"],
    ["GATEWAY_KEY=sk-… gateway env openai --json", "the OpenAI SDK's variables, for a script"],
    ["gateway env gemini --shell fish | source", "in fish"],
  ]);
}
