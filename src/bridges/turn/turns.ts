// Items → turns: the model and the user take turns, and the results of a turn's calls come directly after it, in the order
// of the calls. Every upstream refuses a call without a result and a result without a call.

import type { Call, Item, Message, Reasoning, Result } from "./conversation.ts";
import type { Notes } from "./notes.ts";

export type ModelItem = Reasoning | Call | Message;

export type Turn =
  | { readonly side: "model"; readonly items: readonly ModelItem[] }
  /** The results come first. `messages` are those of the user and of the system. */
  | { readonly side: "user"; readonly results: readonly Result[]; readonly messages: readonly Message[] };

export interface Turns {
  /** The instructions before the first turn. */
  readonly system: readonly Message[];
  readonly turns: readonly Turn[];
}

const NO_RESULT = "[no result]";

interface OpenTurn {
  readonly model: ModelItem[];
  readonly calls: CallState[];
  readonly messages: Message[];
  /** One of its calls has its result: the model speaks again in another turn. */
  isAnswered: boolean;
}

interface CallState {
  readonly turn: OpenTurn;
  /** Unique in the conversation: some models use the same id again. */
  readonly id: string;
  result: Result | null;
}

export function arrange(items: readonly Item[], notes: Notes): Turns {
  const leading = items.findIndex((item) => item.type !== "message" || item.role !== "system");
  const first = leading < 0 ? items.length : leading;
  const draft = new Draft(notes);
  for (const item of items.slice(first)) draft.add(item);
  return { system: items.slice(0, first).filter((item) => item.type === "message"), turns: draft.finish() };
}

class Draft {
  readonly #notes: Notes;
  readonly #turns: OpenTurn[] = [];
  /** By the client's id. */
  readonly #open = new Map<string, CallState>();
  readonly #uses = new Map<string, number>();

  constructor(notes: Notes) {
    this.#notes = notes;
  }

  add(item: Item): void {
    if (item.type === "reasoning") {
      // What its upstream did not write cannot be given back.
      if (item.seal !== null) this.#modelTurn().model.push(item);
    } else if (item.type === "call") this.#addCall(item);
    else if (item.type === "result") this.#addResult(item);
    else if (item.parts.length > 0) {
      if (item.role === "assistant") this.#modelTurn().model.push(item);
      else this.#lastTurn().messages.push(item);
    }
  }

  /** Each turn of the model with what the user sent after it. */
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
    turn.model.push({ ...call, id: state.id });
  }

  #addResult(result: Result): void {
    const state = this.#open.get(result.id);
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

  /** The turn that the model's next item belongs to. */
  #modelTurn(): OpenTurn {
    const last = this.#turns.at(-1);
    const isOpen = last !== undefined && last.messages.length === 0 && !last.isAnswered;
    return isOpen ? last : this.#begin();
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

/** For upstreams that know instructions only at the beginning. */
export function remind(text: string): string {
  return `<system-reminder>\n${text}\n</system-reminder>`;
}
