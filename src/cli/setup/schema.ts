// `gateway schema`: its argument. What it does is schema-print.ts, loaded only when asked for.

import { Argument, Command } from "commander";
import { addExamples } from "../examples.ts";

const DOCUMENTS = [
  "config",
  "ledger",
  "keys",
  "groups",
  "plans",
  "channels",
  "models",
  "usage",
  "env",
  "doctor",
] as const;
export type DocumentName = (typeof DOCUMENTS)[number];

export function schemaCommand(): Command {
  const command = new Command("schema")
    .description(
      "print the JSON schema of the config file, of a ledger line, or of what a command prints with --json",
    )
    .addArgument(new Argument("<document>", "whose schema").choices(DOCUMENTS))
    .option("--config <file>", "as for every command; this one does not read it")
    .action(async (document: DocumentName) => {
      const { printSchema } = await import("./schema-print.ts");
      printSchema(document);
    });
  return addExamples(command, [
    [
      "gateway schema config > gateway.schema.json",
      "for editors: begin gateway.yaml with `# yaml-language-server: $schema=gateway.schema.json`",
    ],
    ["gateway schema ledger", "what a line of the ledger holds"],
  ]);
}
