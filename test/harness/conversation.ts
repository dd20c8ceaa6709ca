// Writes conversations of an agent with its model, as tools do in each dialect.

import type { CachingDialect } from "./upstreams/caching-upstream.ts";

type Value = Record<string, unknown>;

export interface Conversation {
  tools: Value[];
  system: string[];
  /** The conversation in turns: the user's or a tool's text, then the model's. */
  turns: { role: "user" | "assistant"; text: string }[];
  model: string;
  /** More members of the request's body. */
  extra: Value;
}

const WORDS = "the tool reads a file and writes it again with one more line at its end ";

export function textOf(characters: number, seed: string): string {
  return `${seed}: ${WORDS.repeat(Math.ceil(characters / WORDS.length))}`.slice(0, characters);
}

export function openConversation(seed: string, first: string, model = "claude-sonnet-4-5"): Conversation {
  const tools = ["Read", "Write", "Bash"].map((name) => ({
    name,
    description: textOf(1600, `${seed} ${name}`),
    input_schema: { type: "object", properties: { path: { type: "string" } } },
  }));
  return {
    tools,
    system: [textOf(400, `${seed} who you are`), textOf(6000, `${seed} how you work`)],
    turns: [{ role: "user", text: first }],
    model,
    extra: {},
  };
}

/** Adds the model's answer and the user's next text. */
export function goOn(conversation: Conversation, answer: string, next: string): void {
  conversation.turns.push({ role: "assistant", text: answer }, { role: "user", text: next });
}

/** JSON as Python's `json.dumps` writes it by default: with a space after each comma and colon. */
export function writeAsPython(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(writeAsPython).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}: ${writeAsPython(member)}`).join(", ")}}`;
}

const MARK = { cache_control: { type: "ephemeral" } };

/** A messages request has marks as Claude Code sets them: at the end of the system prompt and of the last message. */
export function writeRequest(dialect: CachingDialect, conversation: Conversation, stream = false): Value {
  const { tools, system, turns, model, extra } = conversation;
  if (dialect === "messages") {
    const last = turns.length - 1;
    return {
      model,
      max_tokens: 100,
      stream,
      system: system.map((text, index) => ({ type: "text", text, ...(index === system.length - 1 && MARK) })),
      messages: turns.map(({ role, text }, index) => ({
        role,
        content: index === last ? [{ type: "text", text, ...MARK }] : text,
      })),
      tools,
      ...extra,
    };
  }
  if (dialect === "responses") {
    const input = turns.map(({ role, text }) => ({
      type: "message",
      role,
      content: [{ type: role === "user" ? "input_text" : "output_text", text }],
    }));
    return { model, stream, instructions: system.join("\n"), tools, input, ...extra };
  }
  if (dialect === "chat") {
    const messages = [
      ...system.map((content) => ({ role: "system", content })),
      ...turns.map(({ role, text }) => ({ role, content: text })),
    ];
    const functions = tools.map(({ name, description, input_schema: parameters }) => ({
      type: "function",
      function: { name, description, parameters },
    }));
    return { model, stream, messages, tools: functions, ...extra };
  }
  return {
    systemInstruction: { parts: [{ text: system.join("\n") }] },
    tools: [{ functionDeclarations: tools }],
    contents: turns.map(({ role, text }) => ({
      role: role === "user" ? "user" : "model",
      parts: [{ text }],
    })),
    ...extra,
  };
}
