// Fits names of tools and ids of calls to the upstream's rules, always with the same bytes.

import { sha256Hex } from "../../lib/secret.ts";
import type { DialectName } from "../../dialects/dialect.ts";
import type { Tool } from "./conversation.ts";

const HASH_LENGTH = 12;
const MAX_ID_LENGTH = 64;
const FOREIGN = /[^A-Za-z0-9_-]/g;
const PLAIN = /^[A-Za-z0-9_-]+$/;

/** https://platform.claude.com/docs/en/agents-and-tools/tool-use and https://platform.openai.com/docs/api-reference */
export function nameTool(name: string, dialect: DialectName): string {
  return fit(name, dialect === "messages" ? 128 : 64);
}

/** Other servers may expect their own ids. */
export function nameCall(id: string, dialect: DialectName): string {
  if (dialect === "messages") return fit(id, MAX_ID_LENGTH);
  return dialect === "responses" && id.length > MAX_ID_LENGTH ? fit(id, MAX_ID_LENGTH) : id;
}

function fit(name: string, limit: number): string {
  if (name.length <= limit && PLAIN.test(name)) return name;
  const hash = sha256Hex(name).slice(0, HASH_LENGTH);
  return `${name.slice(0, limit - HASH_LENGTH - 1).replaceAll(FOREIGN, "_")}_${hash}`;
}

/** By the upstream's names. */
export type ToolTable = ReadonlyMap<string, Tool>;

export function indexTools(tools: readonly Tool[], dialect: DialectName): ToolTable {
  return new Map(tools.map((tool) => [nameTool(tool.name, dialect), tool]));
}

/** Some models add a prefix or change the case. */
export function findTool(table: ToolTable, name: string): Tool | null {
  const exact = table.get(name);
  if (exact !== undefined) return exact;
  const bare = name.slice(name.lastIndexOf(":") + 1).toLowerCase();
  for (const [known, tool] of table) if (known.toLowerCase() === bare) return tool;
  return null;
}
