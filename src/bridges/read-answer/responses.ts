// An answer of a responses upstream → blocks. Its last event repeats the whole answer; what has come before is not sent again.

import { getField, getList, isObject } from "../../lib/json/json.ts";
import type { Json } from "../responses-to-chat/strict-json.ts";
import { blameAnswer, readFailure } from "../turn/failure.ts";
import type { BlockKind, EndReason, Sequence, Source } from "../turn/sequence.ts";
import { type AnswerReader, CUT } from "./reading.ts";

type Event = Readonly<Record<string, unknown>>;
type EventRule = (reader: ResponsesAnswerReader, event: Event) => void;

const RULES: Readonly<Record<string, EventRule>> = {
  "response.created": (reader, event) => reader.begin(event["response"]),
  "response.in_progress": (reader, event) => reader.begin(event["response"]),
  "response.queued": (reader, event) => reader.begin(event["response"]),
  "response.output_item.added": (reader, event) => reader.openItem(event),
  "response.output_item.done": (reader, event) => reader.finishItem(event["item"], keyOf(event)),
  "response.output_text.delta": (reader, event) => reader.addText(event, "text"),
  "response.refusal.delta": (reader, event) => reader.addText(event, "refusal"),
  "response.reasoning_summary_text.delta": (reader, event) => reader.addThought(event),
  "response.reasoning_text.delta": (reader, event) => reader.addThought(event),
  "response.function_call_arguments.delta": (reader, event) => reader.addInput(event),
  "response.custom_tool_call_input.delta": (reader, event) => reader.addInput(event),
  "response.completed": (reader, event) => reader.end(event["response"]),
  "response.incomplete": (reader, event) => reader.end(event["response"]),
  "response.failed": (reader, event) => reader.fail(event),
  "response.cancelled": (reader, event) => reader.fail(event),
  error: (reader, event) => reader.fail(event),
};

export class ResponsesAnswerReader implements AnswerReader {
  readonly #to: Sequence;
  /** Items of which nothing more is to be sent, by position and by call. */
  readonly #done = new Set<string>();
  /** The part of each thought that came last. */
  readonly #parts = new Map<string, unknown>();

  constructor(to: Sequence) {
    this.#to = to;
  }

  read(value: unknown, name: string): void {
    if (!isObject(value)) return;
    const { type } = value;
    const rule = RULES[typeof type === "string" ? type : name];
    if (rule !== undefined) rule(this, value);
    else if (type === undefined && Array.isArray(value["output"])) this.end(value);
    else if (isObject(value["error"])) this.fail(value);
    else if (type === "keepalive") this.#to.idle();
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

  begin(response: unknown): void {
    const [id, model] = [getField(response, "id"), getField(response, "model")];
    this.#to.begin(typeof id === "string" ? id : "", typeof model === "string" ? model : "");
  }

  openItem(event: Event): void {
    const { item } = event;
    const key = keyOf(event);
    const type = getField(item, "type");
    if (isCall(type)) this.#openCall(item, key);
  }

  addText(event: Event, kind: "text" | "refusal"): void {
    const key = `${keyOf(event)} ${kind}`;
    if (typeof event["delta"] !== "string" || event["delta"] === "") return;
    this.#ensure(key, kind);
    this.#to.delta(key, event["delta"]);
  }

  addThought(event: Event): void {
    const key = keyOf(event);
    const { delta } = event;
    if (typeof delta !== "string") return;
    this.#ensure(key, "reasoning");
    const part = event["summary_index"] ?? event["content_index"] ?? 0;
    if (this.#parts.has(key) && this.#parts.get(key) !== part) this.#to.delta(key, "\n\n");
    this.#parts.set(key, part);
    this.#to.delta(key, delta);
  }

  addInput(event: Event): void {
    if (typeof event["delta"] === "string") this.#to.delta(keyOf(event), event["delta"]);
  }

  /** An item is whole: what no delta has brought is sent now. */
  finishItem(item: unknown, key: string): void {
    const type = getField(item, "type");
    const call = getField(item, "call_id");
    if (this.#done.has(key) || (typeof call === "string" && this.#done.has(call))) return;
    this.#done.add(key);
    if (typeof call === "string") this.#done.add(call);
    if (type === "message") this.#finishMessage(item, key);
    else if (type === "reasoning") this.#finishThought(item, key);
    else if (type === "web_search_call") this.#addSearch(item, key);
    else if (isCall(type)) {
      if (!this.#to.has(key)) this.#openCall(item, key);
      const input = getField(item, "arguments") ?? getField(item, "input");
      if (typeof input === "string") this.#to.complete(key, input);
      this.#to.close(key);
    }
  }

  end(response: unknown): void {
    const status = getField(response, "status");
    if (status === "failed" || status === "cancelled" || isObject(getField(response, "error")))
      return this.fail({ response });
    this.begin(response);
    const output = getList(getField(response, "output"));
    const reason = chooseReason(status, getField(getField(response, "incomplete_details"), "reason"));
    if (reason === null)
      return this.#to.fail(blameAnswer(`The upstream's response is ${String(status).slice(0, 20)}.`));
    // Some upstreams give their items other positions here. Only calls have names that stay.
    const isWhole = this.#to.blocks.length === 0;
    for (const [index, item] of output.entries()) {
      const key = `item ${index}`;
      const isOpen = [key, `${key} text`, `${key} refusal`].some((each) => this.#to.has(each));
      if (isWhole || isOpen || isCall(getField(item, "type"))) this.finishItem(item, key);
    }
    this.#to.end(reason);
  }

  fail(event: Event): void {
    this.#to.fail(readFailure(200, event));
  }

  #ensure(key: string, kind: BlockKind): void {
    if (!this.#to.has(key)) this.#to.open(key, { kind });
  }

  #openCall(item: unknown, key: string): void {
    const [id, name] = [getField(item, "call_id"), getField(item, "name")];
    this.#to.open(key, {
      kind: "call",
      id: typeof id === "string" ? id : key,
      name: typeof name === "string" ? name : "",
    });
  }

  #finishMessage(item: unknown, key: string): void {
    const parts = getList(getField(item, "content"));
    for (const kind of ["text", "refusal"] as const) {
      const texts = parts.map((part) => getField(part, kind)).filter((text) => typeof text === "string");
      const own = `${key} ${kind}`;
      const whole = texts.join("");
      if (whole !== "") {
        this.#ensure(own, kind);
        this.#to.complete(own, whole);
      }
      this.#to.close(own);
    }
  }

  #finishThought(item: unknown, key: string): void {
    const { id, encrypted_content } = isObject(item) ? item : ({} as Json);
    const parts = [...getList(getField(item, "summary")), ...getList(getField(item, "content"))];
    const texts = parts.map((part) => getField(part, "text")).filter((text) => typeof text === "string");
    const hasSeal = typeof encrypted_content === "string" && encrypted_content !== "";
    if (texts.length > 0 || hasSeal) this.#ensure(key, "reasoning");
    if (!this.#parts.has(key)) this.#to.complete(key, texts.join("\n\n"));
    this.#to.close(key, hasSeal ? { id, encrypted_content } : null);
  }

  #addSearch(item: unknown, key: string): void {
    const action = getField(item, "action");
    const query = getField(action, "query");
    const id = getField(item, "id");
    this.#to.open(key, { kind: "search", id: typeof id === "string" ? id : key });
    this.#to.delta(key, typeof query === "string" ? query : "");
    this.#to.close(key, null, getList(getField(action, "sources")).flatMap(readSource));
  }
}

function keyOf({ output_index: index, item_id: id, item }: Event): string {
  return `item ${String(index ?? id ?? getField(item, "id"))}`;
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

function readSource(source: unknown): Source[] {
  const url = getField(source, "url");
  const title = getField(source, "title");
  return typeof url === "string" ? [{ url, title: typeof title === "string" ? title : url }] : [];
}
