// An answer of a chat server → blocks. Servers differ much: thoughts have three names, a call may come whole or in pieces,
// indices may be missing or repeated, and usage may come anywhere.

import { getField, getList, isObject } from "../../lib/json/json.ts";
import type { Seal } from "../turn/conversation.ts";
import { blameAnswer, isFailure, readFailure } from "../turn/failure.ts";
import type { EndReason, Sequence } from "../turn/sequence.ts";
import { type AnswerReader, CUT } from "./reading.ts";

/** An unknown reason is a failure, and no end. `function_call` is an old word for calls. */
const REASONS: Readonly<Record<string, EndReason>> = {
  stop: "done",
  eos: "done",
  end_turn: "done",
  tool_calls: "done",
  tool_use: "done",
  function_call: "done",
  length: "cap",
  max_tokens: "cap",
  content_filter: "refusal",
  refusal: "refusal",
};

export class ChatAnswerReader implements AnswerReader {
  readonly #to: Sequence;
  /** Of text, thoughts and refusal: only one is open. */
  #open: "text" | "reasoning" | "refusal" | null = null;
  #seal: Seal | null = null;
  #details: unknown[] = [];
  readonly #calls: StreamedCall[] = [];
  #finish: EndReason | null = null;
  #unknown: string | null = null;
  #hasUsage = false;

  constructor(to: Sequence) {
    this.#to = to;
  }

  read(chunk: unknown): void {
    if (isFailure(chunk)) return this.#to.fail(readFailure(200, chunk));
    if (!isObject(chunk)) return;
    const { id, model } = chunk;
    const choices = getList(chunk["choices"]);
    if (isObject(chunk["usage"])) this.#hasUsage = true;
    if (choices.length === 0 && chunk["usage"] === undefined) return;
    this.#to.begin(typeof id === "string" ? id : "", typeof model === "string" ? model : "");
    // Nobody has asked for a second choice.
    for (const choice of choices) if ((getField(choice, "index") ?? 0) === 0) this.#readChoice(choice);
  }

  #readChoice(choice: unknown): void {
    const delta = getField(choice, "delta") ?? getField(choice, "message");
    if (isObject(delta)) this.#readDelta(delta);
    this.#readReason(getField(choice, "finish_reason"));
  }

  readWord(word: string): boolean {
    if (word !== "[DONE]") return false;
    this.finish();
    return true;
  }

  finish(): void {
    if (this.#unknown !== null)
      return this.#to.fail(
        blameAnswer(`The upstream ended its answer for an unknown reason: ${this.#unknown}.`),
      );
    if (this.#finish === null) return this.#to.fail(blameAnswer(CUT));
    this.#close();
    this.#to.end(this.#finish);
  }

  survives(): boolean {
    return this.#finish !== null && this.#hasUsage;
  }

  #readReason(reason: unknown): void {
    if (typeof reason !== "string" || reason === "") return;
    const known = REASONS[reason];
    if (known === undefined) this.#unknown = reason.slice(0, 40).replaceAll(/\W/g, "_");
    else this.#finish = known;
  }

  #readDelta(delta: Readonly<Record<string, unknown>>): void {
    const { reasoning_content: thoughts, reasoning, reasoning_details: details } = delta;
    this.#readDetails(details);
    if (isFilled(thoughts)) this.#think("reasoning_content", thoughts);
    else if (isFilled(reasoning)) this.#think("reasoning", reasoning);
    else for (const detail of getList(details)) this.#think("reasoning", readDetail(detail));
    this.#say("text", readContent(delta["content"]));
    this.#say("refusal", delta["refusal"]);
    for (const call of getList(delta["tool_calls"])) this.#readCall(call);
    if (isObject(delta["function_call"])) this.#readCall({ index: 0, function: delta["function_call"] });
  }

  /** They are given back whole, in their order. */
  #readDetails(details: unknown): void {
    const list = getList(details);
    if (list.length > 0) this.#details = [...this.#details, ...list];
  }

  #think(field: string, text: unknown): void {
    if (!isFilled(text)) return;
    this.#seal ??= { field };
    this.#say("reasoning", text);
  }

  #say(kind: "text" | "reasoning" | "refusal", text: unknown): void {
    if (!isFilled(text)) return;
    if (this.#open !== kind) {
      this.#close();
      this.#open = kind;
      this.#to.open(kind, { kind });
    }
    this.#to.delta(kind, text);
  }

  #close(): void {
    if (this.#open === "reasoning") this.#to.close("reasoning", this.#takeSeal());
    else if (this.#open !== null) this.#to.close(this.#open);
    this.#open = null;
  }

  #takeSeal(): Seal | null {
    const seal =
      this.#details.length > 0 ? { field: "reasoning_details", details: this.#details } : this.#seal;
    this.#details = [];
    this.#seal = null;
    return seal;
  }

  #readCall(call: unknown): void {
    const declared = getField(call, "function") ?? getField(call, "custom");
    const name = getField(declared, "name");
    const id = getField(call, "id");
    const named = {
      index: getField(call, "index"),
      id: isFilled(id) ? id : "",
      name: isFilled(name) ? name : "",
    };
    const text = getField(declared, "arguments") ?? getField(declared, "input");
    const piece = isObject(text) ? JSON.stringify(text) : isFilled(text) ? text : "";
    const known = this.#findCall(named) ?? this.#openCall(named);
    if (isSnapshot(known.text, piece)) this.#to.complete(known.key, piece);
    else this.#to.delta(known.key, piece);
    known.text = isSnapshot(known.text, piece) ? piece : known.text + piece;
  }

  #openCall({ index, id, name }: CallName): StreamedCall {
    this.#close();
    const count = this.#calls.length;
    const call: StreamedCall = { index, id, key: `call ${count}`, text: "" };
    this.#calls.push(call);
    // An id that follows from the answer's is the same each time.
    const made = `call_${this.#to.id.replaceAll(/\W/g, "").slice(-40)}_${count}`;
    this.#to.open(call.key, { kind: "call", id: id || made, name });
    return call;
  }

  /** Undefined for a new call. Some servers give each call the same index, and some repeat the id with each piece. */
  #findCall({ index, id, name }: CallName): StreamedCall | undefined {
    if (id !== "") return this.#calls.findLast((call) => call.id === id);
    const last = this.#calls.findLast((call) => index === undefined || call.index === index);
    return name !== "" && last !== undefined && last.id === "" ? undefined : last;
  }
}

interface CallName {
  /** The server's. */
  readonly index: unknown;
  readonly id: string;
  readonly name: string;
}

interface StreamedCall extends Omit<CallName, "name"> {
  readonly key: string;
  text: string;
}

/** Some servers send all of the arguments so far with each piece. A real piece never begins so, but for a member that has
 *  the same beginning as the whole. */
function isSnapshot(known: string, piece: string): boolean {
  return known.length > 1 && /^\{.*[^:[,\s]$/s.test(known) && piece.startsWith(known);
}

function isFilled(text: unknown): text is string {
  return typeof text === "string" && text !== "";
}

/** A text, or a list of parts. */
function readContent(content: unknown): string {
  if (typeof content === "string") return content;
  return getList(content)
    .map((part) => getField(part, "text"))
    .filter(isFilled)
    .join("");
}

function readDetail(detail: unknown): unknown {
  return getField(detail, "text") ?? getField(detail, "summary");
}
