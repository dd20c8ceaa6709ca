// The neutral form of a request: what was said, thought, called and returned, in the order in which it happened, and what
// the client asks for. It has no word of any dialect.

import type { ChatSettings } from "../../config/schema.ts";
import type { DialectName } from "../../dialects/dialect.ts";
import type { Json } from "./strict-json.ts";
import type { Notes } from "./notes.ts";

interface Marked {
  /** The client wants the prompt cached up to here. */
  readonly cache?: boolean;
}

export interface TextPart extends Marked {
  readonly kind: "text";
  readonly text: string;
  /** The model's own words of refusal. */
  readonly refusal?: true;
}

/** `url` is an address, or a `data:` URL. */
export interface MediaPart extends Marked {
  readonly kind: "image" | "file";
  readonly url: string;
  /** `url` is the name of a file that the upstream has stored. */
  readonly isStored?: true;
  readonly name: string | null;
  readonly detail?: string;
  /** Where the client has sent it. */
  readonly at: string;
}

export type ContentPart = TextPart | MediaPart;

export interface Message {
  readonly type: "message";
  readonly role: "system" | "user" | "assistant";
  /** The client's own word for `system`, where OpenAI has two. */
  readonly word?: "system";
  readonly parts: readonly ContentPart[];
}

/** What an upstream needs back unchanged. Only the reader and the writer of its own dialect know its members, but for `after`:
 *  it belongs to what was said before it. Other thoughts belong to what follows them. */
export type Seal = Json;

export interface Reasoning {
  readonly type: "reasoning";
  readonly text: string;
  /** Null: it came from elsewhere, or was changed. */
  readonly seal: Seal | null;
}

export interface Call {
  readonly type: "call";
  readonly id: string;
  readonly name: string;
  /** A custom tool takes free text; a function takes the text of a JSON object. */
  readonly custom: boolean;
  readonly input: string;
}

export interface Result {
  readonly type: "result";
  /** Of its call. */
  readonly id: string;
  readonly parts: readonly ContentPart[];
  readonly failed: boolean;
}

export type Item = Message | Reasoning | Call | Result;

export interface Tool {
  /** `search`: the provider's own web search. */
  readonly kind: "function" | "custom" | "search";
  /** Unique in the conversation. */
  readonly name: string;
  /** The client's own words for it, where `name` joins them. */
  readonly inside?: { readonly namespace: string; readonly name: string };
  /** The client knows its calls in a form of their own. */
  readonly form?: "tool_search" | "local_shell";
  readonly description: string;
  /** The JSON schema of its input, as text: numbers keep their digits. */
  readonly schema: string;
  /** What the text of a custom tool must fit. */
  readonly format?: Json | undefined;
  readonly settings: ToolSettings;
}

export interface ToolSettings {
  strict?: boolean;
  allowed_domains?: readonly unknown[];
  blocked_domains?: readonly unknown[];
  user_location?: Json;
  max_uses?: number;
}

/** What a tool's fields say. */
export interface ToolMembers extends ToolSettings {
  name?: string;
  description?: string;
  parameters?: Json;
  format?: Json;
}

export interface FreeChoice {
  readonly kind: "auto" | "any" | "none";
  /** Of these tools. */
  readonly only?: readonly string[];
}

export type Choice = FreeChoice | { readonly kind: "tool"; readonly name: string };

export const EFFORTS = ["none", "low", "medium", "high", "xhigh", "max"] as const;
export type Effort = (typeof EFFORTS)[number];

/** The JSON schema that an answer must fit. */
export interface AnswerSchema {
  readonly name: string;
  readonly description?: string;
  /** Text, as a tool's. */
  readonly schema: string;
  readonly strict: boolean;
}

/** What has the same name and meaning in both dialects of OpenAI, and no other has. */
export const OPENAI_OPTIONS = [
  "user",
  "safety_identifier",
  "prompt_cache_key",
  "prompt_cache_retention",
  "prompt_cache_options",
  "metadata",
  "store",
  "moderation",
  "top_logprobs",
] as const;

/** What a client may ask for. An absent one is the upstream's default. */
export interface Options extends Partial<Record<(typeof OPENAI_OPTIONS)[number], unknown>> {
  choice?: Choice;
  parallel?: boolean;
  cap?: number;
  temperature?: number;
  top_p?: number;
  top_k?: number;
  stop?: readonly string[];
  effort?: Effort;
  /** OpenAI's own word for it. */
  own_effort?: unknown;
  /** The client shows the model's thoughts. */
  thoughts?: boolean;
  schema?: AnswerSchema;
  /** Any JSON object. */
  json?: true;
  verbosity?: string;
  tier?: string;
  logprobs?: true;
  /** Of an image. Each has its own. */
  detail?: string;
}

export interface Conversation {
  readonly client: DialectName;
  readonly stream: boolean;
  readonly items: readonly Item[];
  readonly tools: readonly Tool[];
  readonly options: Options;
  readonly notes: Notes;
  /** What a chat client wants to see of the answer. */
  readonly wishes: Wishes;
  /** The client and the upstream speak OpenAI's two dialects. The client knows the provider's rules. */
  readonly isShared: boolean;
}

export interface Wishes {
  /** The usage of a stream. */
  readonly usage?: boolean;
  readonly logprobs?: boolean;
  /** It sent `functions`: its answer has one `function_call` at most. */
  readonly legacy?: boolean;
  /** It forces one call, which is then no reason to end: OpenAI says `stop`. */
  readonly forced?: boolean;
}

/** What a conversation is written for. */
export interface Destination {
  readonly dialect: DialectName;
  /** The upstream's name of the model. */
  readonly model: string;
  readonly quirks: Quirks;
  /** Stands for the session in the keys of caches; null: not known. It says nothing about the user. */
  readonly session: string | null;
}

/** How a server of the chat dialect differs from others: with the channel's settings, and with those of its address. */
export type Quirks = Readonly<{ [Name in keyof ChatSettings]-?: NonNullable<ChatSettings[Name]> }> & {
  /** Whether the usage of a stream has to be asked for. */
  readonly ask_usage: boolean;
};
