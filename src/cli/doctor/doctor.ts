// `gateway doctor`: its flags. What it does is doctor-run.ts, loaded only when asked for.

import { Command } from "commander";
import type { DoctorFlags } from "./doctor-run.ts";
import { addExamples } from "../examples.ts";

export function doctorCommand(): Command {
  const command = new Command("doctor")
    .description("check everything the gateway needs, free of charge, and say how to mend what is wrong")
    .option("--json", "one JSON document on stdout")
    .option("--config <file>", "the config file")
    .action(async (flags: DoctorFlags) => {
      const { runDoctor } = await import("./doctor-run.ts");
      process.exitCode = await runDoctor(flags);
    });
  return addExamples(command, [
    ["gateway doctor", "exit status 1 if anything is wrong"],
    [`gateway doctor --json | jq '.checks[] | select(.state == "wrong")'`, "only what is wrong"],
  ]);
}
