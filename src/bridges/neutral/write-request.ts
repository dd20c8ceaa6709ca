// What the writers of requests share.

import type {
  Call,
  Choice,
  ContentPart,
  Conversation,
  Item,
  Message,
  Options,
  Reasoning,
  Result,
  TextPart,
  Tool,
} from "./conversation.ts";
import { PROMPTS } from "./error.ts";
import { type Notes, refuseBody, refuseField } from "./notes.ts";
import { nameMediaType } from "../provider-rules.ts";

// Items → turns. The results of a turn's calls come directly after it: every
// upstream refuses a call without a result, or a result without a call.

export type ModelItem = Reasoning | Call | Message;

export type Turn =
  | { readonly side: "model"; readonly items: readonly ModelItem[] }
  /** `messages` includes system messages. */
  | { readonly side: "user"; readonly results: readonly Result[]; readonly messages: readonly Message[] };

export interface Turns {
  readonly system: readonly Message[];
  readonly turns: readonly Turn[];
}

const NO_RESULT = "[no result]";
/** Most upstreams want a message of the user first and last.
 *  This one is added. */
const CONTINUED: Message = {
  type: "message",
  role: "user",
  parts: [{ kind: "text", text: "[conversation continues]" }],
};

interface OpenTurn {
  readonly model: ModelItem[];
  readonly calls: CallState[];
  readonly messages: Message[];
  /** The results have come: the model speaks again in another turn. */
  isAnswered: boolean;
}

interface CallState {
  readonly turn: OpenTurn;
  /** A unique id: some models repeat ids. */
  readonly id: string;
  result: Result | null;
}

export function arrange(items: readonly Item[], notes: Notes, ends: "user" | "any" = "user"): Turns {
  const leading = items.findIndex((item) => item.type !== "message" || item.role !== "system");
  const first = leading < 0 ? items.length : leading;
  const draft = new Draft(notes);
  for (const item of items.slice(first)) draft.add(item);
  const turns = draft.finish();
  const continued: Turn = { side: "user", results: [], messages: [CONTINUED] };
  if (ends === "user" && turns[0]?.side === "model") turns.unshift(continued);
  if (ends === "user" && turns.at(-1)?.side === "model") turns.push(continued);
  return { system: items.slice(0, first).filter((item) => item.type === "message"), turns };
}

/** For upstreams that need a message of the user. */
export function arrangeForUser({ items, notes, client }: Conversation): Turns {
  const arranged = arrange(items, notes);
  if (arranged.turns.length > 0) return arranged;
  refuseBody(PROMPTS[client], "there is no message of the user.");
}

class Draft {
  readonly #notes: Notes;
  readonly #turns: OpenTurn[] = [];
  readonly #open = new Map<string, CallState>();
  readonly #uses = new Map<string, number>();
  readonly #given = new Map<string, Result>();
  /** Thoughts that wait for the model's next text or call.
   *  Upstreams refuse thoughts alone. */
  #thoughts: Reasoning[] = [];

  constructor(notes: Notes) {
    this.#notes = notes;
  }

  add(item: Item): void {
    if (item.type === "reasoning") this.#addThought(item);
    else if (item.type === "call") this.#addCall(item);
    else if (item.type === "result") this.#addResult(item);
    else if (item.parts.length === 0) return;
    else if (item.role === "assistant") this.#addSpoken(this.#modelTurn(), item);
    else {
      this.#thoughts = [];
      this.#lastTurn().messages.push(item);
    }
  }

  /** Upstreams take back only thoughts with their seal. */
  #addThought(thought: Reasoning): void {
    if (thought.seal === null) return;
    const turn = this.#openTurn();
    if (thought.seal["after"] === true && turn !== null) turn.model.push(thought);
    else this.#thoughts.push(thought);
  }

  #addSpoken(turn: OpenTurn, item: Call | Message): void {
    turn.model.push(...this.#thoughts, item);
    this.#thoughts = [];
  }

  finish(): Turn[] {
    return this.#turns.flatMap(({ model, calls, messages }) => {
      const results = calls.map(({ id, result }): Result => {
        if (result !== null) return { ...result, id };
        return { type: "result", id, parts: [{ kind: "text", text: NO_RESULT }], failed: false };
      });
      const turns: Turn[] = [];
      if (model.length > 0) turns.push({ side: "model", items: model });
      if (results.length + messages.length > 0) turns.push({ side: "user", results, messages });
      return turns;
    });
  }

  #addCall(call: Call): void {
    const uses = (this.#uses.get(call.id) ?? 0) + 1;
    this.#uses.set(call.id, uses);
    const turn = this.#modelTurn();
    const id = uses === 1 ? call.id : `${call.id}_${uses}`;
    const state: CallState = { turn, id, result: null };
    this.#open.set(call.id, state);
    turn.calls.push(state);
    this.#addSpoken(turn, { ...call, id });
  }

  #addResult(result: Result): void {
    this.#thoughts = [];
    const state = this.#open.get(result.id);
    // Gemini CLI sends a resumed session's results twice.
    if (state === undefined && Bun.deepEquals(this.#given.get(result.id), result)) return;
    this.#given.set(result.id, result);
    if (state !== undefined) {
      state.result = result;
      state.turn.isAnswered = true;
      this.#open.delete(result.id);
      return;
    }
    this.#notes.add("result_without_call");
    const parts = [{ kind: "text", text: "Result of a call that is not shown:" } as const, ...result.parts];
    this.#lastTurn().messages.push({ type: "message", role: "user", parts });
  }

  #modelTurn(): OpenTurn {
    return this.#openTurn() ?? this.#begin();
  }

  /** Null if the user or a tool spoke last. */
  #openTurn(): OpenTurn | null {
    const last = this.#turns.at(-1);
    return last !== undefined && last.messages.length === 0 && !last.isAnswered ? last : null;
  }

  #lastTurn(): OpenTurn {
    return this.#turns.at(-1) ?? this.#begin();
  }

  #begin(): OpenTurn {
    const turn: OpenTurn = { model: [], calls: [], messages: [], isAnswered: false };
    this.#turns.push(turn);
    return turn;
  }
}

/** For upstreams that take instructions only at the beginning. */
export function remind(text: string): string {
  return `<system-reminder>\n${text}\n</system-reminder>`;
}

/** A search that the client forces cannot be left out. */
export function keepFunctions({ tools, options: { choice }, notes }: Conversation): readonly Tool[] {
  const kept = tools.filter(({ kind }) => kind !== "search");
  if (kept.length === tools.length) return kept;
  const isForced = choice?.kind === "tool" && !kept.some(({ name }) => name === choice.name);
  if (isForced || kept.length === 0) refuseField("tools", "web_search is not available on this channel.");
  notes.add("tools:web_search");
  return kept;
}

/** Some upstreams cannot limit a choice, so they get only the allowed tools. */
export function keepAllowed(tools: readonly Tool[], choice: Choice | undefined): readonly Tool[] {
  const only = choice?.kind === "tool" ? undefined : choice?.only;
  if (only === undefined) return tools;
  const kept = tools.filter(({ name }) => only.includes(name));
  if (kept.length === 0) refuseField("tool_choice", "none of the tools that it allows is in `tools`.");
  return kept;
}

/** A member that is undefined is not sent. */
export function ifAny<Item>(list: readonly Item[]): readonly Item[] | undefined {
  return list.length === 0 ? undefined : list;
}

export function isText(part: ContentPart): part is TextPart {
  return part.kind === "text";
}

export function joinTexts(parts: readonly ContentPart[], separator = "\n\n"): string {
  const texts = parts.flatMap((part) => (part.kind === "text" ? [part.text] : []));
  return texts.length === 1 ? (texts[0] ?? "") : texts.join(separator);
}

/** Not all dialects have a field for a failed call. */
export function markFailure(text: string, failed: boolean): string {
  return failed && !/^error\b/i.test(text) ? `Error: ${text}` : text;
}

export function readDataUrl(url: string): { type: string; data: string } | null {
  if (!url.startsWith("data:")) return null;
  const comma = url.indexOf(",");
  const type = nameMediaType(url.slice("data:".length, comma));
  return comma < 0 ? null : { type, data: url.slice(comma + 1) };
}

export function limitOption(
  { notes }: Conversation,
  options: Options,
  name: "cap" | "temperature",
  most: number | null,
): void {
  if (most === null || (options[name] ?? 0) <= most) return;
  notes.addOption(name, most);
  options[name] = most;
}
