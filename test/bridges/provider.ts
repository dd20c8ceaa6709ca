// A provider of each dialect: what it answers. Written by hand from the providers' documents, without any code of the bridges.

import type { DialectName } from "../../src/dialects/dialect.ts";
import type { Any } from "./calls.ts";
import { keepAnswer, type ModelTurn } from "./session.ts";

export interface Counts {
  readonly prompt: number;
  readonly read: number;
  readonly output: number;
  readonly reasoning: number;
}

/** Returns the events of a streamed answer. `pieces` cuts each text of the answer into pieces. */
export function formAnswer(
  upstream: DialectName,
  turn: ModelTurn,
  counts: Counts,
  pieces: (text: string) => string[] = (text) => [text],
): Any[] {
  return FORM[upstream](turn, counts, pieces);
}

type Form = (turn: ModelTurn, counts: Counts, pieces: (text: string) => string[]) => Any[];

const FORM: Readonly<Record<DialectName, Form>> = {
  messages({ thought, text, calls }, { prompt, read, output }, pieces) {
    const usage = {
      input_tokens: prompt - read,
      cache_read_input_tokens: read,
      cache_creation_input_tokens: 0,
    };
    const events: Any[] = [
      {
        type: "message_start",
        message: {
          id: "msg_up",
          type: "message",
          role: "assistant",
          model: "m",
          content: [],
          usage: { ...usage, output_tokens: 1 },
        },
      },
      { type: "ping" },
    ];
    let index = 0;
    const add = (content_block: Any, deltas: Any[]): void => {
      events.push({ type: "content_block_start", index, content_block });
      for (const delta of deltas) events.push({ type: "content_block_delta", index, delta });
      events.push({ type: "content_block_stop", index });
      index += 1;
    };
    if (thought !== null)
      add({ type: "thinking", thinking: "", signature: "" }, [
        ...pieces(thought).map((thinking) => ({ type: "thinking_delta", thinking })),
        { type: "signature_delta", signature: `sig(${thought})` },
      ]);
    if (text !== null)
      add(
        { type: "text", text: "" },
        pieces(text).map((each) => ({ type: "text_delta", text: each })),
      );
    for (const { id, name, args } of calls)
      add(
        { type: "tool_use", id, name, input: {} },
        pieces(JSON.stringify(args)).map((partial_json) => ({ type: "input_json_delta", partial_json })),
      );
    const stop_reason = calls.length > 0 ? "tool_use" : "end_turn";
    return [
      ...events,
      {
        type: "message_delta",
        delta: { stop_reason, stop_sequence: null },
        usage: { ...usage, output_tokens: output },
      },
      { type: "message_stop" },
    ];
  },
  responses({ thought, text, calls }, counts, pieces) {
    const head = { id: "resp_up", object: "response", model: "m", created_at: 1 };
    const events: Any[] = [
      { type: "response.created", response: { ...head, status: "in_progress", output: [] } },
    ];
    const output: Any[] = [];
    const add = (item: Any, begun: Any, deltas: Any[]): void => {
      const output_index = output.length;
      events.push({ type: "response.output_item.added", output_index, item: begun });
      for (const delta of deltas) events.push({ ...delta, output_index, item_id: item.id });
      events.push({ type: "response.output_item.done", output_index, item });
      output.push(item);
    };
    if (thought !== null) {
      const summary = [{ type: "summary_text", text: thought }];
      const item = { type: "reasoning", id: "rs_up", summary, encrypted_content: `blob(${thought})` };
      add(
        item,
        { ...item, summary: [] },
        pieces(thought).map((delta) => ({
          type: "response.reasoning_summary_text.delta",
          summary_index: 0,
          delta,
        })),
      );
    }
    if (text !== null) {
      const content = [{ type: "output_text", text, annotations: [] }];
      const item = { type: "message", id: "msg_up", role: "assistant", status: "completed", content };
      add(
        item,
        { ...item, content: [] },
        pieces(text).map((delta) => ({ type: "response.output_text.delta", content_index: 0, delta })),
      );
    }
    for (const { id, name, args } of calls) {
      const item = {
        type: "function_call",
        id: `fc_${id}`,
        call_id: id,
        name,
        arguments: JSON.stringify(args),
      };
      add(
        item,
        { ...item, arguments: "" },
        pieces(item.arguments).map((delta) => ({
          type: "response.function_call_arguments.delta",
          delta,
        })),
      );
    }
    const usage = {
      input_tokens: counts.prompt,
      input_tokens_details: { cached_tokens: counts.read },
      output_tokens: counts.output,
      output_tokens_details: { reasoning_tokens: counts.reasoning },
      total_tokens: counts.prompt + counts.output,
    };
    return [
      ...events,
      { type: "response.completed", response: { ...head, status: "completed", output, usage } },
    ];
  },
  chat({ thought, text, calls }, counts, pieces) {
    const chunk = (delta: Any, finish_reason: string | null = null): Any => ({
      id: "chatcmpl-up",
      object: "chat.completion.chunk",
      model: "m",
      choices: [{ index: 0, delta, finish_reason }],
    });
    return [
      chunk({ role: "assistant", content: "" }),
      ...(thought === null ? [] : pieces(thought).map((reasoning_content) => chunk({ reasoning_content }))),
      ...(text === null ? [] : pieces(text).map((content) => chunk({ content }))),
      ...calls.flatMap(({ id, name, args }, index) => [
        chunk({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] }),
        ...pieces(JSON.stringify(args)).map((each) =>
          chunk({ tool_calls: [{ index, function: { arguments: each } }] }),
        ),
      ]),
      chunk({}, calls.length > 0 ? "tool_calls" : "stop"),
      {
        id: "chatcmpl-up",
        object: "chat.completion.chunk",
        model: "m",
        choices: [],
        usage: {
          prompt_tokens: counts.prompt,
          completion_tokens: counts.output,
          total_tokens: counts.prompt + counts.output,
          prompt_tokens_details: { cached_tokens: counts.read },
          completion_tokens_details: { reasoning_tokens: counts.reasoning },
        },
      },
      "[DONE]",
    ];
  },
  content({ thought, text, calls }, counts, pieces) {
    const chunk = (parts: Any[], more: Any = {}): Any => ({
      responseId: "up",
      modelVersion: "m",
      candidates: [{ index: 0, content: { role: "model", parts }, ...more }],
    });
    const signature = thought === null ? {} : { thoughtSignature: `sig(${thought})` };
    return [
      ...(thought === null ? [] : pieces(thought).map((each) => chunk([{ text: each, thought: true }]))),
      ...(text === null ? [] : pieces(text).map((each) => chunk([{ text: each }]))),
      ...calls.map(({ id, name, args }, index) =>
        chunk([{ functionCall: { id, name, args }, ...(index === 0 ? signature : {}) }]),
      ),
      {
        ...chunk(calls.length === 0 && thought !== null ? [{ text: "", ...signature }] : [], {
          finishReason: "STOP",
        }),
        usageMetadata: {
          promptTokenCount: counts.prompt,
          cachedContentTokenCount: counts.read,
          candidatesTokenCount: counts.output - counts.reasoning,
          thoughtsTokenCount: counts.reasoning,
          totalTokenCount: counts.prompt + counts.output,
        },
      },
    ];
  },
};

/** Returns the answer that these events stream, in one piece. */
export function joinAnswer(upstream: DialectName, events: readonly Any[]): Any {
  switch (upstream) {
    case "messages": {
      const [{ content = [] } = {}] = keepAnswer("messages", events);
      const { message } = events[0];
      const { delta, usage } = events.at(-2);
      return { ...message, content, ...delta, usage };
    }
    case "responses":
      return events.at(-1).response;
    case "chat": {
      const [message] = keepAnswer("chat", events);
      const { finish_reason } = events.at(-3).choices[0];
      const choices = [{ index: 0, message, finish_reason }];
      return {
        id: "chatcmpl-up",
        object: "chat.completion",
        model: "m",
        choices,
        usage: events.at(-2).usage,
      };
    }
    case "content": {
      const parts = events.flatMap((event) => event.candidates[0].content.parts);
      const last = events.at(-1);
      return { ...last, candidates: [{ ...last.candidates[0], content: { role: "model", parts } }] };
    }
  }
}
