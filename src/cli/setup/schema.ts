// `gateway schema`: the arguments. The action is in schema-print.ts, which loads only when it runs.

import { Argument, Command } from "commander";
import { addExamples } from "../terminal/help-text.ts";
import type { DocumentName } from "./schema-print.ts";

const DOCUMENTS = [
  "config",
  "ledger",
  "keys",
  "groups",
  "plans",
  "channels",
  "models",
  "usage",
  "sessions",
  "cache",
  "env",
  "doctor",
] as const satisfies readonly DocumentName[];

export function schemaCommand(): Command {
  const command = new Command("schema")
    .description(
      "print the JSON schema of the config file, of a ledger line, or of a command's --json output",
    )
    .addArgument(new Argument("<document>", "the document").choices(DOCUMENTS))
    .option("--config <file>", "accepted like everywhere, but not read")
    .action(async (document: DocumentName) => {
      const { printSchema } = await import("./schema-print.ts");
      printSchema(document);
    });
  return addExamples(command, [
    [
      "gateway schema config > gateway.schema.json",
      "for editors: begin gateway.yaml with `# yaml-language-server: $schema=gateway.schema.json`",
    ],
    ["gateway schema ledger", "the fields of a ledger line"],
  ]);
}
