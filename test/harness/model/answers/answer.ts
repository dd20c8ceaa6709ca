// An answer before it is framed: head fields and the pieces of the body, one piece for each event.

import type { Field } from "../../../../src/lib/http/fields.ts";
import type { FamilyName } from "./family.ts";

type Framing = "length" | "chunked" | "close";

export interface Answer {
  readonly family: FamilyName;
  readonly status: number;
  readonly fields: readonly Field[];
  readonly pieces: readonly Uint8Array[];
  readonly framing: Framing;
}

const encoder = new TextEncoder();

export function encode(text: string): Uint8Array {
  return encoder.encode(text);
}

export function answerJson(family: FamilyName, body: unknown, status = 200): Answer {
  const fields: Field[] = [["content-type", JSON_TYPES[family]], ...NATIVE_FIELDS[family]];
  return { family, status, fields, pieces: [encode(JSON.stringify(body))], framing: "length" };
}

export function answerStream(family: FamilyName, events: readonly string[], type?: string): Answer {
  const fields: Field[] = [["content-type", type ?? STREAM_TYPES[family]], ...NATIVE_FIELDS[family]];
  return { family, status: 200, fields, pieces: events.map(encode), framing: "chunked" };
}

/** The same answer with other fields. A given field replaces an existing one of the same name. */
export function replaceFields(answer: Answer, fields: readonly Field[]): Answer {
  const kept = answer.fields.filter(([name]) => fields.every(([other]) => other !== name));
  return { ...answer, fields: [...kept, ...fields] };
}

const JSON_TYPES = {
  messages: "application/json",
  responses: "application/json",
  chat: "application/json",
  content: "application/json; charset=UTF-8",
} as const;

const STREAM_TYPES = {
  messages: "text/event-stream; charset=utf-8",
  responses: "text/event-stream; charset=utf-8",
  chat: "text/event-stream; charset=utf-8",
  content: "text/event-stream",
} as const;

/** Fields that real platforms send too. A gateway must forward some of them and drop others (cookies, organisations). */
const OPENAI_FIELDS: readonly Field[] = [
  ["x-request-id", "req_demo"],
  ["openai-processing-ms", "12"],
  ["openai-version", "2020-10-01"],
  ["openai-organization", "demo-organisation"],
  ["x-ratelimit-remaining-requests", "9999"],
  ["set-cookie", "__cf_bm=demo; path=/; HttpOnly"],
];

const NATIVE_FIELDS: Readonly<Record<FamilyName, readonly Field[]>> = {
  messages: [
    ["request-id", "req_demo"],
    ["anthropic-organization-id", "00000000-0000-4000-8000-000000000000"],
    ["anthropic-ratelimit-requests-remaining", "3999"],
    ["set-cookie", "_cfuvid=demo; path=/; HttpOnly"],
  ],
  responses: OPENAI_FIELDS,
  chat: OPENAI_FIELDS,
  content: [
    ["x-gemini-service-tier", "standard"],
    ["server-timing", "gfet4t7; dur=12"],
    ["vary", "Origin"],
  ],
};
