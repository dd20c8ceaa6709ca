// An answer of a chat server → blocks. Servers differ in every field.

import {
  getField,
  getList,
  getText,
  isObject,
  lookUp,
  type Table,
  textIn,
  textOf,
} from "../../lib/json/json.ts";
import { BoundedMap } from "../../lib/memory/bounded-map.ts";
import type { Json } from "../neutral/notes.ts";
import type { Seal } from "../neutral/conversation.ts";
import { blameEnd, isError, readUpstreamError } from "../neutral/error.ts";
import { type Block, type EndReason, MAX_BLOCKS } from "../neutral/sequence.ts";
import { AnswerReader, WHOLE_ANSWER } from "../neutral/read-answer.ts";

/** Any other word is a failure. Mistral, TGI and GLM have words of their own:
 *  https://docs.mistral.ai/api, https://docs.z.ai/api-reference
 *  https://huggingface.co/docs/text-generation-inference */
const REASONS: Table<EndReason> = {
  stop: "done",
  eos: "done",
  eos_token: "done",
  stop_sequence: "stop",
  model_length: "context",
  sensitive: "refusal",
  end_turn: "done",
  tool_calls: "done",
  tool_use: "done",
  function_call: "done",
  length: "cap",
  max_tokens: "cap",
  content_filter: "refusal",
  refusal: "refusal",
};

export class ChatAnswerReader extends AnswerReader {
  #seal: Seal | null = null;
  #details: Json[] = [];
  #lastCall: StreamedCall | undefined = undefined;
  readonly #callsById = new BoundedMap<string, StreamedCall>(MAX_BLOCKS);
  readonly #callsByIndex = new BoundedMap<unknown, StreamedCall>(MAX_BLOCKS);
  #finish: EndReason | null = null;
  #unknown: string | null = null;
  #hasUsage = false;
  /** A complete body, or `[DONE]` after the usage, needs no end reason. */
  #isDeclared = false;
  /** Perplexity adds a message to deltas, with the text so far. */
  #message: Json | null = null;

  read(chunk: unknown, name: string): void {
    if (isError(chunk)) return this.to.fail(readUpstreamError(200, chunk));
    if (!isObject(chunk)) return;
    const choices = getList(chunk["choices"]);
    if (isObject(chunk["usage"])) this.#hasUsage = true;
    if (choices.length === 0 && chunk["usage"] === undefined) return;
    this.to.begin();
    for (const choice of choices)
      if ((getField(choice, "index") ?? 0) === 0) this.#readChoice(choice, name === WHOLE_ANSWER);
    // Some servers send no `[DONE]`.
    if (choices.length === 0 && this.survives()) this.finish();
  }

  #readChoice(choice: unknown, isWhole: boolean): void {
    const [delta, message] = [getField(choice, "delta"), getField(choice, "message")];
    if (isObject(delta)) this.#readDelta(delta, false);
    if (isObject(message)) this.#message = message;
    this.#isDeclared ||= isObject(message) && (isWhole || !isObject(delta));
    const reason = getField(choice, "finish_reason");
    if (typeof reason !== "string" || reason === "") return;
    this.#finish = lookUp(REASONS, reason) ?? null;
    this.#unknown = this.#finish === null ? reason : null;
  }

  override readWord(word: string): boolean {
    if (word !== "[DONE]") return false;
    this.#isDeclared ||= this.#hasUsage;
    this.finish();
    return true;
  }

  override finish(): void {
    if (this.#unknown !== null) return this.to.fail(blameEnd(this.#unknown));
    if (this.#finish === null && !this.#isDeclared) return this.cut();
    if (this.#message !== null && this.to.blocks.length === 0) this.#readDelta(this.#message, true);
    this.closeSpoken();
    this.to.end(this.#finish ?? "done");
  }

  override isFinished(): boolean {
    return this.#finish !== null;
  }

  override survives(): boolean {
    return this.#finish !== null && this.#hasUsage;
  }

  #readDelta(delta: Table<unknown>, isWhole: boolean): void {
    const { content, refusal, reasoning_content: thoughts, reasoning } = delta;
    const details = getList(delta["reasoning_details"]);
    for (const detail of details) {
      if (!isObject(detail)) continue;
      this.to.hold(JSON.stringify(detail).length);
      joinDetail(this.#details, detail);
    }
    if (isFilled(thoughts)) this.#think("reasoning_content", thoughts);
    else if (isFilled(reasoning)) this.#think("reasoning", reasoning);
    else
      for (const detail of details)
        this.#think("reasoning", getField(detail, "text") ?? getField(detail, "summary"));
    for (const part of getList(content)) this.#think(null, readThinking(part));
    this.say("text", readContent(content));
    this.say("refusal", getText(refusal));
    getList(delta["tool_calls"]).forEach((call, at) =>
      this.#readCall(call, getField(call, "index") ?? (isWhole ? at : undefined)),
    );
    if (isObject(delta["function_call"])) this.#readCall({ function: delta["function_call"] }, 0);
  }

  /** `field`: where the client's history keeps the thought. Null: nowhere. */
  #think(field: string | null, text: unknown): void {
    if (!isFilled(text)) return;
    if (field !== null) this.#seal ??= { field };
    this.say("reasoning", text);
  }

  protected override closeSpoken(): void {
    super.closeSpoken(this.spoken?.kind === "reasoning" ? this.#takeSeal() : null);
  }

  #takeSeal(): Seal | null {
    const seal =
      this.#details.length > 0 ? { field: "reasoning_details", details: this.#details } : this.#seal;
    this.#details = [];
    this.#seal = null;
    return seal;
  }

  #readCall(call: unknown, index: unknown): void {
    const declared = getField(call, "function") ?? getField(call, "custom");
    const named = { index, id: textIn(call, "id"), name: textIn(declared, "name") };
    const text = getField(declared, "arguments") ?? getField(declared, "input");
    const piece = isObject(text) ? JSON.stringify(text) : getText(text);
    const known = this.#findCall(named);
    if (known === undefined && named.name === "" && piece === "") return;
    const { block } = known ?? this.#openCall(named);
    if (isSnapshot(block.text, piece)) this.to.complete(block, piece);
    else this.to.delta(block, piece);
  }

  #openCall({ index, id, name }: CallName): StreamedCall {
    this.closeSpoken();
    const call = { id, index, block: this.to.open("call", id, name) };
    this.#lastCall = call;
    this.#callsById.set(id, call);
    this.#callsByIndex.set(index, call);
    return call;
  }

  /** Some servers give all calls one index, or two calls one id. */
  #findCall({ index, id, name }: CallName): StreamedCall | undefined {
    const last = index === undefined ? this.#lastCall : this.#callsByIndex.get(index);
    if (id !== "") {
      const known = last?.id === id ? last : this.#callsById.get(id);
      return index !== undefined && known?.index !== index && name !== "" ? undefined : known;
    }
    return name !== "" && last !== undefined && last.id === "" ? undefined : last;
  }
}

interface StreamedCall {
  readonly id: string;
  readonly index: unknown;
  readonly block: Block;
}

type CallName = Omit<StreamedCall, "block"> & { readonly name: string };

/** Joins a detail's pieces, because the upstream needs the whole detail back. */
function joinDetail(details: Json[], detail: Json): void {
  const last = details.at(-1);
  const isPiece = last !== undefined && last["type"] === detail["type"] && last["index"] === detail["index"];
  const field = ["text", "summary"].find((name) => isFilled(detail[name]) && isFilled(last?.[name]));
  if (last === undefined || !isPiece || field === undefined) details.push({ ...detail });
  else Object.assign(last, detail, { [field]: `${textOf(last[field])}${textOf(detail[field])}` });
}

/** Some servers repeat the arguments so far in each piece. */
function isSnapshot(known: string, piece: string): boolean {
  return known.length > 1 && piece.startsWith(known) && /^\{.*[^:[,\s]$/s.test(known);
}

function isFilled(text: unknown): text is string {
  return typeof text === "string" && text !== "";
}

/** Mistral puts thoughts among the parts of a text:
 *  https://docs.mistral.ai/capabilities/reasoning */
function readThinking(part: unknown): string {
  return getField(part, "type") === "thinking" ? readContent(getField(part, "thinking")) : "";
}

function readContent(content: unknown): string {
  if (typeof content === "string") return content;
  const texts = getList(content).map((part) => textIn(part, "text"));
  return texts.join("");
}
