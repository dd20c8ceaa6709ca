// A conversation → a request for a content upstream. The contents come last: a longer conversation begins with the bytes of a
// shorter one.

import { getList } from "../../lib/json/json.ts";
import { isAbsent, type Json } from "../neutral/strict-json.ts";
import { refuseField } from "../neutral/notes.ts";
import type {
  Choice,
  ContentPart,
  Conversation,
  Destination,
  Effort,
  Options,
  Result,
  Tool,
} from "../neutral/conversation.ts";
import { BUDGETS, findOutputCap } from "../neutral/effort.ts";
import { settleOptions, listSupport } from "../neutral/fields.ts";
import { nameTool } from "../neutral/names.ts";
import { describeFunction, parseArguments } from "../neutral/tool-input.ts";
import { arrange, type ModelItem, remind, requireUser, type Turn } from "../neutral/turns.ts";
import {
  clampCap,
  joinTexts,
  keepAllowed,
  keepFunctions,
  noteStrict,
  readDataUrl,
} from "../neutral/write-request.ts";

export const CONTENT_SUPPORT = listSupport({
  "left out": ["parallel", "verbosity", "tier"],
  changed: ["cap", "effort"],
});

/** Gemini 3 refuses a call without the signature that it came with, but for this word.
 *  https://ai.google.dev/gemini-api/docs/thought-signatures */
const NO_SIGNATURE = "skip_thought_signature_validator";

export function writeContentRequest(conversation: Conversation, to: Destination): Json {
  const { items, notes } = conversation;
  const options = settleOptions(conversation, CONTENT_SUPPORT);
  const arranged = arrange(items, notes);
  requireUser(arranged, conversation);
  const { system, turns } = arranged;
  const names = new Map(items.flatMap((item) => (item.type === "call" ? [[item.id, item.name]] : [])));
  const config = writeConfig(conversation, options, to);
  const contents = turns.map((turn) => writeTurn(turn, names, to));
  return {
    ...(Object.keys(config).length === 0 ? {} : { generationConfig: config }),
    ...writeTools(conversation, options),
    ...(system.length === 0
      ? {}
      : { systemInstruction: { parts: system.flatMap(({ parts }) => parts.map(writePart)) } }),
    contents,
  };
}

// Options.

function writeConfig(conversation: Conversation, options: Options, { model }: Destination): Json {
  const { temperature, top_p: topP, top_k: topK, stop: stopSequences, schema, json } = options;
  const maxOutputTokens = clampCap(conversation, options.cap, findOutputCap(model));
  const responseMimeType = schema !== undefined || json === true ? "application/json" : undefined;
  const config = {
    maxOutputTokens,
    temperature,
    topP,
    topK,
    stopSequences,
    thinkingConfig: writeThinking(options, model),
    responseMimeType,
    responseJsonSchema: schema?.schema,
  };
  return Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined));
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

function writeThinking({ effort, thoughts = false }: Options, model: string): Json | undefined {
  if (effort === undefined) return undefined;
  const includeThoughts = thoughts && effort !== "none";
  const isPro = model.includes("-pro");
  if (/gemini-2\.5/.test(model)) {
    const budget = Math.min(BUDGETS[effort], MAX_BUDGET);
    return { includeThoughts, thinkingBudget: isPro ? Math.max(budget, MIN_PRO_BUDGET) : budget };
  }
  if (!isSigned(model)) return undefined;
  return { includeThoughts, thinkingLevel: isPro && effort === "none" ? "low" : LEVELS[effort] };
}

function isSigned(model: string): boolean {
  return /gemini-(?:[3-9]|\d\d)/.test(model);
}

// Tools.

/** A search goes alone: the provider refuses it beside functions. */
function writeTools(conversation: Conversation, { choice }: Options): Json {
  const { tools } = conversation;
  if (tools.length > 0 && tools.every(({ kind }) => kind === "search")) {
    for (const { schema } of tools) checkSearch(conversation, schema);
    return { tools: [{ googleSearch: {} }] };
  }
  const all = keepFunctions(conversation);
  const functions = noteStrict(conversation, choice?.kind === "any" ? all : keepAllowed(all, choice));
  if (functions.length === 0) return {};
  return {
    tools: [{ functionDeclarations: functions.map(writeTool) }],
    ...(choice === undefined ? {} : { toolConfig: { functionCallingConfig: writeChoice(choice) } }),
  };
}

/** To search everywhere in spite of these would be wrong. */
function checkSearch({ notes }: Conversation, { allowed_domains, blocked_domains, ...others }: Json): void {
  if (getList(allowed_domains).length + getList(blocked_domains).length > 0)
    refuseField("tools", "a search of this group's channels cannot be kept to some domains.");
  for (const [name, value] of Object.entries(others)) if (!isAbsent(value)) notes.add(`tools[].${name}`);
}

function writeTool(tool: Tool): Json {
  const { description, schema } = describeFunction(tool);
  return { name: nameTool(tool.name, "content"), description, parametersJsonSchema: schema };
}

const MODES = { auto: "AUTO", any: "ANY", none: "NONE" } as const;

function writeChoice(choice: Choice): Json {
  const only = choice.kind === "tool" ? [choice.name] : choice.kind === "any" ? choice.only : undefined;
  const mode = choice.kind === "tool" ? "ANY" : MODES[choice.kind];
  return only === undefined
    ? { mode }
    : { mode, allowedFunctionNames: only.map((name) => nameTool(name, "content")) };
}

// Contents.

type CallNames = ReadonlyMap<string, string>;

function writeTurn(turn: Turn, names: CallNames, { model }: Destination): Json {
  if (turn.side === "model") return { role: "model", parts: writeModelParts(turn.items, isSigned(model)) };
  const said = turn.messages.flatMap(({ role, parts }) =>
    role === "system" ? [{ text: remind(joinTexts(parts)) }] : parts.map(writePart),
  );
  const results = turn.results.map((result) => writeResult(result, names));
  const media = turn.results.flatMap(({ parts }) =>
    parts.filter(({ kind }) => kind !== "text").map(writePart),
  );
  return { role: "user", parts: [...results, ...media, ...said] };
}

/** A signature belongs to the part after its thought, or to the one before it. */
function writeModelParts(items: readonly ModelItem[], signed: boolean): Json[] {
  const parts: Json[] = [];
  let next: unknown = null;
  let called = false;
  for (const item of items) {
    if (item.type === "reasoning") {
      const { signature, after } = item.seal ?? {};
      const last = parts.at(-1);
      if (after === true && last !== undefined) Object.assign(last, { thoughtSignature: signature });
      else next = signature;
      continue;
    }
    const isFirstCall = item.type === "call" && !called;
    called ||= item.type === "call";
    const signature = next ?? (signed && isFirstCall ? NO_SIGNATURE : null);
    next = null;
    const own = item.type === "call" ? [writeCall(item)] : item.parts.map(writePart);
    parts.push(
      ...own.map((part, at) =>
        at === 0 && signature !== null ? { ...part, thoughtSignature: signature } : part,
      ),
    );
  }
  return parts;
}

function writeCall(call: Extract<ModelItem, { type: "call" }>): Json {
  const { id, name } = call;
  return { functionCall: { id, name: nameTool(name, "content"), args: parseArguments(call) } };
}

function writeResult({ id, parts, failed }: Result, names: CallNames): Json {
  const text = joinTexts(parts);
  const name = nameTool(names.get(id) ?? names.get(id.replace(/_\d+$/, "")) ?? "unknown", "content");
  return { functionResponse: { id, name, response: { [failed ? "error" : "result"]: text } } };
}

function writePart(part: ContentPart): Json {
  if (part.kind === "text") return { text: part.text };
  const data = readDataUrl(part.url);
  if (data === null) return { fileData: { fileUri: part.url } };
  return { inlineData: { mimeType: data.type, data: data.data } };
}
