// A request as a client of each dialect sends it.

import { gzipSync, zstdCompressSync } from "node:zlib";
import { agentOf, type ClientPlan, type Dialect, type RequestPlan, sessionOf } from "../plan/plan.ts";

const MODELS: Readonly<Record<Dialect, string>> = {
  messages: "claude-sonnet-4-5",
  responses: "gpt-5",
  chat: "gpt-5",
  content: "gemini-2.5-flash",
  "relay-messages": "claude-sonnet-4-5",
  "relay-content": "gemini-2.5-flash",
};

/** The dated name of a model with a price. Every request has another date, by which its line is found. */
export function modelOf(dialect: Dialect, number: number): string {
  return `${MODELS[dialect]}-20${String(number).padStart(6, "0")}`;
}

/** The name of the model that the client sends. */
function nameModel(dialect: Dialect, { number, aliased = false }: RequestPlan): string {
  return aliased ? aliasOf(modelOf(dialect, number)) : modelOf(dialect, number);
}

export const aliasOf = (model: string): string => `easy-${model}`;

/** Null: the request has none. */
export function capOf(dialect: Dialect, { maxTokens }: RequestPlan): number | null {
  return maxTokens ?? (dialect.includes("messages") ? 100 : null);
}

/** The number of the request with this model; null: there is none. */
export function numberOf(model: string): number | null {
  const digits = /-20(\d{6})$/.exec(model)?.[1];
  return digits === undefined ? null : Number(digits);
}

/** How the keys of all clients begin: none of them may be seen by an upstream. */
export const SECRET = "sk-sim-";

export function secretOf(client: string): string {
  return `${SECRET}${client}-Zq81mXw0pLr5Tn`;
}

/** What one send requests: a new answer, or a stored one. */
export interface Ask {
  /** `c3r2s0` */
  readonly name: string;
  readonly request: RequestPlan;
  /** The id of the response that is fetched. */
  readonly fetches: string | null;
}

type Asked = Ask & { readonly client: ClientPlan };

export function writeRequest(client: ClientPlan, { name: send, request, fetches }: Ask): Buffer {
  if (fetches !== null) return writeFetch(client, send, fetches);
  const { bad } = request;
  const model = nameModel(client.dialect, request);
  const body = bad === "bad json" ? "{not json" : writeBody(client.dialect, model, send, request);
  const bytes = encode(Buffer.from(body), request.coding);
  const fields = writeFields(client, request, bytes.length);
  const path = bad === "unknown path" ? "/v9/none" : pathOf(client.dialect, model, request.stream);
  const tool = client.agents === undefined ? "" : "claude-cli/2.1.0 ";
  const lines = [`POST ${path} HTTP/1.1`, `user-agent: ${tool}sim/${send}`, ...fields];
  const head = Buffer.from(`${lines.join("\r\n")}\r\n\r\n`);
  if (bad === "broken chunk") return Buffer.concat([head, Buffer.from("zz\r\n"), bytes]);
  return Buffer.concat([head, bad === "half a body" ? bytes.subarray(0, bytes.length >> 1) : bytes]);
}

function writeFetch({ dialect, key, keepAlive }: ClientPlan, send: string, id: string): Buffer {
  const lines = [
    `GET /v1/responses/${id} HTTP/1.1`,
    `user-agent: sim/${send}`,
    "host: 127.0.0.1:4141",
    writeKey(dialect, secretOf(key)),
    ...(keepAlive ? [] : ["connection: close"]),
  ];
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n`);
}

/** The request for a WebSocket. */
export function writeUpgrade(client: ClientPlan, { bad, number }: RequestPlan, handshakeKey: string): Buffer {
  const lines = [
    `GET ${bad === "unknown path" ? "/v9/none" : "/v1/responses"} HTTP/1.1`,
    `user-agent: sim/${client.name}`,
    writeKey(client.dialect, bad === "unknown key" ? "sk-nobody" : secretOf(client.key)),
    ...(bad === "no host" ? [] : ["host: 127.0.0.1:4141"]),
    ...writeSession(client, number),
    "connection: Upgrade",
    "upgrade: websocket",
    "sec-websocket-version: 13",
    `sec-websocket-key: ${handshakeKey}`,
  ];
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n`);
}

/** A request as a message on a WebSocket. The message names its send, because the upgrade cannot. */
export function writeCreate({ client, name, request }: Asked, stream: string | null): string {
  const model = nameModel(client.dialect, request);
  const { stream: _, ...body } = bodyOf(client.dialect, model, promptOf(name, request), request);
  const metadata = { send: `sim/${name}` };
  return JSON.stringify({
    type: "response.create",
    ...(stream === null ? {} : { stream_id: stream }),
    ...body,
    metadata,
  });
}

/** What an upstream gets: an alias is replaced, and nothing else. Null: it gets something else, or nothing. */
export function bodyAtUpstream({ client: { dialect }, name, request, fetches }: Asked): string | null {
  if (dialect === "chat" || fetches !== null || request.bad !== null) return null;
  return writeBody(dialect, modelOf(dialect, request.number), name, request);
}

function writeBody(dialect: Dialect, model: string, send: string, request: RequestPlan): string {
  return JSON.stringify(bodyOf(dialect, model, promptOf(send, request), request));
}

function promptOf(send: string, { promptBytes }: RequestPlan): string {
  return `${send.replace(/s\d+$/, "")} `.padEnd(promptBytes, "please tell me more ");
}

function pathOf(dialect: Dialect, model: string, stream: boolean): string {
  const action = stream ? "streamGenerateContent?alt=sse" : "generateContent";
  const paths: Readonly<Record<Dialect, string>> = {
    messages: "/v1/messages",
    responses: "/v1/responses",
    chat: "/v1/chat/completions",
    content: `/v1beta/models/${model}:${action}`,
    "relay-messages": "/relay/v1/messages",
    "relay-content": `/relay/v1beta/models/${model}:${action}`,
  };
  return paths[dialect];
}

function writeKey(dialect: Dialect, secret: string): string {
  if (dialect.includes("content")) return `x-goog-api-key: ${secret}`;
  return dialect.includes("messages") ? `x-api-key: ${secret}` : `authorization: Bearer ${secret}`;
}

function writeSession(client: ClientPlan, number: number): string[] {
  const [session, agent] = [sessionOf(client, number), agentOf(client, number)];
  const tool = client.agents === undefined ? "" : "claude-code-";
  const fields = session === null ? [] : [`x-${tool}session-id: ${session}`];
  return agent === null ? fields : [...fields, `x-claude-code-agent-id: ${agent}`];
}

function writeFields(client: ClientPlan, request: RequestPlan, length: number): string[] {
  const { dialect, key, keepAlive } = client;
  const { bad, coding, number } = request;
  const fields = [
    writeKey(dialect, bad === "unknown key" ? "sk-nobody" : secretOf(key)),
    "content-type: application/json",
    bad === "broken chunk" ? "transfer-encoding: chunked" : `content-length: ${length}`,
  ];
  fields.push(...writeSession(client, number));
  if (bad !== "no host") fields.push("host: 127.0.0.1:4141");
  if (bad === "two lengths") fields.push(`content-length: ${length + 1}`);
  if (bad === "expect") fields.push("expect: 100-continue");
  if (dialect.includes("messages")) fields.push("anthropic-version: 2023-06-01");
  if (coding !== null) fields.push(`content-encoding: ${coding}`);
  if (!keepAlive) fields.push("connection: close");
  return fields;
}

function encode(bytes: Buffer, coding: RequestPlan["coding"]): Buffer {
  if (coding === "gzip") return gzipSync(bytes);
  return coding === "zstd" ? zstdCompressSync(bytes) : bytes;
}

function writeResponsesOptions({ maxTokens, background = null }: RequestPlan): object {
  return {
    ...(background === null ? {} : { background: true, store: true }),
    ...(maxTokens === null ? {} : { max_output_tokens: maxTokens }),
  };
}

function bodyOf(
  dialect: Dialect,
  model: string,
  prompt: string,
  request: RequestPlan,
): Record<string, unknown> {
  const { stream, maxTokens } = request;
  const pairs = writePairs(dialect, request);
  switch (dialect) {
    case "messages":
    case "relay-messages":
      return {
        model,
        max_tokens: capOf(dialect, request),
        stream,
        messages: [{ role: "user", content: prompt }, ...pairs],
      };
    case "responses":
      return {
        model,
        input: pairs.length === 0 ? prompt : [{ role: "user", content: prompt }, ...pairs],
        stream,
        ...writeResponsesOptions(request),
      };
    case "chat":
      return {
        model,
        stream,
        messages: [{ role: "user", content: prompt }, ...pairs],
        ...(maxTokens === null ? {} : { max_completion_tokens: maxTokens }),
        ...(stream ? { stream_options: { include_usage: true } } : {}),
      };
    case "content":
    case "relay-content":
      return {
        contents: [{ role: "user", parts: [{ text: prompt }] }, ...pairs],
        ...(maxTokens === null ? {} : { generationConfig: { maxOutputTokens: maxTokens } }),
      };
  }
}

/** One call of a tool with its result, and then as many equal ones as the plan says. */
function writePairs(dialect: Dialect, { pairs: count }: RequestPlan): object[] {
  if (count === undefined) return [];
  return Array.from({ length: count + 1 }, (_, index) =>
    writePair(dialect, `call${index}`, index > 0),
  ).flat();
}

function writePair(dialect: Dialect, id: string, isEqual: boolean): object[] {
  const input = { path: isEqual ? "same.txt" : "other.txt" };
  const [name, args, output] = ["look", JSON.stringify(input), "nothing"];
  switch (dialect) {
    case "messages":
    case "relay-messages":
      return [
        { role: "assistant", content: [{ type: "tool_use", id, name, input }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: output }] },
      ];
    case "responses":
      return [
        { type: "function_call", call_id: id, name, arguments: args },
        { type: "function_call_output", call_id: id, output },
      ];
    case "chat":
      return [
        { role: "assistant", tool_calls: [{ id, type: "function", function: { name, arguments: args } }] },
        { role: "tool", tool_call_id: id, content: output },
      ];
    case "content":
    case "relay-content":
      return [
        { role: "model", parts: [{ functionCall: { name, args: input } }] },
        { role: "user", parts: [{ functionResponse: { name, response: { output } } }] },
      ];
  }
}
