// The flags of `gateway open`. open-run.ts does the work, and is loaded only when needed.

import { Command } from "commander";
import { addExamples } from "../terminal/help-text.ts";
import type { OpenFlags } from "./open-run.ts";

export function openCommand(): Command {
  const command = new Command("open")
    .description("open the console's page in the browser, signed in")
    .option("--print", "print the link instead; it works once, within a minute")
    .option("--url <url>", "the gateway at this address, instead of the config's")
    .option("--ledger <file>", "the gateway that writes this ledger, instead of the config's")
    .option("--config <file>", "the config file")
    .action(async (flags: OpenFlags) => {
      const { openPage } = await import("./open-run.ts");
      await openPage(flags);
    });
  return addExamples(command, [
    ["gateway open", "spending, live requests, keys and channels in the browser"],
    ["gateway open --url http://127.0.0.1:8790", "a gateway with another config, or a demo"],
    ["gateway open --print", "for a browser that this program cannot start"],
  ]);
}
