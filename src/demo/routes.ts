// Which path of the simulated upstream does what. Any prefix before the version
// is accepted, so that a base URL may hold one.

import { answerJson, answerStream, type Answer } from "./answers/answer.ts";
import { chat } from "./answers/chat.ts";
import { content } from "./answers/content.ts";
import type { Family, FamilyName } from "./answers/family.ts";
import { decodeName, pick, pickList, pickNumber, readText, type Json } from "./json.ts";
import { messages } from "./answers/messages.ts";
import { keepIds, writeList, writeModel, type DemoPlatform, type ListShape } from "./models.ts";
import { refuse } from "./answers/refusal.ts";
import { responses } from "./answers/responses.ts";
import { answerStored, compact, keepStored, type Stored } from "./answers/stored.ts";
import { composeTurn, countTokens, type Ask, type Memory } from "./answers/turn.ts";

/** A request as the routes see it. */
export interface Question {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  field(name: string): string | undefined;
  /** The body's JSON; undefined where it isn't any. */
  readonly body: unknown;
  /** How many words the answer shall have; undefined: as many as it needs. */
  readonly words: number | undefined;
}

export interface World {
  readonly platform: DemoPlatform | null;
  readonly models: readonly string[];
  readonly credential: string | null;
  readonly memory: Memory;
  readonly stored: Map<string, Stored>;
}

interface Route {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: RegExp;
  readonly family: FamilyName;
  act(question: Question, world: World, match: RegExpExecArray): Answer;
}

const FAMILIES: Readonly<Record<DemoPlatform, readonly FamilyName[]>> = {
  messages: ["messages"],
  responses: ["responses", "chat"],
  content: ["content"],
  relay: ["messages", "content"],
};

const ROUTES: readonly Route[] = [
  { method: "POST", path: /\/v1\/messages$/, family: "messages", act: (q, w) => generate(messages, q, w) },
  { method: "POST", path: /\/v1\/messages\/count_tokens$/, family: "messages", act: countMessages },
  { method: "POST", path: /\/v1\/chat\/completions$/, family: "chat", act: (q, w) => generate(chat, q, w) },
  { method: "POST", path: /\/v1\/responses$/, family: "responses", act: (q, w) => generate(responses, q, w) },
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

export function answerQuestion(question: Question, world: World): Answer {
  const allowed = world.platform === null ? null : FAMILIES[world.platform];
  if (question.method === "GET" && isModelPath(question.path)) return answerModels(question, world);
  for (const route of ROUTES) {
    const match = route.method === question.method ? route.path.exec(question.path) : null;
    if (match === null || allowed?.includes(route.family) === false) continue;
    if (!isWelcome(question, world)) return refuse(route.family, 401);
    if (question.method === "POST" && question.body === undefined)
      return refuse(route.family, 400, "The body is not JSON.");
    return route.act(question, world, match);
  }
  return refuse(guessFamily(question.path), 404, `There is no ${question.method} ${question.path} here.`);
}

export function isModelPath(path: string): boolean {
  return /\/models(\/[^:]*)?$/.test(path);
}

/** The native shape for a path, known or not. */
function guessFamily(path: string): FamilyName {
  const found = ROUTES.find((route) => route.path.test(path))?.family;
  return (
    found ?? (path.includes("/v1beta/") ? "content" : path.includes("/messages") ? "messages" : "responses")
  );
}

function isWelcome(question: Question, { credential }: World): boolean {
  if (credential === null) return true;
  const bearer = question.field("authorization")?.replace(/^bearer /i, "");
  const shown = [
    bearer,
    question.field("x-api-key"),
    question.field("x-goog-api-key"),
    question.query.get("key"),
  ];
  return shown.includes(credential);
}

function generate(family: Family, question: Question, world: World, known: Partial<Ask> = {}): Answer {
  const { body } = question;
  const ask = { ...family.readAsk(body), ...known };
  if (ask.model === "") return refuse(family.name, 400, "The model is missing.");
  const turn = composeTurn(ask, world.memory, question.words);
  const reply = family.writeReply(turn, body);
  if (family.name === "responses" && reply["store"] === true) keepStored(world.stored, { reply, body });
  return ask.stream
    ? answerStream(family.name, family.writeEvents(turn, body))
    : answerJson(family.name, reply);
}

function countMessages({ body }: Question): Answer {
  return answerJson("messages", { input_tokens: messages.readAsk(body).inputTokens });
}

function countInput({ body }: Question): Answer {
  return answerJson("responses", {
    object: "response.input_tokens",
    input_tokens: responses.readAsk(body).inputTokens,
  });
}

function compactInput({ body }: Question, world: World): Answer {
  return answerJson("responses", compact(composeTurn(responses.readAsk(body), world.memory), body));
}

function readStored({ method }: Question, world: World, [, id = "", part]: RegExpExecArray): Answer {
  return answerStored(world.stored, id, method === "DELETE" ? "delete" : part);
}

function actOnModel(question: Question, world: World, [, encoded = "", verb = ""]: RegExpExecArray): Answer {
  const model = decodeName(encoded);
  const { body } = question;
  switch (verb) {
    case "generateContent":
      return generate(content, question, world, { model });
    case "streamGenerateContent": {
      const stream = generate(content, question, world, { model, stream: true });
      return question.query.get("alt") === "sse" ? stream : joinArray(stream);
    }
    case "countTokens": {
      const tokens = content.readAsk(pick(body, "generateContentRequest") ?? body).inputTokens;
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
      return refuse("content", 404);
  }
}

/** Without `alt=sse` a stream is one JSON array, a chunk an element. */
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
  return { values: Array.from({ length: size }, (_, index) => ((seed + index) % 10) / 10) };
}

function answerModels(question: Question, world: World): Answer {
  const shape = readShape(question, world.platform);
  const family = shape === "messages" || shape === "content" ? shape : "responses";
  if (!isWelcome(question, world)) return refuse(family, 401);
  const ids = keepIds(world.models, shape);
  const [, encoded] = /\/models\/(.+)$/.exec(question.path) ?? [];
  if (encoded === undefined) return answerJson(family, writeList(ids, shape, question.query));
  const id = decodeName(encoded);
  return ids.includes(id) ? answerJson(family, writeModel(id, shape)) : refuse(family, 404, `model: ${id}`);
}

function readShape(question: Question, platform: DemoPlatform | null): ListShape {
  const { path, query } = question;
  if (path.includes("/v1beta/")) return "content";
  if (!path.includes("/v1/")) return "relay";
  if (platform === "messages" || platform === "content") return platform;
  if (platform === "responses") return "openai";
  if (question.field("x-goog-api-key") !== undefined || query.has("key")) return "content";
  return question.field("anthropic-version") === undefined ? "openai" : "messages";
}
