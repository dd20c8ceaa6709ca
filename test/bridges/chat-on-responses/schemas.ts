// Checks values by the schemas that OpenAI publishes, which lie in a folder next to the project.

import { Ajv, type ValidateFunction } from "ajv";
import { readFileSync } from "node:fs";
import { isObject } from "../../../src/lib/json/json.ts";
import { isThere } from "../../harness/needs.ts";

const FILE = new URL("../../../../shared/reference/openai-chat-responses.schemas.json", import.meta.url);
export const schemasAbsent = !isThere("schemas");

type Schemas = Record<string, Record<string, unknown>>;

/** Adds to the schemas what they lack, although recordings show that the native endpoint sends it. */
function mend(schemas: Schemas): Schemas {
  const text = JSON.stringify(schemas)
    // A fingerprint is null for every model since gpt-5.
    .replaceAll(/"system_fingerprint":\{"type":"string"/g, '"system_fingerprint":{"type":["string","null"]');
  const mended: Schemas = JSON.parse(text);
  // A streamed custom tool call has its own type, which the schema does not have.
  const chunk = mended["ChatCompletionMessageToolCallChunk"]?.["properties"];
  if (isObject(chunk) && isObject(chunk["type"]))
    Object.assign(chunk["type"], { enum: ["function", "custom"] });
  return mended;
}

/** Translates to JSON Schema. `oneOf` becomes `anyOf`: every InputMessage is also an EasyInputMessage. */
function translate(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(translate);
  if (!isObject(value)) return value;
  const { nullable, discriminator: _, format: __, oneOf, ...rest } = value;
  const plain: Record<string, unknown> = Object.fromEntries(
    Object.entries(rest).map(([name, each]) => [name, translate(each)]),
  );
  if (oneOf !== undefined) plain["anyOf"] = translate(oneOf);
  if (nullable !== true) return plain;
  return { anyOf: [plain, { type: "null" }] };
}

const schemas: Schemas = schemasAbsent
  ? {}
  : mend(JSON.parse(readFileSync(FILE, "utf8"))["components"]["schemas"]);

const ajv = new Ajv({ strict: false, allErrors: true, inlineRefs: false });
if (!schemasAbsent) ajv.addSchema({ $id: "openai", components: { schemas: translate(schemas) } });

const checks = new Map<string, ValidateFunction>();

/** Finds the faults of a value, by the schema of this name. */
export function findFaults(name: string, value: unknown): string[] {
  let check = checks.get(name);
  if (check === undefined) {
    check = ajv.compile({ $ref: `openai#/components/schemas/${name}` });
    checks.set(name, check);
  }
  if (check(value)) return [];
  return (check.errors ?? []).map((fault) => `${fault.instancePath} ${fault.message ?? ""}`);
}

/** Lists the names of a schema's own and inherited fields. */
export function listFields(name: string): string[] {
  const found: string[] = [];
  const visit = (schema: unknown): void => {
    if (!isObject(schema)) return;
    if (typeof schema["$ref"] === "string") visit(schemas[schema["$ref"].split("/").at(-1) ?? ""]);
    if (isObject(schema["properties"])) found.push(...Object.keys(schema["properties"]));
    if (Array.isArray(schema["allOf"])) schema["allOf"].forEach(visit);
  };
  visit(schemas[name]);
  return found;
}
