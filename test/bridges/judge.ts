// How a provider of each dialect reads a request, and the rules by which the provider refuses a request.
// Written by hand from the providers' documents, without any code of the bridges.

import type { DialectName } from "../../src/dialects/dialect.ts";
import type { Any } from "./calls.ts";

/** Returns the request as a list of what has happened in its conversation, in order. */
export function flatten(upstream: DialectName, body: Any): Any[] {
  return FLATTEN[upstream](body);
}

const FLATTEN: Readonly<Record<DialectName, (body: Any) => Any[]>> = {
  messages: ({ messages }) =>
    messages.flatMap(({ role, content }: Any) =>
      content.map((block: Any) => {
        if (block.type === "text") return [role, block.text];
        if (block.type === "image") return [role, "image"];
        if (block.type === "thinking") return ["thought", block.thinking, block.signature];
        if (block.type === "tool_use") return ["call", block.id, block.name, block.input];
        return ["result", block.tool_use_id, block.content ?? ""];
      }),
    ),
  responses: ({ input }) =>
    input
      .filter(({ role }: Any) => role !== "developer" && role !== "system")
      .flatMap((item: Any) => {
        if (item.type === "reasoning") return [["thought", item.encrypted_content]];
        if (item.type === "function_call")
          return [["call", item.call_id, item.name, JSON.parse(item.arguments)]];
        if (item.type === "function_call_output") return [["result", item.call_id, readOutput(item.output)]];
        if (typeof item.content === "string") return [[item.role, item.content]];
        return item.content.map((part: Any) => [
          item.role,
          part.type === "input_image" ? "image" : part.text,
        ]);
      }),
  chat: ({ messages }) =>
    messages
      .filter(({ role }: Any) => role !== "system")
      .flatMap((message: Any) => {
        const { role, content } = message;
        if (role === "tool") return [["result", message.tool_call_id, content]];
        const parts = typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []);
        return [
          ...(message.reasoning_content === undefined ? [] : [["thought", message.reasoning_content]]),
          ...parts.map((part: Any) => [role, part.type === "image_url" ? "image" : part.text]),
          ...(message.tool_calls ?? []).map((call: Any) => [
            "call",
            call.id,
            call.function.name,
            JSON.parse(call.function.arguments),
          ]),
        ];
      }),
  content: ({ contents }) =>
    contents.flatMap(({ role, parts }: Any) =>
      parts.map((part: Any) => {
        const name = role === "model" ? "assistant" : role;
        if (part.functionCall)
          return ["call", part.functionCall.id, part.functionCall.name, part.functionCall.args];
        if (part.functionResponse) {
          const { result, error } = part.functionResponse.response;
          return ["result", part.functionResponse.id, result ?? error];
        }
        return [name, part.inlineData ? "image" : part.text];
      }),
    ),
};

function readOutput(output: Any): string {
  return typeof output === "string" ? output : output.map(({ text }: Any) => text ?? "image").join("\n");
}

interface Problems {
  readonly note: (problem: string, isFound: boolean) => void;
}

type Rule = (body: Any, problems: Problems) => void;

/** The rules of a strict upstream. Returns those that the request breaks. */
export function judge(upstream: DialectName, body: Any): string[] {
  const found: string[] = [];
  const problems: Problems = { note: (problem, isFound) => void (isFound && found.push(problem)) };
  judgeCalls(flatten(upstream, body), problems);
  judgeNames(upstream, body, problems);
  RULES[upstream](body, problems);
  return found;
}

function judgeCalls(events: readonly Any[], { note }: Problems): void {
  const open = new Set<string>();
  const seen = new Set<string>();
  for (const [at, [kind, id]] of events.entries()) {
    if (kind === "call") {
      note(`the id ${id} comes twice`, seen.has(id));
      seen.add(id);
      open.add(id);
    } else if (kind === "result") {
      note(`a result without a call: ${id}`, !open.delete(id));
      note("a text of the user before a result", events[at - 1]?.[0] === "user");
    } else note("a call without a result", kind === "user" && open.size > 0);
  }
  note("a call without a result at the end", open.size > 0);
}

/** Which names of tools and calls a provider takes. */
const NAMES: Readonly<Record<DialectName, RegExp>> = {
  messages: /^[\w-]{1,128}$/,
  responses: /^[\w-]{1,64}$/,
  chat: /^[\w-]{1,64}$/,
  content: /^[A-Za-z_][\w.-]{0,63}$/,
};

function judgeNames(upstream: DialectName, body: Any, { note }: Problems): void {
  const tools: Any[] = upstream === "content" ? body.tools?.[0]?.functionDeclarations : body.tools;
  const declared = (tools ?? []).map((tool) => tool.name ?? tool.function?.name ?? tool.type);
  note("a tool comes twice", new Set(declared).size < declared.length);
  const called = flatten(upstream, body).flatMap(([kind, , name]) => (kind === "call" ? [name] : []));
  for (const name of [...declared, ...called]) note(`the name ${name}`, !NAMES[upstream].test(name));
}

const RULES: Readonly<Record<DialectName, Rule>> = {
  messages: judgeMessages,
  responses: judgeResponses,
  chat: judgeChat,
  content: judgeContent,
};

/** Checks that the user begins and that both sides take turns. */
function judgeRoles(turns: readonly Any[], { note }: Problems): void {
  for (const [at, { role }] of turns.entries())
    note(`a turn of ${role} out of order`, (role === "user") !== (at % 2 === 0));
  note("the last turn is not the user's", turns.at(-1)?.role !== "user");
}

const isBlank = (text: unknown): boolean => typeof text === "string" && text.trim() === "";

function judgeMessages(body: Any, problems: Problems): void {
  const { note } = problems;
  const { messages, thinking, tool_choice: choice } = body;
  judgeRoles(messages, problems);
  note("more than four cache marks", JSON.stringify(body).split('"cache_control"').length - 1 > 4);
  if (thinking !== undefined) {
    const { budget_tokens: budget = 1024 } = thinking;
    note("budget", budget < 1024 || budget >= body.max_tokens);
    note("a forced call next to thinking", /any|tool/.test(choice?.type));
    note("sampling next to thinking", "temperature" in body || "top_p" in body);
  }
  for (const tool of body.tools ?? [])
    note(`the schema of ${tool.name}`, "input_schema" in tool && tool.input_schema.type !== "object");
  judgeSampling(body, note);
  for (const { content } of [...messages, { content: body.system ?? [{ type: "text", text: "x" }] }]) {
    note("a message without content", content.length === 0);
    for (const block of content) judgeBlock(block, problems);
  }
}

const LIMITS =
  /^(?:minimum|maximum|exclusive\w+|multipleOf|minLength|maxLength|pattern|maxItems|uniqueItems|oneOf|nullable|propertyOrdering)$/;

/** Whether a schema is as Claude's structured outputs want it. */
function isClosed(schema: Any): boolean {
  if (typeof schema !== "object" || schema === null) return true;
  if (schema.type === "object" && schema.additionalProperties !== false) return false;
  if (Object.keys(schema).some((word) => LIMITS.test(word)) || schema.minItems > 1) return false;
  return Object.values(schema.properties ?? {}).every(isClosed) && isClosed(schema.items);
}

/** Whether a schema is as OpenAI's strict mode wants it. */
function isStrict(schema: Any): boolean {
  if (typeof schema !== "object" || schema === null) return true;
  const { type, properties = {}, required = [], $defs = {}, items } = schema;
  if (type === "object" && schema.additionalProperties !== false) return false;
  if (["oneOf", "allOf", "patternProperties"].some((word) => word in schema)) return false;
  if (!Object.keys(properties).every((name) => required.includes(name))) return false;
  return [...Object.values(properties), ...Object.values($defs), items].every(isStrict);
}

/** Checks a tool, or the schema of an answer, in either dialect of OpenAI. */
function judgeSchema({ name, parameters, schema = parameters, strict }: Any, note: Problems["note"]): void {
  note(`the schema of ${name}`, schema.type !== "object" || schema.properties === undefined);
  note(`the schema of ${name} is not strict`, strict === true && !isStrict(schema));
}

const MEDIA = /^image\/(?:png|jpeg|gif|webp)$/;

function judgeSampling(body: Any, note: Problems["note"]): void {
  note("an open schema, or one with limits", !isClosed(body.output_config?.format?.schema));
  note("a temperature above 1", body.temperature > 1);
  note("both samplings", "temperature" in body && "top_p" in body && /-4-5/.test(body.model));
}

function judgeBlock(block: Any, { note }: Problems): void {
  note("a blank text", block.type === "text" && isBlank(block.text));
  if (block.type === "thinking") {
    note("a changed thought", block.signature !== `sig(${block.thinking})`);
    note("a marked thought", block.cache_control !== undefined);
  }
  note(`the id ${block.id}`, block.type === "tool_use" && !/^[\w-]+$/.test(block.id));
  note("an image without data", block.type === "image" && isBlank(block.source.data));
  const type = block.type === "image" ? (block.source.media_type ?? "image/png") : "image/png";
  note(`the media type ${type}`, !MEDIA.test(type));
}

function judgeResponses(body: Any, { note }: Problems): void {
  const { input, reasoning = {}, max_output_tokens: cap = 16, prompt_cache_key: key = "" } = body;
  note("the request is stored", body.store !== false);
  note("too small a cap", cap < 16);
  note("the key of the cache is too long", key.length > 64);
  note("sampling next to reasoning", /^(?!none)/.test(reasoning.effort ?? "none") && "temperature" in body);
  judgeSchemas(body, note);
  for (const at of input.keys()) judgeItem(input, at, note);
  note("the last item is the model's", input.at(-1)?.role === "assistant");
}

function judgeSchemas(body: Any, note: Problems["note"]): void {
  const functions = (body.tools ?? []).filter(({ type }: Any) => type === "function");
  const schemas = body.text?.format?.type === "json_schema" ? [body.text.format] : [];
  for (const each of [...functions, ...schemas]) judgeSchema(each, note);
}

function judgeItem(input: readonly Any[], at: number, note: Problems["note"]): void {
  const item = input[at];
  note("an id is too long", (item.call_id ?? "").length > 64);
  if (item.type !== "reasoning") return;
  const next = input.slice(at).find(({ type }) => type !== "reasoning");
  note(
    "reasoning without the item that it led to",
    next?.type !== "function_call" && next?.role !== "assistant",
  );
  note("changed reasoning", !item.encrypted_content.startsWith("blob(") || item.id !== "rs_up");
}

function judgeChat({ messages, tools = [], response_format: format }: Any, { note }: Problems): void {
  const schemas = format?.type === "json_schema" ? [format.json_schema] : [];
  for (const each of [...tools.map((tool: Any) => tool.function), ...schemas]) judgeSchema(each, note);
  for (const [at, { role, content, tool_calls: calls }] of messages.entries()) {
    note("a second system message at the beginning", role === "system" && at > 0 && at < 2);
    note(`an empty message of ${role}`, content === null ? calls === undefined : content.length === 0);
    note("a tool's message is not a text", role === "tool" && typeof content !== "string");
  }
  note("the last message is the model's", messages.at(-1)?.role === "assistant");
}

function judgeContent({ contents, systemInstruction }: Any, problems: Problems): void {
  const { note } = problems;
  judgeRoles(contents, problems);
  for (const [at, { parts }] of contents.entries()) {
    note("a turn without parts", parts.length === 0);
    for (const part of parts) note("a blank text", isBlank(part.text) && part.thoughtSignature === undefined);
    const calls = parts.filter(({ functionCall }: Any) => functionCall !== undefined);
    const results = contents[at + 1]?.parts.filter(
      ({ functionResponse }: Any) => functionResponse !== undefined,
    );
    const named = (list: Any[], field: string): string => list.map((part) => part[field].name).join();
    if (calls.length > 0)
      note("other results than calls", named(calls, "functionCall") !== named(results, "functionResponse"));
    const signature = calls[0]?.thoughtSignature ?? "skip_thought_signature_validator";
    note(`the signature ${signature}`, !/^sig\(|^skip_thought_signature_validator$/.test(signature));
    note("a call without a signature", calls.length > 0 && calls[0].thoughtSignature === undefined);
  }
  note("no instruction", systemInstruction !== undefined && systemInstruction.parts.length === 0);
}
