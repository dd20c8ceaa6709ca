// Writes answers of the content dialect, as an upstream sends them. Every chunk of a stream has the usage so far. The last one is final.

import type { Family } from "./family.ts";
import { parseJson } from "../../../../src/lib/json/json.ts";
import { pick, pickList, pickNumber, pickText, type Json } from "../json.ts";
import {
  countTokens,
  markPrefixes,
  type ModelRequest,
  type CachePoint,
  type Completion,
} from "./completion.ts";

export const content: Family = { name: "content", readRequest: readAsk, writeReply, writeEvents };

const CACHED_CONTENT_TOKENS = 2048;

/** The model and the stream flag are in the path. The router adds them. */
function readAsk(body: unknown): ModelRequest {
  const parts = pickList(pickList(body, "contents").at(-1), "parts");
  const result = parts.find((part) => pick(part, "functionResponse") !== undefined);
  const text = parts.findLast((part) => pickText(part, "text") !== "");
  const config = pick(body, "generationConfig");
  const json = pickText(config, "responseMimeType") === "application/json" ? {} : undefined;
  const cached = pickText(body, "cachedContent");
  const tokens = countTokens(
    JSON.stringify([pick(body, "tools"), pick(body, "systemInstruction"), pick(body, "contents")]),
  );
  return {
    model: "",
    stream: false,
    prompt: pickText(text, "text"),
    toolResult:
      result === undefined ? null : JSON.stringify(pick(result, "functionResponse", "response") ?? null),
    tools: pickList(body, "tools")
      .flatMap((tool) => pickList(tool, "functionDeclarations"))
      .map((tool) => ({
        name: pickText(tool, "name"),
        schema: pick(tool, "parametersJsonSchema") ?? pick(tool, "parameters") ?? { type: "object" },
        custom: false,
      })),
    choice: readChoice(pick(body, "toolConfig", "functionCallingConfig")),
    schema: pick(config, "responseJsonSchema") ?? pick(config, "responseSchema") ?? json,
    thinks: readThinking(pick(config, "thinkingConfig")),
    maxTokens: pickNumber(config, "maxOutputTokens") ?? Infinity,
    inputTokens: tokens + (cached === "" ? 0 : CACHED_CONTENT_TOKENS),
    cachePoints: cached === "" ? [] : markCachedContent(cached),
  };
}

function readChoice(config: unknown): ModelRequest["choice"] {
  const [name] = pickList(config, "allowedFunctionNames");
  if (typeof name === "string") return { name };
  const mode = pickText(config, "mode");
  if (mode === "NONE") return "none";
  return mode === "ANY" ? "any" : "auto";
}

function readThinking(config: unknown): boolean {
  const budget = pickNumber(config, "thinkingBudget");
  return (
    pick(config, "includeThoughts") === true ||
    pickText(config, "thinkingLevel") !== "" ||
    (budget ?? 0) !== 0
  );
}

/** The cached content that a request names. All of it counts as read, even the first time (see `writeUsage`). */
function markCachedContent(name: string): CachePoint[] {
  return markPrefixes([{ text: name, ttl: "5m" }]).map((point) => ({
    ...point,
    tokens: CACHED_CONTENT_TOKENS,
  }));
}

function writeUsage({ counts }: Completion, thought: number, said: number): Json {
  const cached = counts.cacheRead + counts.cacheWrite5m;
  const prompt = counts.input + cached;
  return {
    promptTokenCount: prompt,
    ...(said > 0 ? { candidatesTokenCount: said } : {}),
    totalTokenCount: prompt + thought + said,
    ...(cached > 0
      ? { cachedContentTokenCount: cached, cacheTokensDetails: [{ modality: "TEXT", tokenCount: cached }] }
      : {}),
    promptTokensDetails: [{ modality: "TEXT", tokenCount: prompt }],
    ...(thought > 0 ? { thoughtsTokenCount: thought } : {}),
    serviceTier: "standard",
  };
}

function writeChunk(
  completion: Completion,
  parts: readonly Json[],
  usage: Json,
  finishReason?: string,
): Json {
  const end = finishReason === undefined ? {} : { finishReason };
  return {
    candidates: [{ content: { parts, role: "model" }, ...end, index: 0 }],
    usageMetadata: usage,
    modelVersion: completion.model,
    responseId: `demo${completion.serial}`,
  };
}

function writeCalls(completion: Completion): Json[] {
  return completion.calls.map((call) => ({
    functionCall: { name: call.name, args: parseJson(call.input), id: call.id },
    thoughtSignature: Buffer.from(`demo-signature-${call.id}`).toString("base64"),
  }));
}

function nameFinish(completion: Completion): string {
  return completion.stop === "length" ? "MAX_TOKENS" : "STOP";
}

function showsThoughts(body: unknown): boolean {
  return pick(body, "generationConfig", "thinkingConfig", "includeThoughts") === true;
}

function writeReply(completion: Completion, body: unknown): Json {
  const { output, reasoning } = completion.counts;
  const thoughts =
    reasoning > 0 && showsThoughts(body) ? [{ text: completion.thinking.join(""), thought: true }] : [];
  const text = completion.text.length > 0 ? [{ text: completion.text.join("") }] : [];
  const parts = [...thoughts, ...text, ...writeCalls(completion)];
  return writeChunk(
    completion,
    parts,
    writeUsage(completion, reasoning, output - reasoning),
    nameFinish(completion),
  );
}

function writeEvents(completion: Completion, body: unknown): string[] {
  const { output, reasoning } = completion.counts;
  const thoughts = showsThoughts(body) ? completion.thinking : [];
  const calls = writeCalls(completion);
  const chunks = [
    ...thoughts.map((text, index) =>
      writeChunk(completion, [{ text, thought: true }], writeUsage(completion, index + 1, 0)),
    ),
    ...completion.text.map((text, index) =>
      writeChunk(completion, [{ text }], writeUsage(completion, reasoning, index + 1)),
    ),
    ...(calls.length > 0
      ? [writeChunk(completion, calls, writeUsage(completion, reasoning, output - reasoning))]
      : []),
    writeChunk(
      completion,
      [{ text: "" }],
      writeUsage(completion, reasoning, output - reasoning),
      nameFinish(completion),
    ),
  ];
  return chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\r\n\r\n`);
}
