// `gateway schema`: JSON Schemas, whose fields are never removed. The config's schema has
// the comments of config.example.yaml.
// It may be looser than the loader, never stricter.

import { z } from "zod";
import example from "../../../config.example.yaml" with { type: "text" };
import { correctionSchema, lineSchema, markSchema } from "../../billing/ledger/line.ts";
import { configSchema } from "../../config/schema.ts";
import { isObject } from "../../lib/json/json.ts";
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

type Node = { [name: string]: unknown };

export function describeConfig(): Node {
  const { $schema, ...root } = z.toJSONSchema(configSchema, { io: "input" });
  const schema: Node = {
    $schema,
    title: "gateway.yaml, the config file of gateway",
    ...root,
  };
  loosen(schema);
  for (const { path, text } of readComments(String(example))) {
    const node = findNode(schema, path);
    if (node !== null) node["description"] ??= text;
  }
  return schema;
}

function loosen(node: unknown): void {
  if (!isNode(node)) return;
  const { properties, required, items, additionalProperties } = node;
  loosen(items);
  loosen(additionalProperties);
  for (const [name, child] of isNode(properties) ? Object.entries(properties) : []) {
    loosen(child);
    if (!isNode(child)) continue;
    const isRequired = Array.isArray(required) && required.includes(name);
    if (!isRequired && (child["type"] === "object" || child["type"] === "array"))
      child["type"] = [child["type"], "null"];
    const { enum: choices } = child;
    if (choices === undefined) continue;
    delete child["enum"];
    delete child["type"];
    child["anyOf"] = [{ enum: choices }, { type: "string", pattern: "\\$\\{" }];
  }
}

function isNode(value: unknown): value is Node {
  return isObject(value);
}

/** Returns null for a name that users choose. */
function findNode(root: Node, path: readonly string[]): Node | null {
  let node: unknown = root;
  let isSetting = true;
  for (const step of path) {
    if (!isNode(node)) return null;
    const { properties, items, additionalProperties } = node;
    const entries = isNode(items) ? items["properties"] : properties;
    const named = isNode(entries) ? entries[step] : undefined;
    isSetting = named !== undefined;
    node = named ?? additionalProperties;
  }
  return isSetting && isNode(node) ? node : null;
}

function readComments(text: string) {
  const comments: Array<{ path: readonly string[]; text: string }> = [];
  const open: Array<NonNullable<ReturnType<typeof readSetting>>> = [];
  let above: string[] = [];
  for (const line of text.split("\n")) {
    const setting = readSetting(line);
    if (setting === null) {
      const [, words] = /^ *# (.*)$/.exec(line) ?? [];
      above = words === undefined ? [] : [...above, words];
      continue;
    }
    while ((open.at(-1)?.depth ?? -1) >= setting.depth) open.pop();
    open.push(setting);
    if (above.length > 0) comments.push({ path: open.map(({ name }) => name), text: above.join(" ") });
    above = [];
  }
  // A comment that begins with "…" continues that of another setting.
  return comments.filter((comment) => !comment.text.startsWith("…"));
}

function readSetting(line: string) {
  const [, indent = "", item = "", name] =
    /^( *)(- )?(\w[\w-]*):(?: |$)/.exec(line) ?? /^( *)# ()(\w+): \S+$/.exec(line) ?? [];
  return name === undefined ? null : { depth: indent.length + item.length, name };
}
