// `gateway env`: its flags. What it does is env-print.ts, loaded only when asked for.

import { Command, Option } from "commander";
import type { EnvFlags } from "./env-print.ts";
import { addExamples } from "../examples.ts";
import { SHELLS } from "./shells.ts";

const KEY_OPTIONS: ReadonlyArray<readonly [flags: string, description: string]> = [
  ["--key <name>", "the key's name; with --new, the new key's"],
  ["--secret <secret>", "the key's secret, - for stdin; GATEWAY_KEY is read without it"],
  ["--new", "make a key for this"],
  ["--group <group>", "with --new: the group that it is bound to"],
  ["--url <url>", "where the gateway is, when it is not where this config says"],
  ["--config <file>", "the config file"],
];

export function addKeyOptions(command: Command): Command {
  return KEY_OPTIONS.reduce((each, [flags, description]) => each.option(flags, description), command);
}

export function envCommand(): Command {
  const command = new Command("env")
    .description("print the settings with which a tool uses this gateway")
    .usage("[options] <tool> [key]")
    .argument("<tool>", "claude, codex, gemini, opencode; openai, anthropic, google (the SDKs)")
    .argument("[key]", "a key's name or secret; it may also stand before the tool")
    .addOption(new Option("--shell <shell>", "the shell to write for, instead of yours").choices(SHELLS))
    .option("--json", "one JSON document on stdout")
    .action(async (tool: string, key: string | undefined, flags: EnvFlags) => {
      const { printEnv } = await import("./env-print.ts");
      await printEnv([tool, ...(key === undefined ? [] : [key])], flags);
    });
  return addExamples(addKeyOptions(command), [
    ['eval "$(gateway env claude --new)"', "Claude Code in this shell, with a key of its own"],
    ["gateway env codex laptop --secret - < secret.txt", "for the key laptop, its secret from a file"],
    ["GATEWAY_KEY=sk-… gateway env openai --json", "the OpenAI SDK's variables, for a script"],
    ["gateway env gemini --shell fish | source", "in fish"],
  ]);
}
