// Answers each path of the simulated upstream. Any prefix before the version is accepted, because a base URL may have one.

import { answerJson, answerStream, type Answer } from "./answers/answer.ts";
import { chat } from "./answers/chat.ts";
import { findChatProblem } from "./answers/chat-rules.ts";
import { content } from "./answers/content.ts";
import type { Family, FamilyName } from "./answers/family.ts";
import { decodeName, pick, pickList, pickNumber, pickText, readText, type Json } from "./json.ts";
import { messages } from "./answers/messages.ts";
import { filterIds, writeList, writeModel, type DemoPlatform, type ListShape } from "./models.ts";
import { answerError } from "./answers/errors.ts";
import { responses } from "./answers/responses.ts";
import { answerStored, compact, type StoredResponses } from "./answers/stored.ts";
import { composeCompletion, countTokens, type ModelRequest, type Memory } from "./answers/completion.ts";

/** A request as the routes receive it. */
export interface DemoRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  field(name: string): string | undefined;
  /** The body's JSON. Undefined if it is not valid. */
  readonly body: unknown;
}

export interface DemoState {
  readonly platform: DemoPlatform | null;
  readonly models: readonly string[];
  readonly credential: string | null;
  readonly memory: Memory;
  readonly stored: StoredResponses;
}

interface DemoRoute {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: RegExp;
  readonly family: FamilyName;
  act(request: DemoRequest, state: DemoState, match: RegExpExecArray): Answer;
}

const FAMILIES: Readonly<Record<DemoPlatform, readonly FamilyName[]>> = {
  messages: ["messages"],
  responses: ["responses", "chat"],
  content: ["content"],
  relay: ["messages", "content"],
  chat: ["chat"],
};

/** The shape of `/v1/models`, or null if the client's own headers decide. */
const SHAPE_OF: Readonly<Record<DemoPlatform, ListShape | null>> = {
  messages: "messages",
  responses: "openai",
  content: "content",
  relay: null,
  chat: "openai",
};

const ROUTES: readonly DemoRoute[] = [
  { method: "POST", path: /\/v1\/messages$/, family: "messages", act: (r, s) => generate(messages, r, s) },
  { method: "POST", path: /\/v1\/messages\/count_tokens$/, family: "messages", act: countMessages },
  { method: "POST", path: /\/v1\/chat\/completions$/, family: "chat", act: answerChat },
  { method: "POST", path: /\/v1\/embeddings$/, family: "chat", act: embedInput },
  { method: "POST", path: /\/v1\/alpha\/search$/, family: "responses", act: searchWeb },
  { method: "POST", path: /\/v1\/images\/(?:generations|edits)$/, family: "responses", act: makePicture },
  { method: "POST", path: /\/v1\/responses$/, family: "responses", act: (r, s) => generate(responses, r, s) },
  { method: "POST", path: /\/v1\/responses\/compact$/, family: "responses", act: compactInput },
  { method: "POST", path: /\/v1\/responses\/input_tokens$/, family: "responses", act: countInput },
  { method: "POST", path: /\/v1\/responses\/([^/]+)\/(cancel)$/, family: "responses", act: readStored },
  {
    method: "GET",
    path: /\/v1\/responses\/([^/]+)(?:\/(input_items))?$/,
    family: "responses",
    act: readStored,
  },
  { method: "DELETE", path: /\/v1\/responses\/([^/]+)$/, family: "responses", act: readStored },
  { method: "POST", path: /\/v1(?:beta)?\/models\/(.+):([a-zA-Z]+)$/, family: "content", act: actOnModel },
];

export function answerRequest(request: DemoRequest, state: DemoState): Answer {
  const allowed = state.platform === null ? null : FAMILIES[state.platform];
  if (request.method === "GET" && isModelPath(request.path)) return answerModels(request, state);
  for (const route of ROUTES) {
    const match = route.method === request.method ? route.path.exec(request.path) : null;
    if (match === null || allowed?.includes(route.family) === false) continue;
    if (!hasCredential(request, state)) return answerError(route.family, 401);
    if (request.method === "POST" && request.body === undefined)
      return answerError(route.family, 400, "The body is not JSON.");
    return route.act(request, state, match);
  }
  return answerError(findFamily(request.path), 404, `There is no ${request.method} ${request.path} here.`);
}

export function isModelPath(path: string): boolean {
  return /\/models(\/[^:]*)?$/.test(path);
}

/** Finds the format of errors for a path, known or not. */
function findFamily(path: string): FamilyName {
  const found = ROUTES.find((route) => route.path.test(path))?.family;
  return (
    found ?? (path.includes("/v1beta/") ? "content" : path.includes("/messages") ? "messages" : "responses")
  );
}

function hasCredential(request: DemoRequest, { credential }: DemoState): boolean {
  if (credential === null) return true;
  const bearer = request.field("authorization")?.replace(/^bearer /i, "");
  const shown = [
    bearer,
    request.field("x-api-key"),
    request.field("x-goog-api-key"),
    request.query.get("key"),
  ];
  return shown.includes(credential);
}

function generate(
  family: Family,
  request: DemoRequest,
  state: DemoState,
  known: Partial<ModelRequest> = {},
): Answer {
  const { body } = request;
  const modelRequest = { ...family.readRequest(body), ...known };
  if (modelRequest.model === "") return answerError(family.name, 400, "The model is missing.");
  const completion = composeCompletion(modelRequest, state.memory);
  const reply = family.writeReply(completion, body);
  if (family.name === "responses" && reply["store"] === true)
    state.stored.set(pickText(reply, "id"), { reply, body });
  return modelRequest.stream
    ? answerStream(family.name, family.writeEvents(completion, body))
    : answerJson(family.name, reply);
}

/** Only an upstream that simulates the platform `chat` refuses invalid requests. */
function answerChat(request: DemoRequest, state: DemoState): Answer {
  const problem = state.platform === "chat" ? findChatProblem(request.body) : null;
  return problem === null ? generate(chat, request, state) : answerError("chat", 400, problem);
}

function countMessages({ body }: DemoRequest): Answer {
  return answerJson("messages", { input_tokens: messages.readRequest(body).inputTokens });
}

function countInput({ body }: DemoRequest): Answer {
  return answerJson("responses", {
    object: "response.input_tokens",
    input_tokens: responses.readRequest(body).inputTokens,
  });
}

/** An embedding is a list of numbers. The official SDK asks for the bytes of these numbers in base64. */
function embedInput({ body }: DemoRequest): Answer {
  const model = pick(body, "model");
  if (typeof model !== "string") return answerError("responses", 400, "The model is missing.");
  const input = pick(body, "input");
  const texts = Array.isArray(input) ? input.map(readText) : [readText(input)];
  const isPacked = pick(body, "encoding_format") === "base64";
  const data = texts.map((text, index) => {
    const values = makeVector(text.length, pickNumber(body, "dimensions") ?? 8);
    const embedding = isPacked ? Buffer.from(new Float32Array(values).buffer).toString("base64") : values;
    return { object: "embedding", index, embedding };
  });
  const tokens = texts.reduce((sum, text) => sum + countTokens(text), 0);
  const usage = { prompt_tokens: tokens, total_tokens: tokens };
  return answerJson("responses", { object: "list", data, model, usage });
}

/** OpenAI's answer reports no usage: openai/codex, codex-rs/codex-api/src/search.rs */
function searchWeb({ body }: DemoRequest): Answer {
  return answerJson("responses", { output: `Found: ${JSON.stringify(pick(body, "commands"))}`, results: [] });
}

/** One grey pixel. */
const PICTURE =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg==";

function makePicture({ body }: DemoRequest): Answer {
  const prompt = countTokens(readText(pick(body, "prompt")));
  const pictures = pickList(body, "images").length * 100;
  const usage = {
    input_tokens: prompt + pictures,
    input_tokens_details: { text_tokens: prompt, image_tokens: pictures },
    output_tokens: 272,
    total_tokens: prompt + pictures + 272,
  };
  return answerJson("responses", { created: 0, data: [{ b64_json: PICTURE }], usage });
}

function compactInput({ body }: DemoRequest, state: DemoState): Answer {
  return answerJson("responses", compact(composeCompletion(responses.readRequest(body), state.memory), body));
}

function readStored({ method }: DemoRequest, state: DemoState, [, id = "", part]: RegExpExecArray): Answer {
  return answerStored(state.stored, id, method === "DELETE" ? "delete" : part);
}

function actOnModel(
  request: DemoRequest,
  state: DemoState,
  [, encoded = "", verb = ""]: RegExpExecArray,
): Answer {
  const model = decodeName(encoded);
  const { body } = request;
  switch (verb) {
    case "generateContent":
      return generate(content, request, state, { model });
    case "streamGenerateContent": {
      const stream = generate(content, request, state, { model, stream: true });
      return request.query.get("alt") === "sse" ? stream : joinArray(stream);
    }
    case "countTokens": {
      const tokens = content.readRequest(pick(body, "generateContentRequest") ?? body).inputTokens;
      return answerJson("content", {
        totalTokens: tokens,
        promptTokensDetails: [{ modality: "TEXT", tokenCount: tokens }],
      });
    }
    case "embedContent": {
      const tokens = countTokens(readText(pick(body, "content", "parts")));
      return answerJson("content", { embedding: embed(body), usageMetadata: { promptTokenCount: tokens } });
    }
    case "batchEmbedContents":
      return answerJson("content", { embeddings: pickList(body, "requests").map(embed) });
    default:
      return answerError("content", 404);
  }
}

/** Without `alt=sse`, a stream is one JSON array with one chunk for each element. */
function joinArray(stream: Answer): Answer {
  const chunks = stream.pieces.map((piece) =>
    new TextDecoder().decode(piece).slice("data: ".length).trimEnd(),
  );
  const pieces = chunks.map((chunk, index) => `${index === 0 ? "[" : ",\r\n"}${chunk}`);
  return answerStream("content", [...pieces, "]"], "application/json; charset=UTF-8");
}

function embed(request: unknown): Json {
  const size = pickNumber(request, "outputDimensionality") ?? 8;
  const seed = readText(pick(request, "content", "parts")).length;
  return { values: makeVector(seed, size) };
}

function makeVector(seed: number, size: number): number[] {
  return Array.from({ length: size }, (_, index) => ((seed + index) % 10) / 10);
}

function answerModels(request: DemoRequest, state: DemoState): Answer {
  const shape = readShape(request, state.platform);
  const family = shape === "messages" || shape === "content" ? shape : "responses";
  if (!hasCredential(request, state)) return answerError(family, 401);
  const ids = filterIds(state.models, shape);
  const [, encoded] = /\/models\/(.+)$/.exec(request.path) ?? [];
  if (encoded === undefined) return answerJson(family, writeList(ids, shape));
  const id = decodeName(encoded);
  return ids.includes(id)
    ? answerJson(family, writeModel(id, shape))
    : answerError(family, 404, `model: ${id}`);
}

function readShape(request: DemoRequest, platform: DemoPlatform | null): ListShape {
  const { path, query } = request;
  if (path.includes("/v1beta/")) return "content";
  if (!path.includes("/v1/")) return "relay";
  const shape = platform === null ? null : SHAPE_OF[platform];
  if (shape !== null) return shape;
  if (request.field("x-goog-api-key") !== undefined || query.has("key")) return "content";
  return request.field("anthropic-version") === undefined ? "openai" : "messages";
}
