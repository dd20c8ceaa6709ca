// The action of `gateway schema`. Scripts rely on these documents: fields may be added, but never removed.

import { z } from "zod";
import { correctionSchema, lineSchema } from "../../billing/ledger/line.ts";
import { describeConfig } from "../../config/json-schema.ts";
import { printLines } from "../terminal/terminal.ts";

export function printSchema(document: "config" | "ledger"): void {
  const lines = z.union([lineSchema, correctionSchema]);
  const schema = document === "config" ? describeConfig() : z.toJSONSchema(lines, { io: "input" });
  printLines(JSON.stringify(schema, null, 2).split("\n"));
}
