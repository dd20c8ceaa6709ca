// `gateway top`: its flags. What it does is top-run.ts, loaded only when asked for.

import { Command } from "commander";
import { addExamples } from "../examples.ts";
import type { TopFlags } from "./top-run.ts";

export function topCommand(): Command {
  const command = new Command("top")
    .description("watch the running gateway: open streams, spend of the day, recent requests")
    .option("--json", "what is to be seen now, as one JSON document on stdout")
    .option("--ledger <file>", "the gateway that writes this ledger, instead of the config's")
    .option("--config <file>", "the config file")
    .action(async (flags: TopFlags) => {
      const { showTop } = await import("./top-run.ts");
      await showTop(flags);
    });
  return addExamples(command, [
    ["gateway top", "until q or Ctrl-C"],
    ["gateway top > now.txt", "once, without a terminal"],
    ["gateway top --json | jq .streams", "for scripts"],
  ]);
}
