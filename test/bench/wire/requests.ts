// The bytes of the benchmark's requests, and their instructions for the upstream.

import { TURNS, writeTurn } from "./conversation.ts";

/** The instruction for the upstream. It is in the prompt, which every gateway passes on; no two begin alike. */
export const KINDS = [
  "json",
  "flood",
  "paced",
  "slow",
  "halves",
  "events",
  "burst",
  "lasting",
  "turn",
] as const;
export type Kind = (typeof KINDS)[number];

export const MARK = "bench:";
/** The time between two events of a paced stream; other streams go as fast as the socket accepts. */
export const PACE_MS = { paced: 20, slow: 1000, halves: 2, events: 2, lasting: 20 } as const;
export type PacedKind = keyof typeof PACE_MS;

/** Events with text in a stream of these kinds. */
export const EVENTS = { events: 1000, burst: 2000, lasting: 250, turn: 300 } as const;

/** The time at which an event was sent, in microseconds of the machine's monotonic clock. */
export const STAMP_DIGITS = 16;
export const NO_STAMP = "0".repeat(STAMP_DIGITS);

export type Shape = "messages" | "responses" | "chat";

export interface RequestOptions {
  readonly kind: Kind;
  readonly port: number;
  readonly path: string;
  readonly fields: Readonly<Record<string, string>>;
  readonly model: string;
  /** The approximate size of the body. */
  readonly bytes: number;
}

export function findShape(path: string): Shape {
  if (path.endsWith("/responses")) return "responses";
  return path.endsWith("/chat/completions") ? "chat" : "messages";
}

export function writeRequest(options: RequestOptions): Buffer {
  const { kind, path, model, bytes } = options;
  const prompt = `${MARK}${kind} ${"all work and no play makes jack a dull boy ".repeat(bytes / 43 + 1)}`;
  const asked = writePrompt(findShape(path), prompt.slice(0, Math.max(16, bytes - 140)));
  return frame(options, JSON.stringify({ model, stream: kind !== "json", ...asked }), {
    "user-agent": "bench/1",
  });
}

/** The turns of one agent's session, one after the other. */
export function writeTurns(options: RequestOptions): Buffer[] {
  const session = crypto.randomUUID();
  const fields = {
    "user-agent": "claude-cli/2.1.332 (external, cli)",
    "x-claude-code-session-id": session,
    "x-app": "cli",
    "anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27",
    "anthropic-dangerous-direct-browser-access": "true",
    "x-stainless-lang": "js",
    "x-stainless-package-version": "0.94.0",
    "x-stainless-os": "Linux",
    "x-stainless-arch": "x64",
    "x-stainless-runtime": "node",
    "x-stainless-runtime-version": "v24.3.0",
    "x-stainless-retry-count": "0",
    "x-stainless-timeout": "600",
    "accept-encoding": "gzip, deflate, br, zstd",
  };
  return Array.from({ length: TURNS }, (_, turn) =>
    frame(options, writeTurn(options.model, session, turn), fields),
  );
}

function frame(
  { port, path, fields }: RequestOptions,
  body: string,
  own: Readonly<Record<string, string>>,
): Buffer {
  const head = Object.entries({
    host: `127.0.0.1:${port}`,
    accept: "application/json",
    ...own,
    "anthropic-version": "2023-06-01",
    ...fields,
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(body)),
  });
  const lines = head.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  return Buffer.from(`POST ${path} HTTP/1.1\r\n${lines}\r\n${body}`);
}

function writePrompt(shape: Shape, text: string): object {
  switch (shape) {
    case "messages":
      return { max_tokens: 1024, messages: [{ role: "user", content: [{ type: "text", text }] }] };
    case "responses":
      return { max_output_tokens: 1024, input: [{ role: "user", content: [{ type: "input_text", text }] }] };
    case "chat":
      return { max_completion_tokens: 1024, messages: [{ role: "user", content: text }] };
  }
}
