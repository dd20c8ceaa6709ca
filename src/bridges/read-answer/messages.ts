// An answer of a messages upstream → blocks.
// https://platform.claude.com/docs/en/build-with-claude/streaming

import { getField, getList, isObject } from "../../lib/json/json.ts";
import type { Seal } from "../turn/conversation.ts";
import { blameAnswer, readFailure } from "../turn/failure.ts";
import type { EndReason, Sequence, Source } from "../turn/sequence.ts";
import { type AnswerReader, CUT } from "./reading.ts";

/** An unknown reason is a failure, and so is `pause_turn`: only its own clients can continue it. */
const REASONS: Readonly<Record<string, EndReason>> = {
  end_turn: "done",
  tool_use: "done",
  max_tokens: "cap",
  stop_sequence: "stop",
  refusal: "refusal",
  model_context_window_exceeded: "context",
};

type Block = Readonly<Record<string, unknown>>;

export class MessagesAnswerReader implements AnswerReader {
  readonly #to: Sequence;
  #reason: unknown = null;
  #stop: unknown = null;
  /** The block that is open at the upstream. */
  #type: unknown = null;
  #thinking = "";
  #signature = "";
  /** The input came with the block and not in deltas. */
  #input: unknown = null;
  #search: string | null = null;
  #query = "";

  constructor(to: Sequence) {
    this.#to = to;
  }

  read(event: unknown, name: string): void {
    const type = getField(event, "type") ?? name;
    switch (type) {
      case "message_start":
        return this.#begin(getField(event, "message"));
      case "message":
        this.#begin(event);
        return this.#end();
      case "content_block_start":
        return this.#open(getField(event, "content_block"), getField(event, "index"));
      case "content_block_delta":
        return this.#delta(getField(event, "delta"), keyOf(event));
      case "content_block_stop":
        return this.#close(keyOf(event));
      case "message_delta":
        return this.#note(getField(event, "delta"));
      case "message_stop":
        return this.#end();
      case "ping":
        return this.#to.idle();
      default:
        if (type === "error" || isObject(getField(event, "error"))) this.#to.fail(readFailure(200, event));
    }
  }

  readWord(): boolean {
    return false;
  }

  finish(): void {
    this.#to.fail(blameAnswer(CUT));
  }

  survives(): boolean {
    return false;
  }

  /** Some messages come with their content. */
  #begin(message: unknown): void {
    const [id, model] = [getField(message, "id"), getField(message, "model")];
    this.#to.begin(typeof id === "string" ? id : "", typeof model === "string" ? model : "");
    for (const [index, block] of getList(getField(message, "content")).entries()) {
      this.#open(block, index);
      this.#close(`block ${index}`);
    }
    this.#note(message);
  }

  #note(delta: unknown): void {
    this.#reason = getField(delta, "stop_reason") ?? this.#reason;
    this.#stop = getField(delta, "stop_sequence") ?? this.#stop;
  }

  #end(): void {
    const reason = typeof this.#reason === "string" ? REASONS[this.#reason] : undefined;
    if (reason !== undefined) return this.#to.end(reason, typeof this.#stop === "string" ? this.#stop : null);
    const word = String(this.#reason).slice(0, 40).replaceAll(/\W/g, "_");
    this.#to.fail(blameAnswer(`The upstream ended its answer for an unknown reason: ${word}.`));
  }

  #open(block: unknown, index: unknown): void {
    if (!isObject(block)) return;
    const key = `block ${String(index)}`;
    this.#type = block["type"];
    this.#input = null;
    if (this.#type === "text") this.#openText(block, key);
    else if (this.#type === "thinking") this.#openThought(block, key);
    else if (this.#type === "redacted_thinking") {
      this.#to.open(key, { kind: "reasoning" });
      this.#to.close(key, { type: "redacted_thinking", data: block["data"] });
    } else if (this.#type === "tool_use") {
      this.#to.open(key, { kind: "call", id: String(block["id"]), name: String(block["name"]) });
      this.#input = block["input"];
    } else if (this.#type === "server_tool_use" && block["name"] === "web_search") this.#openSearch(block);
    else if (this.#type === "web_search_tool_result") this.#closeSearch(block);
  }

  #openText(block: Block, key: string): void {
    this.#to.open(key, { kind: "text" });
    if (typeof block["text"] === "string") this.#to.delta(key, block["text"]);
  }

  #openThought(block: Block, key: string): void {
    const { thinking, signature } = block;
    this.#thinking = typeof thinking === "string" ? thinking : "";
    this.#signature = typeof signature === "string" ? signature : "";
    this.#to.open(key, { kind: "reasoning" });
    this.#to.delta(key, this.#thinking);
  }

  #openSearch(block: Block): void {
    this.#search = String(block["id"]);
    this.#query = "";
    this.#input = block["input"];
    this.#to.open(this.#search, { kind: "search", id: this.#search });
  }

  #closeSearch(block: Block): void {
    if (this.#search === null) return;
    this.#to.close(this.#search, null, getList(block["content"]).flatMap(readSource));
    this.#search = null;
  }

  #delta(delta: unknown, key: string): void {
    const { text, thinking, signature, partial_json: input } = isObject(delta) ? delta : ({} as Block);
    if (typeof thinking === "string") {
      this.#thinking += thinking;
      this.#to.delta(key, thinking);
    } else if (typeof signature === "string") this.#signature += signature;
    else if (typeof text === "string") this.#to.delta(key, text);
    else if (typeof input === "string") {
      if (this.#type === "server_tool_use") this.#query += input;
      else this.#to.delta(key, input);
      if (input !== "") this.#input = null;
    }
  }

  #close(key: string): void {
    if (this.#type === "thinking") this.#to.close(key, this.#seal());
    else if (this.#type === "server_tool_use") this.#nameSearch();
    else {
      if (isObject(this.#input)) this.#to.delta(key, JSON.stringify(this.#input));
      this.#to.close(key);
    }
    this.#type = null;
  }

  /** Its upstream wants the block back as it was. */
  #seal(): Seal {
    return { type: "thinking", thinking: this.#thinking, signature: this.#signature };
  }

  #nameSearch(): void {
    if (this.#search === null) return;
    const input: unknown = this.#query === "" ? this.#input : parse(this.#query);
    const query = getField(input, "query");
    if (typeof query === "string") this.#to.delta(this.#search, query);
  }
}

function keyOf(event: unknown): string {
  return `block ${String(getField(event, "index"))}`;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function readSource(result: unknown): Source[] {
  const [url, title] = [getField(result, "url"), getField(result, "title")];
  return typeof url === "string" ? [{ url, title: typeof title === "string" ? title : url }] : [];
}
