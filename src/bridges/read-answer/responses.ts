// An answer of a responses upstream → blocks. Its last event repeats the whole answer; what has come before is not sent again.

import { getField, getList, getText, isObject, lookUp } from "../../lib/json/json.ts";
import { BoundedMap } from "../../lib/memory/bounded-map.ts";
import { blameAnswer, readFailure } from "../turn/failure.ts";
import { type Block, type BlockKind, type EndReason, MAX_BLOCKS, type Sequence } from "../turn/sequence.ts";
import { type AnswerReader, CUT, readSource } from "./reading.ts";

type Event = Readonly<Record<string, unknown>>;
type EventRule = (reader: ResponsesAnswerReader, event: Event) => void;

/** By far the most events: no table is asked. */
const FREQUENT = "response.output_text.delta";

/** Without those that only say that a response begins: it may fail before its first item, which then has a status. */
const RULES: Readonly<Record<string, EventRule>> = {
  "response.output_item.added": (reader, event) => reader.openItem(event),
  "response.output_item.done": (reader, event) => reader.finishItem(event["item"], readKey(event)),
  "response.output_text.delta": (reader, event) => reader.grow("text", event),
  "response.refusal.delta": (reader, event) => reader.grow("refusal", event),
  "response.reasoning_summary_text.delta": (reader, event) => reader.think(event),
  "response.reasoning_text.delta": (reader, event) => reader.think(event),
  "response.function_call_arguments.delta": (reader, event) => reader.grow("call", event),
  "response.custom_tool_call_input.delta": (reader, event) => reader.grow("call", event),
  "response.completed": (reader, event) => reader.end(event["response"]),
  "response.incomplete": (reader, event) => reader.end(event["response"]),
  "response.failed": (reader, event) => reader.fail(event),
  "response.cancelled": (reader, event) => reader.fail(event),
  error: (reader, event) => reader.fail(event),
};

/** The blocks of an item: a message may have a text and a refusal. */
type ItemBlocks = { [Kind in BlockKind]?: Block } & {
  /** Nothing more of it is to be sent. */
  isDone?: true;
  /** The part of a thought that came last. */
  part?: unknown;
};

export class ResponsesAnswerReader implements AnswerReader {
  readonly #to: Sequence;
  /** By position; by id where there is none. */
  readonly #items = new BoundedMap<unknown, ItemBlocks>(MAX_BLOCKS);
  /** Calls of which nothing more is to be sent, by their ids. */
  readonly #called = new BoundedMap<unknown, true>(MAX_BLOCKS);

  constructor(to: Sequence) {
    this.#to = to;
  }

  read(value: unknown, name: string): void {
    if (!isObject(value)) return;
    const { type } = value;
    if (type === FREQUENT) return this.grow("text", value);
    const rule = lookUp(RULES, type ?? name);
    if (rule !== undefined) rule(this, value);
    else if (type === undefined && Array.isArray(value["output"])) this.end(value);
    else if (isObject(value["error"])) this.fail(value);
  }

  skips(name: string): boolean {
    return name !== FREQUENT && name.startsWith("response.") && !Object.hasOwn(RULES, name);
  }

  readWord(word: string): boolean {
    return word === "[DONE]";
  }

  finish(): void {
    this.#to.fail(blameAnswer(CUT));
  }

  survives(): boolean {
    return false;
  }

  openItem(event: Event): void {
    this.#to.begin();
    if (isCall(getField(event["item"], "type"))) this.#openCall(event["item"], this.#find(readKey(event)));
  }

  /** A delta of a call whose item was not announced has no name. */
  grow(kind: "text" | "refusal" | "call", event: Event): void {
    const { delta } = event;
    if (typeof delta !== "string" || delta === "") return;
    const item = this.#find(readKey(event));
    const block = kind === "call" ? item.call : (item[kind] ??= this.#to.open(kind));
    if (block !== undefined) this.#to.delta(block, delta);
  }

  think(event: Event): void {
    const { delta } = event;
    if (typeof delta !== "string") return;
    const item = this.#find(readKey(event));
    const block = (item.reasoning ??= this.#to.open("reasoning"));
    const part = event["summary_index"] ?? event["content_index"] ?? 0;
    if (item.part !== undefined && item.part !== part) this.#to.delta(block, PARAGRAPH);
    item.part = part;
    this.#to.delta(block, delta);
  }

  /** An item is whole: what no delta has brought is sent now. */
  finishItem(item: unknown, key: unknown, isWhole = false): void {
    const blocks = this.#find(key);
    const call = getField(item, "call_id");
    const isRepeated = !isWhole && blocks.call === undefined && this.#called.has(call);
    if (blocks.isDone === true || isRepeated) return;
    blocks.isDone = true;
    if (typeof call === "string") this.#called.set(call, true);
    const type = getField(item, "type");
    if (type === "message") this.#finishMessage(item, blocks);
    else if (type === "reasoning") this.#finishThought(item, blocks);
    else if (type === "web_search_call") this.#addSearch(item);
    else if (isCall(type)) this.#finishCall(item, blocks.call ?? this.#openCall(item, blocks));
  }

  #finishCall(item: unknown, block: Block): void {
    const input = getField(item, "arguments") ?? getField(item, "input");
    if (typeof input === "string") this.#to.complete(block, input);
    this.#to.close(block);
  }

  end(response: unknown): void {
    const status = getField(response, "status");
    if (status === "failed" || status === "cancelled" || isObject(getField(response, "error")))
      return this.fail({ response });
    const reason = chooseReason(status, getField(getField(response, "incomplete_details"), "reason"));
    if (reason === null)
      return this.#to.fail(blameAnswer(`The upstream's response is ${String(status).slice(0, 20)}.`));
    // Some upstreams give their items other positions here. Only calls have names that stay.
    const isWhole = this.#to.blocks.length === 0;
    for (const [index, item] of getList(getField(response, "output")).entries()) {
      const isOpen = this.#items.has(index) && this.#find(index).isDone !== true;
      if (isWhole || isOpen || isCall(getField(item, "type"))) this.finishItem(item, index, isWhole);
    }
    this.#to.end(reason);
  }

  fail(event: Event): void {
    this.#to.fail(readFailure(200, event));
  }

  #find(key: unknown): ItemBlocks {
    const known = this.#items.get(key);
    if (known !== undefined) return known;
    const item: ItemBlocks = {};
    this.#items.set(key, item);
    return item;
  }

  #openCall(item: unknown, blocks: ItemBlocks): Block {
    const [id, name] = [getText(getField(item, "call_id")), getText(getField(item, "name"))];
    return (blocks.call = this.#to.open("call", id, name));
  }

  #finishMessage(item: unknown, blocks: ItemBlocks): void {
    const parts = getList(getField(item, "content"));
    for (const kind of ["text", "refusal"] as const) {
      const whole = readTexts(parts, kind).join("");
      if (whole === "" && blocks[kind] === undefined) continue;
      const block = (blocks[kind] ??= this.#to.open(kind));
      this.#to.complete(block, whole);
      this.#to.close(block);
    }
  }

  #finishThought(item: unknown, blocks: ItemBlocks): void {
    const [id, blob] = [getField(item, "id"), getField(item, "encrypted_content")];
    const texts = readTexts([...getList(getField(item, "summary")), ...getList(getField(item, "content"))]);
    const seal = typeof blob === "string" && blob !== "" ? { id, encrypted_content: blob } : null;
    if (texts.length === 0 && seal === null && blocks.reasoning === undefined) return;
    const block = (blocks.reasoning ??= this.#to.open("reasoning"));
    if (blocks.part === undefined) this.#to.complete(block, texts.join(PARAGRAPH));
    this.#to.close(block, seal);
  }

  #addSearch(item: unknown): void {
    const [id, action] = [getField(item, "id"), getField(item, "action")];
    const search = this.#to.open("search", getText(id));
    this.#to.delta(search, getText(getField(action, "query")));
    this.#to.close(search, null, getList(getField(action, "sources")).flatMap(readSource));
  }
}

const PARAGRAPH = "\n\n";

function readKey({ output_index: index, item_id: id, item }: Event): unknown {
  return index ?? id ?? getField(item, "id");
}

function readTexts(parts: readonly unknown[], field = "text"): string[] {
  return parts.map((part) => getField(part, field)).filter((text) => typeof text === "string");
}

function isCall(type: unknown): boolean {
  return type === "function_call" || type === "custom_tool_call";
}

/** Null: it has not ended, or for a reason that is not known. */
function chooseReason(status: unknown, why: unknown): EndReason | null {
  if (status === "completed" || status === undefined) return "done";
  if (status !== "incomplete") return null;
  if (why === "content_filter") return "refusal";
  return why === "max_output_tokens" ? "cap" : null;
}
