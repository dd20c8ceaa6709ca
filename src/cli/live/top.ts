// The flags of `gateway top`. top-run.ts does the work, and is loaded only when needed.

import { Command } from "commander";
import { addExamples } from "../terminal/help-text.ts";
import type { TopFlags } from "./top-run.ts";

export function topCommand(): Command {
  const command = new Command("top")
    .description("watch the running gateway: open streams, spending today, recent requests")
    .option("--json", "the current state, as one JSON document on stdout")
    .option("--ledger <file>", "watch the gateway that writes this ledger, instead of the config's")
    .option("--config <file>", "the config file")
    .action(async (flags: TopFlags) => {
      const { showTop } = await import("./top-run.ts");
      await showTop(flags);
    });
  return addExamples(command, [
    ["gateway top", "watch until q or Ctrl-C"],
    ["gateway top > now.txt", "print the current state once"],
    ["gateway top --json | jq .streams", "for scripts"],
  ]);
}
