// An answer of a content upstream → blocks. It has no last event: it ends with the stream, after a reason was given.
// https://ai.google.dev/api/generate-content

import { getField, getList, isObject } from "../../lib/json/json.ts";
import { blameAnswer, isFailure, readFailure } from "../turn/failure.ts";
import type { EndReason, Sequence } from "../turn/sequence.ts";
import { type AnswerReader, CUT } from "./reading.ts";

/** Any other reason is a failure, above all a malformed call: without the call, the client would take it for an end. */
const REASONS: Readonly<Record<string, EndReason>> = {
  STOP: "done",
  MAX_TOKENS: "cap",
  SAFETY: "refusal",
  RECITATION: "refusal",
  LANGUAGE: "refusal",
  BLOCKLIST: "refusal",
  PROHIBITED_CONTENT: "refusal",
  SPII: "refusal",
};

type Spoken = "text" | "reasoning";

export class ContentAnswerReader implements AnswerReader {
  readonly #to: Sequence;
  #open: Spoken | null = null;
  #calls = 0;
  #reason: string | null = null;
  #blocked = false;
  #hasUsage = false;

  constructor(to: Sequence) {
    this.#to = to;
  }

  /** Some answers are lists of the events of a stream. */
  read(value: unknown): void {
    const chunks: readonly unknown[] = Array.isArray(value) ? value : [value];
    for (const chunk of chunks) this.#read(chunk);
  }

  #read(chunk: unknown): void {
    if (isFailure(chunk)) return this.#to.fail(readFailure(200, chunk));
    if (!isObject(chunk)) return;
    const { responseId, modelVersion } = chunk;
    this.#to.begin(
      typeof responseId === "string" ? responseId : "",
      typeof modelVersion === "string" ? modelVersion : "",
    );
    if (isObject(chunk["usageMetadata"])) this.#hasUsage = true;
    if (typeof getField(chunk["promptFeedback"], "blockReason") === "string") this.#blocked = true;
    const [candidate] = getList(chunk["candidates"]);
    for (const part of getList(getField(getField(candidate, "content"), "parts"))) this.#readPart(part);
    const reason = getField(candidate, "finishReason");
    if (typeof reason === "string" && reason !== "FINISH_REASON_UNSPECIFIED") this.#reason = reason;
  }

  readWord(word: string): boolean {
    return word === "[DONE]";
  }

  finish(): void {
    if (this.#blocked && this.#reason === null) return this.#to.end("refusal");
    if (this.#reason === null) return this.#to.fail(blameAnswer(CUT));
    const end = REASONS[this.#reason];
    if (end !== undefined) return this.#to.end(end);
    const word = this.#reason.slice(0, 40).replaceAll(/\W/g, "_");
    this.#to.fail(blameAnswer(`The upstream ended its answer for another reason: ${word}.`));
  }

  survives(): boolean {
    return this.#reason !== null && this.#hasUsage;
  }

  #readPart(part: unknown): void {
    const signature = getField(part, "thoughtSignature");
    const text = getField(part, "text");
    const call = getField(part, "functionCall");
    if (isObject(call) && call["partialArgs"] !== undefined)
      return this.#to.fail(blameAnswer("The upstream sent a call in pieces, which it was not asked for."));
    if (isObject(call)) return this.#addCall(call, signature);
    if (typeof text === "string" && text !== "")
      this.#say(getField(part, "thought") === true ? "reasoning" : "text", text);
    // It belongs to the text that has been sent.
    if (typeof signature === "string") this.#sign({ signature, after: true });
  }

  #say(kind: Spoken, text: string): void {
    if (this.#open !== kind) {
      this.#close();
      this.#open = kind;
      this.#to.open(kind, { kind });
    }
    this.#to.delta(kind, text);
  }

  #close(): void {
    if (this.#open !== null) this.#to.close(this.#open);
    this.#open = null;
  }

  /** A signature closes the thought before it, or stands as a thought without a text. */
  #sign(seal: { readonly signature: string; readonly after?: true }): void {
    if (this.#open === "reasoning" && seal.after !== true) {
      this.#to.close("reasoning", seal);
      this.#open = null;
      return;
    }
    this.#close();
    this.#to.open("signature", { kind: "reasoning" });
    this.#to.close("signature", seal);
  }

  #addCall(call: Readonly<Record<string, unknown>>, signature: unknown): void {
    if (typeof signature === "string") this.#sign({ signature });
    this.#close();
    const { id, name, args } = call;
    const key = `call ${this.#calls}`;
    // An id that follows from the answer's is the same each time.
    const made = `call_${this.#to.id.replaceAll(/\W/g, "").slice(-40)}_${this.#calls}`;
    this.#calls += 1;
    this.#to.open(key, {
      kind: "call",
      id: typeof id === "string" && id !== "" ? id : made,
      name: typeof name === "string" ? name : "",
    });
    this.#to.delta(key, JSON.stringify(args ?? {}));
    this.#to.close(key);
  }
}
