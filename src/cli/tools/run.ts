// `gateway run`: its flags. What it does is run-tool.ts, loaded only when asked for.

import { Command } from "commander";
import type { ToolFlags } from "./connection.ts";
import { addKeyOptions } from "./env.ts";
import { addExamples } from "../examples.ts";

export function runCommand(): Command {
  const command = new Command("run")
    .description("start a tool that uses this gateway")
    .usage("[options] <tool> [-- args...]")
    .argument("<tool>", "claude, codex, gemini, opencode; openai, anthropic, google (the SDKs)")
    .argument("[args...]", "what the tool gets; for an SDK, the command that uses it")
    .action(async (tool: string, args: string[], flags: ToolFlags) => {
      const { runTool } = await import("./run-tool.ts");
      process.exitCode = await runTool(tool, args, flags);
    });
  return addExamples(addKeyOptions(command), [
    ["gateway run claude --new", "Claude Code, with a key of its own"],
    ['GATEWAY_KEY=sk-… gateway run codex -- exec "say hello"', "one prompt to Codex, with a key that exists"],
    ["gateway run openai --secret - -- python app.py < secret.txt", "a program that uses the OpenAI SDK"],
  ]);
}
