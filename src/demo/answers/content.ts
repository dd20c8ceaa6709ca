// The content wire format, as its upstream speaks it. Every chunk of a stream
// bears a snapshot of the usage so far; the last snapshot is the whole truth.

import type { Family } from "./family.ts";
import { parseJson } from "../../lib/json/json.ts";
import { pick, pickList, pickNumber, pickText, type Json } from "../json.ts";
import { countTokens, markPrefixes, type Ask, type CachePoint, type Turn } from "./turn.ts";

export const content: Family = { name: "content", readAsk, writeReply, writeEvents };

const CACHED_CONTENT_TOKENS = 2048;

/** The model and whether to stream stand in the path; whoever routes adds them. */
function readAsk(body: unknown): Ask {
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

function readChoice(config: unknown): Ask["choice"] {
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

/** Content that was cached beforehand is always read, never written: the same point twice. */
function markCachedContent(name: string): CachePoint[] {
  return markPrefixes([{ text: name, ttl: "5m" }]).map((point) => ({
    ...point,
    tokens: CACHED_CONTENT_TOKENS,
  }));
}

function writeUsage({ counts }: Turn, thought: number, said: number): Json {
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

function writeChunk(turn: Turn, parts: readonly Json[], usage: Json, finishReason?: string): Json {
  const end = finishReason === undefined ? {} : { finishReason };
  return {
    candidates: [{ content: { parts, role: "model" }, ...end, index: 0 }],
    usageMetadata: usage,
    modelVersion: turn.model,
    responseId: `demo${turn.serial}`,
  };
}

function writeCalls(turn: Turn): Json[] {
  return turn.calls.map((call) => ({
    functionCall: { name: call.name, args: parseJson(call.input), id: call.id },
    thoughtSignature: Buffer.from(`demo-signature-${call.id}`).toString("base64"),
  }));
}

function nameFinish(turn: Turn): string {
  return turn.stop === "length" ? "MAX_TOKENS" : "STOP";
}

function showsThoughts(body: unknown): boolean {
  return pick(body, "generationConfig", "thinkingConfig", "includeThoughts") === true;
}

function writeReply(turn: Turn, body: unknown): Json {
  const { output, reasoning } = turn.counts;
  const thoughts =
    reasoning > 0 && showsThoughts(body) ? [{ text: turn.thinking.join(""), thought: true }] : [];
  const text = turn.text.length > 0 ? [{ text: turn.text.join("") }] : [];
  const parts = [...thoughts, ...text, ...writeCalls(turn)];
  return writeChunk(turn, parts, writeUsage(turn, reasoning, output - reasoning), nameFinish(turn));
}

function writeEvents(turn: Turn, body: unknown): string[] {
  const { output, reasoning } = turn.counts;
  const thoughts = showsThoughts(body) ? turn.thinking : [];
  const calls = writeCalls(turn);
  const chunks = [
    ...thoughts.map((text, index) =>
      writeChunk(turn, [{ text, thought: true }], writeUsage(turn, index + 1, 0)),
    ),
    ...turn.text.map((text, index) => writeChunk(turn, [{ text }], writeUsage(turn, reasoning, index + 1))),
    ...(calls.length > 0 ? [writeChunk(turn, calls, writeUsage(turn, reasoning, output - reasoning))] : []),
    writeChunk(turn, [{ text: "" }], writeUsage(turn, reasoning, output - reasoning), nameFinish(turn)),
  ];
  return chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\r\n\r\n`);
}
