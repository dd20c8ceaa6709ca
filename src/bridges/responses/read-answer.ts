// An answer of a responses upstream → blocks. Its last event repeats all of it.

import {
  getField,
  getText,
  isObject,
  listIn,
  lookUp,
  type Table,
  textIn,
  textOf,
} from "../../lib/json/json.ts";
import { BoundedMap } from "../../lib/memory/bounded-map.ts";
import { blameAnswer, readUpstreamError } from "../neutral/error.ts";
import {
  type Block,
  type BlockKind,
  type Citation,
  type EndReason,
  MAX_BLOCKS,
} from "../neutral/sequence.ts";
import { AnswerReader, readSource } from "../neutral/read-answer.ts";

type Event = Table<unknown>;
type EventRule = (reader: ResponsesAnswerReader, event: Event) => void;

/** `response.created` does not begin the answer:
 *  an error after it still sets the status. */
const RULES: Table<EventRule> = {
  "response.created": (reader, event) => reader.note(event["response"]),
  "response.output_item.added": (reader, event) => reader.openItem(event),
  "response.output_item.done": (reader, event) => reader.finishItem(event["item"], event),
  "response.output_text.delta": (reader, event) => reader.grow("text", event),
  "response.refusal.delta": (reader, event) => reader.grow("refusal", event),
  "response.reasoning_summary_text.delta": (reader, event) => reader.think(event),
  "response.reasoning_text.delta": (reader, event) => reader.think(event),
  "response.function_call_arguments.delta": (reader, event) => reader.grow("call", event),
  "response.function_call_arguments.done": (reader, event) => reader.complete(event, event["arguments"]),
  "response.custom_tool_call_input.delta": (reader, event) => reader.grow("call", event),
  "response.custom_tool_call_input.done": (reader, event) => reader.complete(event, event["input"]),
  "response.completed": (reader, event) => reader.end(event["response"]),
  "response.incomplete": (reader, event) => reader.end(event["response"], "incomplete"),
  "response.failed": (reader, event) => reader.fail(event),
  "response.cancelled": (reader, event) => reader.fail(event),
  error: (reader, event) => reader.fail(event),
};

/** A message may have a text and a refusal. */
type ItemBlocks = { [Kind in BlockKind]?: Block } & {
  isDone?: true;
  /** The message is not part of the answer. */
  isAside?: boolean;
  part?: unknown;
};

export class ResponsesAnswerReader extends AnswerReader {
  /** Items are found by id, position or both:
   *  some upstreams give each event another id, or all items one position. */
  readonly #byBoth = new BoundedMap<string, ItemBlocks>(MAX_BLOCKS);
  readonly #byId = new BoundedMap<string, ItemBlocks>(MAX_BLOCKS);
  readonly #byIndex = new BoundedMap<unknown, ItemBlocks>(MAX_BLOCKS);
  /** Blocks by call ids, which never change. */
  readonly #byCall = new BoundedMap<string, ItemBlocks>(MAX_BLOCKS);

  read(value: unknown, name: string): void {
    if (!isObject(value)) return;
    const { type } = value;
    const rule = lookUp(RULES, type) ?? lookUp(RULES, name);
    if (rule !== undefined) rule(this, value);
    else if (type === undefined && Array.isArray(value["output"])) this.end(value);
    else if (isObject(value["error"])) this.fail(value);
  }

  note(response: unknown): void {
    if (!isObject(response)) return;
    const { id, created_at: created, model, service_tier: tier, metadata, moderation } = response;
    const { about } = this.to;
    this.to.about = {
      id: about.id ?? (getText(id) || undefined),
      created: about.created ?? (typeof created === "number" && created > 0 ? created : undefined),
      model: about.model ?? (getText(model) || undefined),
      tier: tier ?? null,
      ...(isObject(metadata) && { metadata }),
      ...(isObject(moderation) && { moderation }),
    };
  }

  openItem(event: Event): void {
    this.to.begin();
    const { item } = event;
    const blocks = this.#keep({ isAside: getField(item, "phase") === "commentary" }, event);
    if (isCall(getField(item, "type"))) this.#openCall(item, blocks);
  }

  /** A call grows only if it was announced: otherwise it has no name. */
  grow(kind: "text" | "refusal" | "call", event: Event): void {
    const { delta, logprobs } = event;
    if (typeof delta !== "string" || delta === "") return;
    const item = this.#find(event);
    const block = kind === "call" ? item.call : (item[kind] ??= this.#open(kind, item));
    if (block === undefined) return;
    if (Array.isArray(logprobs) && logprobs.length > 0) this.#addLogprobs(block, logprobs);
    this.to.delta(block, delta);
  }

  /** Ends a call's input, which some upstreams send only here. */
  complete(event: Event, input: unknown): void {
    const { call } = this.#find(event);
    if (call !== undefined && typeof input === "string") this.to.complete(call, input);
  }

  think(event: Event): void {
    const { delta } = event;
    if (typeof delta !== "string" || delta === "") return;
    const item = this.#find(event);
    const block = (item.reasoning ??= this.to.open("reasoning"));
    const { summary_index: summary, content_index: content = 0 } = event;
    const part = summary === undefined ? `content ${textOf(content)}` : summary;
    if (item.part !== undefined && item.part !== part) this.to.delta(block, PARAGRAPH);
    item.part = part;
    this.to.delta(block, delta);
  }

  finishItem(item: unknown, event: Event, isWhole = false): void {
    const blocks = this.#findWhole(item, { ...event, item }, isWhole);
    if (blocks.isDone === true) return;
    blocks.isDone = true;
    blocks.isAside ??= getField(item, "phase") === "commentary";
    const type = getField(item, "type");
    if (type === "message") this.#finishMessage(item, blocks);
    else if (type === "reasoning") this.#finishThought(item, blocks);
    else if (type === "web_search_call") this.#addSearch(item);
    else if (isCall(type)) this.#finishCall(item, blocks.call ?? this.#openCall(item, blocks));
  }

  /** A call's id is tried last: some upstreams use it twice. */
  #findWhole(item: unknown, at: Event, isWhole: boolean): ItemBlocks {
    if (isWhole) return this.#keep({}, at);
    const place = this.#find(at);
    if (!isCall(getField(item, "type")) || place.call !== undefined) return place;
    return this.#byCall.get(textIn(item, "call_id")) ?? place;
  }

  #finishCall(item: unknown, block: Block): void {
    const input = getField(item, "arguments") ?? getField(item, "input");
    if (typeof input === "string") this.to.complete(block, input);
    this.to.close(block);
  }

  end(response: unknown, own?: "incomplete"): void {
    const status = own ?? getField(response, "status");
    if (status === "failed" || status === "cancelled" || isObject(getField(response, "error")))
      return this.fail({ response });
    const reason = chooseReason(status, getField(getField(response, "incomplete_details"), "reason"));
    if (reason === null)
      return this.to.fail(blameAnswer(`The upstream's response is ${textOf(status).slice(0, 20)}.`));
    this.note(response);
    this.#finishItems(listIn(response, "output"));
    this.to.end(reason);
  }

  /** Some upstreams change ids and positions in the last event. */
  #finishItems(items: readonly unknown[]): void {
    const sent = new Set(this.to.blocks.map(({ kind }) => kind));
    for (const [output_index, item] of items.entries()) {
      const type = getField(item, "type");
      const known = this.#byId.get(textIn(item, "id")) ?? this.#byIndex.get(output_index);
      const isOpen = known !== undefined && known.isDone !== true;
      const isMissing = type === "message" ? !sent.has("text") && !sent.has("refusal") : sent.size === 0;
      if (isOpen || isMissing || isCall(type)) this.finishItem(item, { output_index }, sent.size === 0);
    }
  }

  fail(event: Event): void {
    this.to.fail(readUpstreamError(200, event));
  }

  #find(event: Event): ItemBlocks {
    const { output_index: index, item_id, item } = event;
    const id = getText(item_id ?? getField(item, "id"));
    const known =
      this.#byBoth.get(`${textOf(index)} ${id}`) ?? this.#byId.get(id) ?? this.#byIndex.get(index);
    return known ?? this.#keep({}, event);
  }

  #keep(blocks: ItemBlocks, { output_index: index, item_id: id, item }: Event): ItemBlocks {
    const own = getText(id ?? getField(item, "id"));
    if (own !== "" && own.length <= MAX_ID_LENGTH) {
      this.#byId.set(own, blocks);
      this.#byBoth.set(`${textOf(index)} ${own}`, blocks);
    }
    if (index !== undefined) this.#byIndex.set(index, blocks);
    return blocks;
  }

  #open(kind: "text" | "refusal", { isAside = false }: ItemBlocks): Block {
    return this.to.open(kind, "", "", { isAside });
  }

  #openCall(item: unknown, blocks: ItemBlocks): Block {
    const [id, name] = [textIn(item, "call_id"), textIn(item, "name")];
    if (id !== "" && id.length <= MAX_ID_LENGTH) this.#byCall.set(id, blocks);
    const isFree = getField(item, "type") === "custom_tool_call";
    return (blocks.call = this.to.open("call", id, name, { isFree }));
  }

  #addLogprobs(block: Block, logprobs: readonly unknown[]): void {
    this.to.hold(logprobs.length * LOGPROB_LENGTH);
    block.logprobs.push(...logprobs);
  }

  #finishMessage(item: unknown, blocks: ItemBlocks): void {
    const parts = listIn(item, "content");
    for (const kind of ["text", "refusal"] as const) {
      const whole = readTexts(parts, kind).join("");
      if (whole === "" && blocks[kind] === undefined) continue;
      const block = (blocks[kind] ??= this.#open(kind, blocks));
      if (kind === "text") {
        block.citations = readCitations(parts);
        if (block.logprobs.length === 0)
          this.#addLogprobs(
            block,
            parts.flatMap((part) => listIn(part, "logprobs")),
          );
      }
      this.to.complete(block, whole);
      this.to.close(block);
    }
  }

  #finishThought(item: unknown, blocks: ItemBlocks): void {
    const [id, blob] = [getField(item, "id"), getField(item, "encrypted_content")];
    const parts = [...listIn(item, "summary"), ...listIn(item, "content")];
    const texts = readTexts(parts).filter((text) => text !== "");
    const seal = typeof blob === "string" && blob !== "" ? { id, encrypted_content: blob } : null;
    if (texts.length === 0 && seal === null && blocks.reasoning === undefined) return;
    const block = (blocks.reasoning ??= this.to.open("reasoning"));
    if (blocks.part === undefined) this.to.complete(block, texts.join(PARAGRAPH));
    this.to.close(block, seal);
  }

  #addSearch(item: unknown): void {
    const [id, action] = [getField(item, "id"), getField(item, "action")];
    const search = this.to.open("search", getText(id));
    this.to.delta(search, textIn(action, "query"));
    this.to.close(search, null, listIn(action, "sources").flatMap(readSource));
  }
}

const PARAGRAPH = "\n\n";

/** Real ids are shorter. */
const MAX_ID_LENGTH = 1024;
/** About this much of each logprob is kept. */
const LOGPROB_LENGTH = 64;

/** Reads only citations of pages: files have no address. */
function readCitations(parts: readonly unknown[]): Citation[] {
  const citations: Citation[] = [];
  // Counting characters takes as long as all other work on a text.
  if (parts.every((part) => listIn(part, "annotations").length === 0)) return citations;
  let offset = 0;
  for (const part of parts) {
    for (const cited of listIn(part, "annotations")) {
      const [start, end] = [getField(cited, "start_index"), getField(cited, "end_index")];
      if (getField(cited, "type") !== "url_citation" || typeof start !== "number" || typeof end !== "number")
        continue;
      const [title, url] = [textIn(cited, "title"), textIn(cited, "url")];
      citations.push({ start: start + offset, end: end + offset, title, url });
    }
    offset += Array.from(textIn(part, "text")).length;
  }
  return citations;
}

function readTexts(parts: readonly unknown[], field = "text"): string[] {
  return parts.map((part) => getField(part, field)).filter((text) => typeof text === "string");
}

function isCall(type: unknown): boolean {
  return type === "function_call" || type === "custom_tool_call";
}

/** Returns null if the response has not ended. */
function chooseReason(status: unknown, why: unknown): EndReason | null {
  if (status === "completed" || status === "complete" || status === undefined) return "done";
  if (status !== "incomplete") return null;
  return why === "content_filter" ? "refusal" : "cap";
}
