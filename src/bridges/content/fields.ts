// The content dialect. https://ai.google.dev/api/generate-content

import { getField, getList, isObject, listIn, lookUp, type Table } from "../../lib/json/json.ts";
import type { AnswerSchema, Choice, Effort, FreeChoice } from "../neutral/conversation.ts";
import { byCode, listFields, nearest, openTable, same, type Writing } from "../neutral/fields.ts";
import { nameTool, parseSchema } from "../neutral/tools.ts";
import { type Json, refuseBody } from "../neutral/notes.ts";
import { READ, readAnswerSchema } from "../neutral/read-request.ts";
import { BUDGETS, correctSchema, readEffort } from "../provider-rules.ts";

const MEDIA = {
  kept: "inlineData.mimeType inlineData.data fileData.mimeType fileData.fileUri",
  silent: "inlineData.displayName fileData.displayName",
} as const;
const CONFIG = "generationConfig";
const FUNCTION = "tools[].functionDeclarations[]";

export const CONTENT_FIELDS = openTable([
  ...listFields("", {
    kept: "contents systemInstruction tools",
    silent: "safetySettings labels model",
    refused: "cachedContent",
  }),
  ...listFields("contents[]", { kept: "role parts" }),
  ...listFields("contents[].parts[]", {
    kept: `text thought thoughtSignature ${MEDIA.kept}`,
    silent: MEDIA.silent,
  }),
  ...listFields("contents[].parts[].functionCall", { kept: "id name args" }),
  ...listFields("contents[].parts[].functionResponse", {
    kept: "id name response parts",
    silent: "willContinue scheduling",
  }),
  ...listFields("contents[].parts[].functionResponse.parts[]", MEDIA),
  ...listFields("systemInstruction", { kept: "parts", silent: "role" }),
  ...listFields("systemInstruction.parts[]", { kept: "text", refused: "inlineData fileData" }),
  ...listFields("tools[]", { kept: "functionDeclarations googleSearch" }),
  same("name", `${FUNCTION}.name`, READ.name),
  same("description", `${FUNCTION}.description`, READ.word),
  { path: `${FUNCTION}.description`, option: "format", write: byCode, near: true },
  { path: `${FUNCTION}.parameters`, option: "parameters", read: readParameters },
  same("parameters", `${FUNCTION}.parametersJsonSchema`, readParameters),
  ...listFields(FUNCTION, { noted: "behavior response responseJsonSchema" }),
  ...listFields("toolConfig.functionCallingConfig", { kept: "mode allowedFunctionNames" }),
  { path: "toolConfig.functionCallingConfig", option: "choice", read: readChoice, write: writeChoice },
  nearest("cap", `${CONFIG}.maxOutputTokens`, READ.number),
  same("temperature", `${CONFIG}.temperature`, READ.number),
  same("top_p", `${CONFIG}.topP`, READ.number),
  same("top_k", `${CONFIG}.topK`, READ.number),
  same("stop", `${CONFIG}.stopSequences`, READ.texts),
  ...listFields(`${CONFIG}.thinkingConfig`, { kept: "thinkingLevel thinkingBudget includeThoughts" }),
  {
    path: `${CONFIG}.thinkingConfig`,
    option: "effort",
    read: readThinking,
    write: writeThinking,
    near: true,
  },
  {
    path: `${CONFIG}.thinkingConfig`,
    option: "thoughts",
    read: (config) => READ.true(getField(config, "includeThoughts")),
    write: byCode,
  },
  {
    path: `${CONFIG}.responseMimeType`,
    option: "json",
    read: (type) => READ.true(type === "application/json"),
    write: () => "application/json",
  },
  { path: `${CONFIG}.responseSchema`, option: "schema", read: readSchema },
  {
    path: `${CONFIG}.responseJsonSchema`,
    option: "schema",
    read: readSchema,
    write: ({ schema }) => parseSchema(schema),
  },
  ...listFields(CONFIG, {
    silent: "seed",
    noted: "mediaResolution",
    refused: "frequencyPenalty presencePenalty responseLogprobs logprobs speechConfig",
  }),
  { path: `${CONFIG}.candidateCount`, rule: "refused", unless: (value) => value === 1 },
  {
    path: `${CONFIG}.responseModalities`,
    rule: "refused",
    unless: (value) => getList(value).every((each) => each === "TEXT"),
  },
]);

function readParameters(schema: unknown): Json | undefined {
  return isObject(schema) ? correctSchema(schema) : undefined;
}

function readSchema(schema: unknown): AnswerSchema | undefined {
  return isObject(schema) ? readAnswerSchema({ schema: correctSchema(schema) }, true) : undefined;
}

const MODES: Table<FreeChoice> = {
  AUTO: { kind: "auto" },
  ANY: { kind: "any" },
  NONE: { kind: "none" },
  // Like `AUTO`, but Google checks the calls. No other dialect has this.
  VALIDATED: { kind: "auto" },
};

function readChoice(config: unknown): Choice | undefined {
  const mode = getField(config, "mode");
  const only = listIn(config, "allowedFunctionNames").filter((name) => typeof name === "string");
  const choice = lookUp(MODES, mode);
  if (choice === undefined && mode !== undefined && mode !== "MODE_UNSPECIFIED")
    refuseBody("toolConfig.functionCallingConfig.mode", "expected `AUTO`, `ANY`, `NONE` or `VALIDATED`.");
  const [name] = only;
  if (name === undefined) return choice;
  return choice?.kind === "any" && only.length === 1
    ? { kind: "tool", name }
    : { kind: "auto", ...choice, only };
}

function writeChoice(choice: Choice): Json {
  const mode = choice.kind === "tool" ? "ANY" : choice.kind.toUpperCase();
  const only = choice.kind === "tool" ? [choice.name] : choice.kind === "any" ? choice.only : undefined;
  return only === undefined
    ? { mode }
    : { mode, allowedFunctionNames: only.map((name) => nameTool(name, "content")) };
}

function readThinking(config: unknown): Effort | undefined {
  const effort = readEffort(getField(config, "thinkingLevel") ?? getField(config, "thinkingBudget"));
  return effort ?? (getField(config, "includeThoughts") === true ? "medium" : undefined);
}

const LEVELS: Readonly<Record<Effort, string>> = {
  none: "minimal",
  low: "low",
  medium: "medium",
  high: "high",
  xhigh: "high",
  max: "high",
};
const MIN_PRO_BUDGET = 128;
const MAX_BUDGET = 24_576;

function writeThinking(effort: Effort, { options, to: { model } }: Writing): Json | undefined {
  const includeThoughts = options.thoughts === true && effort !== "none";
  const isPro = model.includes("-pro");
  if (/gemini-2\.5/.test(model)) {
    const budget = Math.min(BUDGETS[effort], MAX_BUDGET);
    return { includeThoughts, thinkingBudget: isPro ? Math.max(budget, MIN_PRO_BUDGET) : budget };
  }
  if (!isSigned(model)) return undefined;
  return { includeThoughts, thinkingLevel: isPro && effort === "none" ? "low" : LEVELS[effort] };
}

/** These models sign calls and have levels of thinking. */
export function isSigned(model: string): boolean {
  return /gemini-(?:[3-9]|\d\d)/.test(model);
}
