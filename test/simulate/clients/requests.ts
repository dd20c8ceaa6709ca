// A request as a client of each dialect sends it.

import type { Field } from "../../../src/lib/http/fields.ts";
import type { ClientPlan, Dialect, RequestPlan } from "../plan/plan.ts";
import type { Call } from "../world/client-side.ts";

const MODELS: Readonly<Record<Dialect, string>> = {
  messages: "claude-sonnet-4-5",
  responses: "gpt-5",
  content: "gemini-2.5-flash",
};

/** The dated name of a model with a price. Every request has another date, by which its line is found. */
export function modelOf(dialect: Dialect, number: number): string {
  return `${MODELS[dialect]}-20${String(number).padStart(6, "0")}`;
}

/** Null: the request has none. */
export function capOf(dialect: Dialect, { maxTokens }: RequestPlan): number | null {
  return maxTokens ?? (dialect === "messages" ? 100 : null);
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

/** What one send requests. */
export interface Ask {
  /** `c3r2s0` */
  readonly name: string;
  readonly request: RequestPlan;
}

type Asked = Ask & { readonly client: ClientPlan };

/** As the gateway's server hands it on. */
export function writeCall(client: ClientPlan, { name, request }: Ask): Call {
  const { dialect } = client;
  const { bad } = request;
  const agent: Field = ["user-agent", `sim/${name}`];
  const whole = { name, bodyEnd: "whole", bodyUs: 0, isMalformed: false } as const;
  const model = modelOf(dialect, request.number);
  const text = bad === "bad json" ? "{not json" : writeBody(dialect, model, name, request);
  const body = Buffer.from(text);
  return {
    ...whole,
    method: "POST",
    target: bad === "unknown path" ? "/v9/none" : pathOf(dialect, model, request.stream),
    fields: [agent, ...writeFields(client, request, body.length)],
    body,
    bodyEnd: bad === "broken body" ? "broken" : bad === "half a body" ? "missing" : "whole",
    bodyUs: (request.bodyMs ?? 0) * 1000,
    isMalformed: bad === "not http",
  };
}

const HOST: Field = ["host", "127.0.0.1:4141"];

/** What an upstream gets: nothing is changed. Null: it gets something else, or nothing. */
export function bodyAtUpstream({ client: { dialect }, name, request }: Asked): string | null {
  if (request.bad !== null) return null;
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
    content: `/v1beta/models/${model}:${action}`,
  };
  return paths[dialect];
}

function writeKey(dialect: Dialect, secret: string): Field {
  if (dialect === "content") return ["x-goog-api-key", secret];
  return dialect === "messages" ? ["x-api-key", secret] : ["authorization", `Bearer ${secret}`];
}

function writeFields(client: ClientPlan, request: RequestPlan, length: number): Field[] {
  const { dialect, key } = client;
  const { bad } = request;
  return [
    writeKey(dialect, bad === "unknown key" ? "sk-nobody" : secretOf(key)),
    ["content-type", "application/json"],
    bad === "broken body" ? ["transfer-encoding", "chunked"] : ["content-length", String(length)],
    HOST,
    ...(dialect === "messages" ? [["anthropic-version", "2023-06-01"] as const] : []),
  ];
}

function bodyOf(
  dialect: Dialect,
  model: string,
  prompt: string,
  request: RequestPlan,
): Record<string, unknown> {
  const { stream, maxTokens } = request;
  const messages = [{ role: "user", content: prompt }];
  switch (dialect) {
    case "messages":
      return {
        model,
        max_tokens: capOf(dialect, request),
        stream,
        messages,
      };
    case "responses":
      return {
        model,
        input: prompt,
        stream,
        ...(maxTokens === null ? {} : { max_output_tokens: maxTokens }),
      };
    case "content":
      return {
        contents: [{ role: "user", parts: [{ text: prompt }] }],
        ...(maxTokens === null ? {} : { generationConfig: { maxOutputTokens: maxTokens } }),
      };
  }
}
