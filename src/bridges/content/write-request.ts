// A conversation → a request for a content upstream.
// Contents come last, for caches.

import type { ContentPart, Conversation, Destination, Result, Tool } from "../neutral/conversation.ts";
import { findOutputCap } from "../provider-rules.ts";
import { settleOptions, writeMembers } from "../neutral/fields.ts";
import { describeFunction, nameTool, parseArguments } from "../neutral/tools.ts";
import type { Json } from "../neutral/notes.ts";
import {
  arrangeForUser,
  type ModelItem,
  remind,
  type Turn,
  limitOption,
  joinTexts,
  keepAllowed,
  keepFunctions,
  readDataUrl,
} from "../neutral/write-request.ts";
import { CONTENT_FIELDS, isSigned } from "./fields.ts";

/** Gemini 3 refuses a call without its signature or this word:
 *  https://ai.google.dev/gemini-api/docs/thought-signatures */
const NO_SIGNATURE = "skip_thought_signature_validator";

export function writeContentRequest(conversation: Conversation, to: Destination): Json {
  const tools = keepTools(conversation);
  const options = settleOptions(conversation, tools, CONTENT_FIELDS);
  const { system, turns } = arrangeForUser(conversation);
  const calls = conversation.items.filter((item) => item.type === "call");
  const names = new Map(calls.map(({ id, name }) => [id, name]));
  limitOption(conversation, options, "cap", findOutputCap(to.model));
  if (options.schema !== undefined) options.json = true;
  const isSearch = tools.some(({ kind }) => kind === "search");
  if (isSearch) delete options.choice;
  const writing = { conversation, options, to };
  const instructions = system.flatMap(({ parts }) => parts.map(writePart));
  const functionDeclarations = tools.map((tool) =>
    writeMembers(
      CONTENT_FIELDS,
      "tools[].functionDeclarations[]",
      describeFunction(tool, "content"),
      writing,
    ),
  );
  return {
    ...writeMembers(CONTENT_FIELDS, "", options, writing),
    tools: tools.length === 0 ? undefined : [isSearch ? { googleSearch: {} } : { functionDeclarations }],
    systemInstruction: system.length === 0 ? undefined : { parts: instructions },
    contents: turns.map((turn) => writeTurn(turn, names, to)),
  };
}

/** The provider refuses a search next to functions. */
function keepTools(conversation: Conversation): readonly Tool[] {
  const { tools, options } = conversation;
  if (tools.every(({ kind }) => kind === "search")) return tools;
  const functions = keepFunctions(conversation);
  return options.choice?.kind === "any" ? functions : keepAllowed(functions, options.choice);
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

/** A signature belongs to the next part.
 *  With `after`, it belongs to the previous part. */
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
