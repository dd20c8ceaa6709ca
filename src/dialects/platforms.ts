// How each platform speaks. The rest is in PLATFORM_FACTS (config/schema.ts).

import type { ChannelPlatform, Platform } from "../config/schema.ts";
import { chat } from "./formats/chat.ts";
import { content } from "./formats/content.ts";
import type { Dialect } from "./dialect.ts";
import { messages } from "./formats/messages.ts";
import { relay } from "./formats/relay.ts";
import { responses } from "./formats/responses.ts";

export interface PlatformRow {
  readonly dialect: Dialect;
  readonly spoken: readonly ChannelPlatform[];
  /** A member that only this platform's model list has. */
  readonly listMark: string;
  readonly answerPaths: readonly string[];
  readonly tools: readonly ToolName[];
}

const AGENTS = ["opencode", "qwen", "copilot", "pi", "continue", "cline"] as const;
export type ToolName =
  | "claude"
  | "codex"
  | "gemini"
  | "openai"
  | "anthropic"
  | "google"
  | (typeof AGENTS)[number];

/** `gateway run` does not start these. */
export const ENV_TOOLS: ReadonlySet<string> = new Set(["qwen", "copilot", "continue", "cline"]);

export const PLATFORM_ROWS: Readonly<Record<Platform, PlatformRow>> = {
  messages: {
    dialect: messages,
    spoken: ["messages"],
    listMark: "has_more",
    answerPaths: ["/v1/messages"],
    tools: ["claude", ...AGENTS, "anthropic"],
  },
  responses: {
    dialect: responses,
    spoken: ["responses"],
    listMark: "object",
    answerPaths: ["/v1/responses", "/v1/chat/completions"],
    tools: ["codex", ...AGENTS, "openai"],
  },
  content: {
    dialect: content,
    spoken: ["content"],
    listMark: "models",
    answerPaths: ["/v1beta/models/{model}:streamGenerateContent"],
    tools: ["gemini", "opencode", "pi", "google"],
  },
  relay: {
    dialect: relay,
    spoken: ["messages", "content"],
    listMark: "data",
    answerPaths: ["/v1/messages", "/v1beta/models/{model}:streamGenerateContent"],
    tools: ["claude", "gemini", ...AGENTS, "anthropic", "google"],
  },
};

export const CHANNEL_ROWS: Readonly<Record<ChannelPlatform, ChannelRow>> = {
  ...PLATFORM_ROWS,
  chat: {
    dialect: chat,
    spoken: ["chat"],
    answerPaths: ["/v1/chat/completions"],
    ownVersions: true,
    asksUsage: true,
  },
};

export function dialectOf(platform: ChannelPlatform): Dialect {
  return CHANNEL_ROWS[platform].dialect;
}

interface ChannelRow extends Pick<PlatformRow, "dialect" | "spoken" | "answerPaths"> {
  /** A base URL may end in a version of its own instead of `/v1`. */
  readonly ownVersions?: true;
  readonly asksUsage?: true;
}

export function readPathPrefix(platform: Platform, relayPrefix: string): string {
  return platform === "relay" ? `/${relayPrefix}` : "";
}

export function describeList(platform: Platform, relayPrefix: string): string {
  return `GET ${readPathPrefix(platform, relayPrefix)}${dialectOf(platform).listPath}`;
}

export function describeAnswerPaths(platform: Platform, relayPrefix: string): string {
  const prefix = readPathPrefix(platform, relayPrefix);
  return `POST ${PLATFORM_ROWS[platform].answerPaths.map((path) => prefix + path).join(" or ")}`;
}
