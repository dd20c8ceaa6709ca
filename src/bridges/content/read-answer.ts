// An answer of a content upstream → blocks. The answer ends with the stream.

import { getField, getList, getText, isObject, listIn, lookUp, type Table } from "../../lib/json/json.ts";
import { blameAnswer, blameEnd, isError, readUpstreamError } from "../neutral/error.ts";
import { type EndReason, MAX_BLOCKS, type WebSource } from "../neutral/sequence.ts";
import { AnswerReader, readSource } from "../neutral/read-answer.ts";

/** Any other reason is a failure, such as a malformed call. */
const REASONS: Table<EndReason> = {
  STOP: "done",
  MAX_TOKENS: "cap",
  SAFETY: "refusal",
  RECITATION: "refusal",
  LANGUAGE: "refusal",
  BLOCKLIST: "refusal",
  PROHIBITED_CONTENT: "refusal",
  SPII: "refusal",
};

export class ContentAnswerReader extends AnswerReader {
  #reason: string | null = null;
  #isBlocked = false;
  #hasUsage = false;
  readonly #queries = new Set<string>();
  #sources: readonly WebSource[] = [];

  read(value: unknown): void {
    const chunks: readonly unknown[] = Array.isArray(value) ? value : [value];
    for (const chunk of chunks) this.#read(chunk);
  }

  #read(chunk: unknown): void {
    if (isError(chunk)) return this.to.fail(readUpstreamError(200, chunk));
    if (!isObject(chunk)) return;
    this.to.begin();
    if (isObject(chunk["usageMetadata"])) this.#hasUsage = true;
    if (typeof getField(chunk["promptFeedback"], "blockReason") === "string") this.#isBlocked = true;
    const [candidate] = getList(chunk["candidates"]);
    for (const part of listIn(getField(candidate, "content"), "parts")) this.#readPart(part);
    this.#noteSearches(getField(candidate, "groundingMetadata"));
    const reason = getField(candidate, "finishReason");
    if (typeof reason === "string" && reason !== "FINISH_REASON_UNSPECIFIED") this.#reason = reason;
  }

  /** Some events repeat earlier searches. */
  #noteSearches(grounding: unknown): void {
    for (const query of listIn(grounding, "webSearchQueries"))
      if (typeof query === "string" && this.#queries.size < MAX_BLOCKS) this.#queries.add(query);
    const chunks = listIn(grounding, "groundingChunks");
    if (chunks.length > 0)
      this.#sources = chunks.flatMap((chunk) => {
        const web = getField(chunk, "web");
        return readSource({ url: getField(web, "uri"), title: getField(web, "title") });
      });
  }

  /** The last query gets all sources: nobody says which one found what. */
  #addSearches(): void {
    const queries = [...this.#queries];
    if (queries.length > 0) this.closeSpoken();
    for (const [at, query] of queries.entries()) {
      const search = this.to.open("search", `search_${at}`);
      this.to.delta(search, query);
      this.to.close(search, null, at === queries.length - 1 ? this.#sources : []);
    }
  }

  override finish(): void {
    if (this.#isBlocked && this.#reason === null) return this.to.end("refusal");
    if (this.#reason === null) return this.cut();
    this.#addSearches();
    const end = lookUp(REASONS, this.#reason);
    if (end === undefined) this.to.fail(blameEnd(this.#reason));
    else this.to.end(end);
  }

  override isFinished(): boolean {
    return this.#reason !== null;
  }

  override survives(): boolean {
    return this.#reason !== null && this.#hasUsage;
  }

  #readPart(part: unknown): void {
    const signature = getField(part, "thoughtSignature");
    const text = getField(part, "text");
    const call = getField(part, "functionCall");
    if (isObject(call)) return this.#addCall(call, signature);
    this.say(getField(part, "thought") === true ? "reasoning" : "text", getText(text));
    // The signature belongs to the text already sent.
    if (typeof signature === "string") this.#sign({ signature, after: true });
  }

  /** Closes the thought that the signature belongs to, or adds an empty thought for it. */
  #sign(seal: { readonly signature: string; readonly after?: true }): void {
    if (this.spoken?.kind === "reasoning" && seal.after !== true) return this.closeSpoken(seal);
    this.closeSpoken();
    this.to.close(this.to.open("reasoning"), seal);
  }

  #addCall({ id, name, args, partialArgs }: Table<unknown>, signature: unknown): void {
    if (partialArgs !== undefined)
      return this.to.fail(blameAnswer("The upstream sent a call in pieces, which it was not asked for."));
    if (typeof signature === "string") this.#sign({ signature });
    this.closeSpoken();
    const call = this.to.open("call", getText(id), getText(name));
    this.to.delta(call, JSON.stringify(args ?? {}));
    this.to.close(call);
  }
}
