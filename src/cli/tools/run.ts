// `gateway run`: the flags. The action is in run-tool.ts, which loads only when it runs.

import { Command } from "commander";
import { addKeyOptions } from "./env.ts";
import { addExamples } from "../terminal/help-text.ts";
import type { RunFlags } from "./run-tool.ts";

export function runCommand(): Command {
  const command = new Command("run")
    .description("start a tool that uses this gateway, with a key of its own")
    .usage("[options] <tool> [args...]")
    .argument(
      "[tool]",
      "claude, codex, gemini, opencode, qwen, copilot, pi, continue; openai, anthropic, google (SDKs)",
    )
    .argument("[args...]", "the tool's own arguments; for an SDK, the command that uses it")
    .option("--statusline", "show spending in Claude Code's status line, for this run")
    .option("--list", "list the tools, and which are installed")
    .option("--json", "with --list: one JSON document on stdout")
    .option("--yes", "agree that a tool with a subscription login uses metered API billing")
    .passThroughOptions()
    .action(async (tool: string | undefined, args: string[], flags: RunFlags) => {
      const { runTool } = await import("./run-tool.ts");
      process.exitCode = await runTool(tool, args, flags);
    });
  return addExamples(addKeyOptions(command), [
    ["gateway run claude", "Claude Code; options after the tool's name are the tool's own"],
    ["gateway run --group cheap claude", "with a key in another group; the gateway's options come first"],
    ['gateway run codex exec "say hello"', "one prompt to Codex"],
    ["gateway run openai python app.py", "a program that uses the OpenAI SDK"],
    ["gateway run --list", "the tools, and which are installed"],
  ]);
}
