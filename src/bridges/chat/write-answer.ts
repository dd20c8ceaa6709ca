// Blocks → an answer for a chat client.
// Signed thoughts are in OpenRouter's `reasoning_details`.

import type { Usage } from "../../billing/usage.ts";
import { getField, isObject, listIn } from "../../lib/json/json.ts";
import type { Json } from "../neutral/notes.ts";
import type { AnswerAbout, AnswerEnd, Block, EndReason } from "../neutral/sequence.ts";
import {
  type AnswerContext,
  AnswerWriter,
  isFreeText,
  readCall,
  sumUsage,
  type WholeAnswer,
} from "../neutral/write-answer.ts";
import { ifAny } from "../neutral/write-request.ts";

export const FINISH_REASONS: Readonly<Record<EndReason, string>> = {
  done: "stop",
  calls: "tool_calls",
  cap: "length",
  stop: "stop",
  declined: "stop",
  refusal: "content_filter",
  context: "length",
};

function chooseFinish(reason: EndReason, { wishes }: AnswerContext): string {
  if (reason !== "calls") return FINISH_REASONS[reason];
  return wishes.forced === true ? "stop" : wishes.legacy === true ? "function_call" : FINISH_REASONS.calls;
}

const SEPARATOR = "\n\n";

/** Selects the blocks to write. A JSON answer has only its first text,
 *  and an old client gets only the first call. */
class Selection {
  readonly #context: AnswerContext;
  #hasAnswer = false;
  #hasCall = false;

  constructor(context: AnswerContext) {
    this.#context = context;
  }

  /** Called once for each block, in order. */
  readonly has = ({ kind, isAside }: Block): boolean => {
    const { isJson, wishes } = this.#context;
    const isFirst = kind === "call" ? !this.#hasCall : !this.#hasAnswer;
    if (kind === "call") this.#hasCall = true;
    if (kind === "text" && !isAside) this.#hasAnswer = true;
    if (kind === "call") return isFirst || wishes.legacy !== true;
    return kind !== "search" && (kind !== "text" || !isJson || (isFirst && !isAside));
  };
}

export class ChatAnswerWriter extends AnswerWriter {
  #about: AnswerAbout = {};
  #head: Json = {};
  #calls = 0;
  readonly #selection = new Selection(this.context);
  #isSeen = false;
  #needsGap = false;
  #logprobs = 0;
  readonly #spoken = new Set<Block["kind"]>();
  readonly #texts: Block[] = [];

  begin(about: AnswerAbout): void {
    this.#about = about;
    this.#head = formHead("chat.completion.chunk", about, this.context);
  }

  idle(): void {
    this.put(": keepalive\n\n");
  }

  protected start(block: Block): void {
    const { kind, id, name } = block;
    this.#isSeen = this.#selection.has(block);
    if (!this.#isSeen) return;
    this.#logprobs = 0;
    this.#needsGap = this.#spoken.has(kind);
    if (kind !== "call") return;
    const { legacy = false } = this.context.wishes;
    const called = formCall(!legacy && isFreeText(block, this.tool), this.tool?.name ?? name, "");
    this.#say(
      kind,
      legacy
        ? { function_call: called["function"] }
        : { tool_calls: [{ index: this.#calls, id, ...called }] },
    );
    this.#calls += 1;
  }

  protected grow(block: Block, piece: string): void {
    const { kind } = block;
    if (!this.#isSeen || kind === "search") return;
    if (kind === "call") return this.#chunk(this.#formPiece(block, piece));
    const logprobs = kind === "text" ? block.logprobs.slice(this.#logprobs) : [];
    this.#logprobs += logprobs.length;
    const gap = this.#needsGap ? SEPARATOR : "";
    this.#needsGap = false;
    this.#say(kind, { [FIELDS[kind]]: gap + piece }, kind === "text" ? logprobs : null);
  }

  #formPiece(block: Block, piece: string): Json {
    if (this.context.wishes.legacy === true) return { function_call: { arguments: piece } };
    const isCustom = isFreeText(block, this.tool);
    const called = isCustom ? { custom: { input: piece } } : { function: { arguments: piece } };
    return { tool_calls: [{ index: this.#calls - 1, ...called }] };
  }

  close(block: Block): void {
    const { kind, seal } = block;
    const rest = kind === "call" ? this.readRest(block) : null;
    if (rest !== null) this.grow(block, rest);
    if (kind === "text" && this.#isSeen) this.#texts.push(block);
    if (kind === "reasoning" && seal !== null)
      this.#say(kind, { reasoning_details: [formDetail(block, this.context)] });
  }

  end({ reason }: AnswerEnd, about: AnswerAbout): void {
    const { wishes, count } = this.context;
    if (!ANSWERS.some((kind) => this.#spoken.has(kind))) this.#say("text", { content: "" }, []);
    const annotations = listCitations(this.#texts);
    if (annotations.length > 0) this.#chunk({ annotations });
    const last = {
      ...about,
      id: this.#about.id,
      model: this.#about.model,
      created: this.#about.created,
    };
    this.#head = formHead("chat.completion.chunk", last, this.context);
    this.#chunk({}, null, chooseFinish(reason, this.context), formExtras(about));
    if (wishes.usage === true) this.#event([], { usage: writeUsage(count()) });
    this.put("data: [DONE]\n\n");
  }

  #say(kind: Block["kind"], delta: Json, logprobs: readonly unknown[] | null = null): void {
    if (this.#spoken.size === 0) {
      const content = kind === "text" ? "" : null;
      const refusal = kind === "refusal" ? "" : null;
      this.#chunk({ role: "assistant", content, refusal }, []);
    }
    this.#spoken.add(kind);
    this.#chunk(delta, logprobs);
  }

  #chunk(delta: Json, said: readonly unknown[] | null = null, reason: string | null = null, more: Json = {}) {
    const { wishes } = this.context;
    const logged = wishes.logprobs === true ? { logprobs: said && formLogprobs(said) } : {};
    const usage = wishes.usage === true ? { usage: null } : {};
    this.#event([{ index: 0, delta, ...logged, finish_reason: reason }], { ...more, ...usage });
  }

  #event(choices: readonly Json[], more: Json): void {
    this.put("data: ", { ...this.#head, choices, ...more }, "\n\n");
  }
}

const ANSWERS = ["text", "refusal", "call"] as const;

const FIELDS = { text: "content", refusal: "refusal", reasoning: "reasoning_content" } as const;

export function writeWholeChat({ blocks: all, end, about }: WholeAnswer, context: AnswerContext): string {
  const blocks = all.filter(new Selection(context).has);
  const texts = blocks.filter(({ kind }) => kind === "text");
  const calls = blocks.filter(({ kind }) => kind === "call");
  const sealed = blocks.filter(({ kind, seal }) => kind === "reasoning" && seal !== null);
  const thoughts = joinBlocks(blocks, "reasoning");
  const text = joinBlocks(blocks, "text");
  const refusal = joinBlocks(blocks, "refusal");
  const message = {
    role: "assistant",
    content: text === "" && (calls.length > 0 || refusal !== "") ? null : text,
    reasoning_content: thoughts || undefined,
    reasoning_details: ifAny(sealed.map((block) => formDetail(block, context))),
    ...formCalls(calls, context),
    refusal: refusal === "" ? null : refusal,
    annotations: listCitations(texts),
  };
  const isLogged = context.wishes.logprobs === true;
  const logprobs = isLogged ? formLogprobs(texts.flatMap((block) => block.logprobs)) : null;
  return JSON.stringify({
    ...formHead("chat.completion", about, context),
    choices: [{ index: 0, message, logprobs, finish_reason: chooseFinish(end.reason, context) }],
    usage: writeUsage(context.count()),
    ...formExtras(about),
  });
}

function joinBlocks(blocks: readonly Block[], kind: Block["kind"]): string {
  return blocks
    .filter((block) => block.kind === kind && block.text !== "")
    .map(({ text }) => text)
    .join(SEPARATOR);
}

/** The id contains the upstream's, so
 *  that tools find it in the provider's records. */
function formHead(object: string, { id, created, model, tier }: AnswerAbout, context: AnswerContext): Json {
  return {
    id: `chatcmpl-${(id ?? context.stamp.id).replace(/^(?:resp|req)_/, "")}`,
    object,
    created: Math.floor(created ?? context.stamp.time / 1000),
    model: model ?? context.model,
    service_tier: tier,
    system_fingerprint: null,
  };
}

/** In chat, a verdict has a list of results, and the plural in its type. */
function formExtras({ metadata, moderation }: AnswerAbout): Json {
  const formVerdict = (verdict: unknown): unknown =>
    getField(verdict, "type") === "moderation_result"
      ? { type: "moderation_results", model: getField(verdict, "model"), results: [verdict] }
      : verdict;
  return {
    metadata: Object.keys(metadata ?? {}).length === 0 ? undefined : metadata,
    moderation: moderation && {
      input: formVerdict(moderation["input"]),
      output: formVerdict(moderation["output"]),
    },
  };
}

function formCall(custom: boolean, name: string, input: string): Json {
  return custom
    ? { type: "custom", custom: { name, input } }
    : { type: "function", function: { name, arguments: input } };
}

function formCalls(calls: readonly Block[], context: AnswerContext): Json {
  const { legacy = false } = context.wishes;
  const formed = calls.map((block) => {
    const { tool, name, input } = readCall(block, context);
    return { id: block.id, ...formCall(!legacy && isFreeText(block, tool), name, input) };
  });
  if (formed.length === 0) return {};
  return legacy ? { function_call: getField(formed[0], "function") } : { tool_calls: formed };
}

function formDetail({ seal, index }: Block, context: AnswerContext): Json {
  return { type: "reasoning.encrypted", id: null, index, data: context.closeSeal(seal ?? {}) };
}

/** In chat, citations count code points from the start of the first text. */
function listCitations(texts: readonly Block[]): Json[] {
  const citations: Json[] = [];
  // Counting takes as long as all other work on a text.
  if (texts.every(({ citations: cited }) => cited.length === 0)) return citations;
  let offset = 0;
  for (const { text, citations: cited } of texts.filter((block) => block.text !== "")) {
    for (const { start, end, title, url } of cited) {
      const range = { start_index: start + offset, end_index: end + offset };
      citations.push({ type: "url_citation", url_citation: { ...range, title, url } });
    }
    offset += Array.from(text).length + SEPARATOR.length;
  }
  return citations;
}

function formLogprobs(logprobs: readonly unknown[]): Json {
  const form = (value: unknown): Json => {
    const { token = "", logprob = 0, bytes = null } = isObject(value) ? value : {};
    return { token, logprob, bytes };
  };
  const content = logprobs.map((value) => ({
    ...form(value),
    top_logprobs: listIn(value, "top_logprobs").map(form),
  }));
  return { content, refusal: null };
}

function writeUsage(usage: Usage): Json {
  const { prompt, read, written, output, reasoning } = sumUsage(usage);
  return {
    prompt_tokens: prompt,
    completion_tokens: output,
    total_tokens: prompt + output,
    prompt_tokens_details: {
      cached_tokens: read,
      audio_tokens: 0,
      cache_write_tokens: written || undefined,
    },
    completion_tokens_details: {
      reasoning_tokens: reasoning,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}
