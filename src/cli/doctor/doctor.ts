// The flags of `gateway doctor`. run.ts does the work, and is loaded only when needed.

import { Command } from "commander";
import type { DoctorFlags } from "./run.ts";
import { addExamples } from "../terminal/help-text.ts";

export function doctorCommand(): Command {
  const command = new Command("doctor")
    .description("check everything the gateway needs, free of charge, and show how to fix problems")
    .option("--json", "one JSON document on stdout")
    .option("--config <file>", "the config file")
    .action(async (flags: DoctorFlags) => {
      const { runDoctor } = await import("./run.ts");
      process.exitCode = await runDoctor(flags);
    });
  return addExamples(command, [
    ["gateway doctor", "exit status 1 if anything is wrong"],
    [`gateway doctor --json | jq '.checks[] | select(.state == "wrong")'`, "only the problems"],
  ]);
}
