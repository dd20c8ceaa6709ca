// Writes requests as a client of each dialect sends them.

import type { ClientPlan, Dialect, RequestPlan } from "../plan/plan.ts";
import type { Call } from "../world/client-side.ts";

const MODELS: Readonly<Record<Dialect, string>> = {
  messages: "claude-sonnet-4-5",
  content: "gemini-2.5-flash",
};

/** The dated name of a model with a price. Every request has another date, by which its line is found. */
export function modelOf(dialect: Dialect, number: number): string {
  return `${MODELS[dialect]}-20${String(number).padStart(6, "0")}`;
}

/** Returns the number of the request with this model; null: there is none. */
export function numberOf(model: string): number | null {
  const digits = /-20(\d{6})$/.exec(model)?.[1];
  return digits === undefined ? null : Number(digits);
}

/** The beginning of all clients' keys. No upstream may see it. */
export const SECRET = "sk-sim-";

export function secretOf(client: string): string {
  return `${SECRET}${client}-Zq81mXw0pLr5Tn`;
}

export interface Ask {
  /** Client, request and sending, each counted from 0: `c3r2s0`. */
  readonly name: string;
  readonly client: ClientPlan;
  readonly request: RequestPlan;
}

export function writeCall(ask: Ask): Call {
  const { name, client, request } = ask;
  const { dialect, key } = client;
  const { bad } = request;
  const body = Buffer.from(bad === "bad json" ? "{not json" : writeBody(ask));
  return {
    name,
    method: "POST",
    target: writeTarget(ask),
    fields: [
      ["user-agent", `sim/${name}`],
      [
        dialect === "messages" ? "x-api-key" : "x-goog-api-key",
        bad === "unknown key" ? "sk-nobody" : secretOf(key),
      ],
      ["content-type", "application/json"],
      ["content-length", String(body.length)],
      ["host", "127.0.0.1:4141"],
    ],
    body,
    isBodyWhole: bad !== "half a body",
  };
}

function writeTarget({ client, request }: Ask): string {
  if (client.dialect === "messages") return "/v1/messages";
  const action = request.stream ? "streamGenerateContent?alt=sse" : "generateContent";
  return `/v1beta/models/${modelOf(client.dialect, request.number)}:${action}`;
}

/** Writes the body of the request. An upstream gets it unchanged. */
export function writeBody({ name, client: { dialect }, request }: Ask): string {
  const { stream, maxTokens, promptBytes, number } = request;
  const prompt = `${name.replace(/s\d+$/, "")} `.padEnd(promptBytes, "please tell me more ");
  if (dialect === "messages") {
    const messages = [{ role: "user", content: prompt }];
    return JSON.stringify({
      model: modelOf(dialect, number),
      max_tokens: maxTokens ?? 100,
      stream,
      messages,
    });
  }
  return JSON.stringify({
    contents: [{ role: "user", parts: [{ text: prompt }] }],
    ...(maxTokens === null ? {} : { generationConfig: { maxOutputTokens: maxTokens } }),
  });
}
