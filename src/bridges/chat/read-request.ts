// A request of a chat client → a conversation.

import { getField, getList, getText, isObject, textOf } from "../../lib/json/json.ts";
import type { ContentPart, Conversation, MediaPart } from "../neutral/conversation.ts";
import {
  eachRecord,
  isAbsent,
  type Json,
  refuseBody,
  refuseField,
  refuseStored,
  requireList,
  requireRecord,
} from "../neutral/notes.ts";
import { nameIn, type ReadingFor, readText, RequestReading } from "../neutral/read-request.ts";
import { CHAT_FIELDS } from "./fields.ts";

export function readChatRequest(body: Json, to: ReadingFor): Conversation {
  const reading = new ChatReading("chat", CHAT_FIELDS, body, to);
  const { options } = reading;
  const isLegacy = getList(body["functions"]).length > 0;
  if (isLegacy) options.parallel = false;
  // The upstream gets `own_effort`, the client's word, instead of `effort`.
  // Chat clients show no thoughts, so none are asked for.
  if (to.isShared) {
    delete options.effort;
    delete options.thoughts;
  }
  eachRecord(getList(body["tools"]), "tools", (tool, place) => addTool(reading, tool, place));
  for (const [index, each] of getList(body["functions"]).entries())
    reading.addTool("function", each, { at: "functions[]", place: `functions[${index}]` });
  const messages = requireList(body["messages"], "messages");
  eachRecord(messages, "messages", (message, _, index) => reading.add(message, index));
  reading.wishes = {
    usage: getField(body["stream_options"], "include_usage") === true,
    logprobs: body["logprobs"] === true,
    legacy: isLegacy,
    forced: options.choice?.kind === "tool",
  };
  return reading;
}

function addTool(reading: RequestReading, { type, ...tool }: Json, place: string): void {
  if (type !== "function" && type !== "custom")
    refuseField(`${place}.type`, "expected `function` or `custom`.");
  const declared = requireRecord(tool[type], `${place}.${type}`);
  nameIn(declared, "name", `${place}.${type}`);
  reading.addTool(type, { [type]: declared }, { at: "tools[]", place });
}

// Messages.

class ChatReading extends RequestReading {
  /** Ids of calls by name, because a `function_call` has no id. */
  readonly #legacyCalls = new Map<string, string>();

  add(message: Json, index: number): void {
    const path = `messages[${index}]`;
    const { role, content } = message;
    switch (role) {
      case "system":
      case "developer":
      case "user":
        return this.#say(role, this.#readParts(content, path));
      case "assistant":
        return this.#addAnswer(message, index);
      case "tool":
        return this.#addResult(nameIn(message, "tool_call_id", path), content, path);
      case "function": {
        const name = nameIn(message, "name", path);
        return this.#addResult(this.#legacyCalls.get(name) ?? name, content, path);
      }
      default:
        refuseBody(`${path}.role`, "expected `system`, `developer`, `user`, `assistant` or `tool`.");
    }
  }

  #say(role: "system" | "developer" | "user", parts: readonly ContentPart[]): void {
    if (parts.length === 0) return;
    const word = role === "system" ? ({ word: role } as const) : {};
    this.items.push({
      type: "message",
      role: role === "user" ? "user" : "system",
      ...word,
      parts,
    });
  }

  #addResult(id: string, content: unknown, path: string): void {
    this.items.push({
      type: "result",
      id,
      parts: this.#readParts(content, path),
      failed: false,
    });
  }

  #addAnswer(message: Json, index: number): void {
    const path = `messages[${index}]`;
    const { content, reasoning_content: thoughts, reasoning_details, refusal, function_call } = message;
    const text = getText(thoughts);
    for (const detail of getList(reasoning_details))
      this.items.push({ type: "reasoning", text, seal: this.openSeal(getField(detail, "data")) });
    const parts = isAbsent(content) ? [] : this.#readParts(content, path);
    // https://platform.openai.com/docs/guides/prompt-caching
    if (this.isShared && parts.some(({ cache }) => cache === true))
      refuseField(`${path}.content`, "the model's own words cannot mark a cache.");
    this.say("assistant", [
      ...parts,
      ...readText(refusal).map((part) => ({ ...part, refusal: true as const })),
    ]);
    const calls = getList(message["tool_calls"]);
    eachRecord(calls, `${path}.tool_calls`, (call, place) => this.#addCall(call, place));
    if (!isAbsent(function_call)) {
      const name = nameIn(function_call, "name", `${path}.function_call`);
      this.#legacyCalls.set(name, `call_legacy_${index}`);
      this.#addCall({ id: `call_legacy_${index}`, function: function_call }, `${path}.function_call`);
    }
  }

  #addCall(call: Json, path: string): void {
    const custom = call["type"] === "custom";
    const declared = custom ? call["custom"] : call["function"];
    const input = getField(declared, custom ? "input" : "arguments");
    this.items.push({
      type: "call",
      id: nameIn(call, "id", path),
      name: nameIn(declared, "name", `${path}.${custom ? "custom" : "function"}`),
      custom,
      input: textOf(input ?? {}),
    });
  }

  #readParts(content: unknown, path: string): ContentPart[] {
    if (typeof content === "string") return readText(content);
    if (!Array.isArray(content)) refuseBody(`${path}.content`, "expected a text or a list.");
    return content.flatMap((part, index) => this.#readPart(part, `${path}.content[${index}]`));
  }

  #readPart(part: unknown, path: string): ContentPart[] {
    const cache = isObject(getField(part, "prompt_cache_breakpoint"));
    const mark = cache ? { cache } : {};
    const type = getField(part, "type");
    switch (type) {
      case "text":
        return readText(getField(part, "text"), cache);
      case "refusal":
        return readText(getField(part, "refusal")).map((text) => ({ ...text, refusal: true }));
      case "image_url":
        return [{ ...readImage(this, getField(part, "image_url"), path), ...mark }];
      case "file":
        return [{ ...this.#readFile(getField(part, "file"), path), ...mark }];
      case "input_audio":
        return refuseField(path, "the channels of this group take no sound.");
      default:
        if (this.isShared) refuseBody(`${path}.type`, "expected `text`, `image_url` or `file`.");
        this.notes.add(`content:${nameIn(part, "type", path)}`);
        return [];
    }
  }

  #readFile(file: unknown, path: string): MediaPart {
    const [url, stored, filename] = ["file_data", "file_id", "filename"].map((name) => getField(file, name));
    const name = typeof filename === "string" ? filename : null;
    if (typeof url === "string") return { kind: "file", at: path, url, name };
    // A responses upstream knows the file by the same id.
    if (!this.isShared || typeof stored !== "string") refuseStored(`${path}.file.file_id`);
    return { kind: "file", at: path, url: stored, name, isStored: true };
  }
}

function readImage(reading: RequestReading, image: unknown, path: string): MediaPart {
  const url = getField(image, "url");
  if (typeof url !== "string") refuseBody(`${path}.image_url.url`, "expected an address.");
  return {
    kind: "image",
    at: path,
    url,
    name: null,
    ...reading.readDetail(getField(image, "detail")),
  };
}
