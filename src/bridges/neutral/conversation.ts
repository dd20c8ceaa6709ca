// The neutral form of a request.

import type { ChatSettings } from "../../config/schema.ts";
import type { DialectName } from "../../dialects/dialect.ts";
import type { Json, Notes } from "./notes.ts";

interface Marked {
  /** Asks to cache the prompt up to here. */
  readonly cache?: boolean;
}

export interface TextPart extends Marked {
  readonly kind: "text";
  readonly text: string;
  readonly refusal?: true;
}

export interface MediaPart extends Marked {
  readonly kind: "image" | "file";
  readonly url: string;
  /** `url` names a file in the upstream's store. */
  readonly isStored?: true;
  readonly name: string | null;
  readonly detail?: string;
  /** The field in the client's request. */
  readonly at: string;
}

export type ContentPart = TextPart | MediaPart;

export interface Message {
  readonly type: "message";
  readonly role: "system" | "user" | "assistant";
  /** Set if a chat client wrote `system`, not `developer`. */
  readonly word?: "system";
  readonly parts: readonly ContentPart[];
}

/** What an upstream needs back unchanged, such as the signature of a thought.
 *  With `after`, this seal belongs to the item before the `Reasoning`. */
export type Seal = Json;

export interface Reasoning {
  readonly type: "reasoning";
  readonly text: string;
  /** Null: there was no seal, it is another upstream's, or the client changed it. */
  readonly seal: Seal | null;
}

export interface Call {
  readonly type: "call";
  readonly id: string;
  readonly name: string;
  /** A custom tool takes free text, a function the text of a JSON object. */
  readonly custom: boolean;
  readonly input: string;
}

export interface Result {
  readonly type: "result";
  readonly id: string;
  readonly parts: readonly ContentPart[];
  readonly failed: boolean;
}

export type Item = Message | Reasoning | Call | Result;

export interface Tool {
  /** `search`: the provider's own web search. */
  readonly kind: "function" | "custom" | "search";
  readonly name: string;
  /** The parts of a `name` that has a namespace. */
  readonly inside?: { readonly namespace: string; readonly name: string };
  /** The client has a special form for calls of the tool. */
  readonly form?: "tool_search" | "local_shell";
  readonly description: string;
  /** Text, so that numbers keep their digits. */
  readonly schema: string;
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

export interface ToolMembers extends ToolSettings {
  name?: string;
  description?: string;
  parameters?: Json;
  format?: Json;
}

export interface FreeChoice {
  readonly kind: "auto" | "any" | "none";
  /** The tools to choose from. */
  readonly only?: readonly string[];
}

export type Choice = FreeChoice | { readonly kind: "tool"; readonly name: string };

export const EFFORTS = ["none", "low", "medium", "high", "xhigh", "max"] as const;
export type Effort = (typeof EFFORTS)[number];

export interface AnswerSchema {
  readonly name: string;
  readonly description?: string;
  readonly schema: string;
  readonly strict: boolean;
}

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

/** An absent option is the upstream's default. */
export interface Options extends Partial<Record<(typeof OPENAI_OPTIONS)[number], unknown>> {
  choice?: Choice;
  parallel?: boolean;
  cap?: number;
  temperature?: number;
  top_p?: number;
  top_k?: number;
  stop?: readonly string[];
  effort?: Effort;
  /** The client's own word for effort, for an upstream that knows OpenAI's words. */
  own_effort?: unknown;
  /** Whether the client shows thoughts. */
  thoughts?: boolean;
  schema?: AnswerSchema;
  /** The answer is any JSON object. */
  json?: true;
  verbosity?: string;
  tier?: string;
  logprobs?: true;
  /** Set if an image has a `detail`, to note it for upstreams that have none. */
  detail?: string;
}

export interface Conversation {
  readonly client: DialectName;
  readonly stream: boolean;
  readonly items: readonly Item[];
  readonly tools: readonly Tool[];
  readonly options: Options;
  readonly notes: Notes;
  readonly wishes: Wishes;
  /** A chat client talks to a responses upstream. Both dialects are OpenAI's. */
  readonly isShared: boolean;
}

export interface Wishes {
  readonly usage?: boolean;
  readonly logprobs?: boolean;
  /** The client uses the old form: an answer can have only one `function_call`. */
  readonly legacy?: boolean;
  /** The client forced the call, so the answer's end reason is `stop`. */
  readonly forced?: boolean;
}

export interface Destination {
  readonly dialect: DialectName;
  /** The upstream's name of the model. */
  readonly model: string;
  readonly quirks: Quirks;
  /** A pseudonym of the session, for cache keys.
   *  Null: the session is unknown. */
  readonly session: string | null;
}

export type Quirks = Readonly<{ [Name in keyof ChatSettings]-?: NonNullable<ChatSettings[Name]> }> & {
  /** A stream reports usage only if asked. */
  readonly ask_usage: boolean;
};
