// `gateway completions`, and the hidden command that a shell runs at each press of the tab key.

import { Argument, Command } from "commander";
import { addExamples } from "../terminal/help-text.ts";

const SHELLS = ["bash", "zsh", "fish"] as const;
type CompletedShell = (typeof SHELLS)[number];

export function completionsCommand(): Command {
  const command = new Command("completions")
    .description("print shell completions of commands, flags, keys, groups, channels and models")
    .addArgument(new Argument("<shell>", "the shell").choices(SHELLS))
    .option("--config <file>", "accepted like everywhere, but not read")
    .action(async (shell: CompletedShell) => {
      const { SCRIPTS } = await import("./scripts.ts");
      process.stdout.write(SCRIPTS[shell]);
    });
  return addExamples(command, [
    [`echo 'eval "$(gateway completions bash)"' >> ~/.bashrc`, "bash"],
    [`echo 'eval "$(gateway completions zsh)"' >> ~/.zshrc`, "zsh, after compinit"],
    ["gateway completions fish > ~/.config/fish/completions/gateway.fish", "fish"],
  ]);
}

/** `gateway __complete -- WORD… CURRENT`: one line per suggestion, `value<tab>description`, or `:files`. */
export function completeCommand(root: Command): Command {
  return new Command("__complete").argument("[words...]").action(async (words: string[]) => {
    const { suggest } = await import("./complete.ts");
    const { readNames } = await import("./names.ts");
    const lines = suggest(root, words, readNames).map(({ value, description }) =>
      description === "" ? value : `${value}\t${description}`,
    );
    process.stdout.write(lines.map((line) => `${line}\n`).join(""));
  });
}
