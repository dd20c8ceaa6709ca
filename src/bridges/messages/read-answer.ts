// An answer of a messages upstream → blocks.

import {
  getField,
  getList,
  getText,
  isObject,
  listIn,
  lookUp,
  parseJson,
  type Table,
} from "../../lib/json/json.ts";
import { BoundedMap } from "../../lib/memory/bounded-map.ts";
import { blameEnd, isError, readUpstreamError } from "../neutral/error.ts";
import { type Block, type EndReason, MAX_BLOCKS } from "../neutral/sequence.ts";
import { AnswerReader, readSource } from "../neutral/read-answer.ts";

/** Any other reason, also `pause_turn`, is a failure. */
const REASONS: Table<EndReason> = {
  end_turn: "done",
  tool_use: "done",
  max_tokens: "cap",
  stop_sequence: "stop",
  refusal: "refusal",
  model_context_window_exceeded: "context",
};

type Members = Table<unknown>;

interface OpenBlock {
  readonly type: unknown;
  /** The neutral block. Null for searches and unknown types. */
  readonly block: Block | null;
  readonly start: Members;
  /** The text of the deltas, for blocks that are read at their end. */
  text: string;
  signature: string;
}

export class MessagesAnswerReader extends AnswerReader {
  readonly #open = new BoundedMap<unknown, OpenBlock>(MAX_BLOCKS);
  #reason: unknown = null;
  #stop: unknown = null;
  #search: Block | null = null;

  read(event: unknown, name: string): void {
    const type = getField(event, "type") ?? name;
    switch (type) {
      case "message_start":
        return this.#begin(getField(event, "message"));
      case "message":
        this.#begin(event);
        return this.#end();
      case "content_block_start":
        return this.#openBlock(getField(event, "content_block"), getField(event, "index"));
      case "content_block_delta":
        return this.#addDelta(getField(event, "delta"), getField(event, "index"));
      case "content_block_stop":
        return this.#closeBlock(getField(event, "index"));
      case "message_delta":
        return this.#note(getField(event, "delta"));
      case "message_stop":
        return this.#end();
      default:
        if (type === "error" || isError(event)) this.to.fail(readUpstreamError(200, event));
    }
  }

  #begin(message: unknown): void {
    this.to.begin();
    for (const [index, block] of listIn(message, "content").entries()) {
      this.#openBlock(block, index);
      this.#closeBlock(index);
    }
    this.#note(message);
  }

  #note(delta: unknown): void {
    this.#reason = getField(delta, "stop_reason") ?? this.#reason;
    this.#stop = getField(delta, "stop_sequence") ?? this.#stop;
  }

  #end(): void {
    const reason = lookUp(REASONS, this.#reason);
    if (reason === undefined) this.to.fail(blameEnd(this.#reason));
    else this.to.end(reason, typeof this.#stop === "string" ? this.#stop : null);
  }

  #openBlock(start: unknown, index: unknown): void {
    if (!isObject(start)) return;
    const { type, id, name, thinking, signature, text } = start;
    const block = this.#place(type, getText(id), getText(name));
    const open: OpenBlock = { type, block, start, text: "", signature: "" };
    this.to.hold(JSON.stringify(start).length);
    this.#open.set(index, open);
    if (type === "web_search_tool_result") this.#closeSearch(start);
    this.#grow(open, { text, thinking, signature });
  }

  #place(type: unknown, id: string, name: string): Block | null {
    if (type === "text") return this.to.open("text");
    if (type === "thinking" || type === "redacted_thinking") return this.to.open("reasoning");
    if (type === "tool_use") return this.to.open("call", id, name);
    if (type === "server_tool_use" && name === "web_search") this.#search = this.to.open("search", id);
    return null;
  }

  #addDelta(delta: unknown, index: unknown): void {
    const open = this.#open.get(index);
    if (open !== undefined && isObject(delta)) this.#grow(open, delta);
  }

  #grow(open: OpenBlock, { text, thinking, signature, partial_json: input }: Members): void {
    if (typeof signature === "string") {
      this.to.hold(signature.length);
      open.signature += signature;
    }
    const piece = text ?? thinking ?? input;
    if (typeof piece !== "string") return;
    if (open.block !== null) return this.to.delta(open.block, piece);
    this.to.hold(piece.length);
    open.text += piece;
  }

  #closeBlock(index: unknown): void {
    const open = this.#open.get(index);
    if (open === undefined) return;
    this.#open.delete(index);
    const { type, block, start, signature } = open;
    if (type === "server_tool_use" && this.#search !== null) this.#nameSearch(this.#search, open);
    if (block === null) return;
    if (type === "tool_use" && block.text === "" && isObject(start["input"]))
      this.to.delta(block, JSON.stringify(start["input"]));
    // The upstream needs the block back unchanged.
    if (type === "thinking") this.to.close(block, { type, thinking: block.text, signature });
    else this.to.close(block, type === "redacted_thinking" ? { type, data: start["data"] } : null);
  }

  #nameSearch(search: Block, { text, start }: OpenBlock): void {
    const query = getField(text === "" ? start["input"] : parseJson(text), "query");
    if (typeof query === "string") this.to.delta(search, query);
  }

  #closeSearch(result: Members): void {
    if (this.#search !== null)
      this.to.close(this.#search, null, getList(result["content"]).flatMap(readSource));
    this.#search = null;
  }
}
