// The action of `gateway schema`. Scripts rely on these documents: fields may be added, but never removed.

import { z } from "zod";
import { correctionSchema, lineSchema, markSchema } from "../../billing/ledger/line.ts";
import { describeConfig } from "../../config/json-schema.ts";
import { printLines } from "../terminal/terminal.ts";

export function printSchema(document: "config" | "ledger"): void {
  const schema = document === "config" ? describeConfig() : describeLines();
  printLines(JSON.stringify(schema, null, 2).split("\n"));
}

function describeLines() {
  return z.toJSONSchema(z.union([lineSchema, correctionSchema, markSchema]), {
    io: "input",
    override: ({ jsonSchema }) => void delete jsonSchema["column"],
  });
}
