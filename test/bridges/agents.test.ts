// Tests for faults that only released agents have shown, each with the smallest request or answer that causes it.

import { describe, expect, test } from "bun:test";
import { DIALECT_NAMES, type DialectName } from "../../src/dialects/dialect.ts";
import { type Any, convert, readDirection, refusal, sse, stream, whole } from "./calls.ts";
import { judge } from "./judge.ts";
import { formAnswer } from "./provider.ts";
import { formRequest, formUser } from "./session.ts";

const COUNTS = { prompt: 10, read: 4, output: 6, reasoning: 2 };
const HI = { type: "message", role: "user", content: "Hi" };
const UPSTREAMS: readonly DialectName[] = ["messages", "chat", "content"];

/** Returns the envelope in which the thought of an answer comes to a responses client. */
function sealThought(upstream: DialectName): Any {
  const converted = convert(`responses>${upstream}`, formRequest("responses", [HI], true));
  const turn = { thought: "hm", text: "x", calls: [] };
  const { events } = stream(converted, [sse(formAnswer(upstream, turn, COUNTS))]);
  return events.at(-1).response.output[0];
}

describe("a conversion does what Codex needs", () => {
  test.each(UPSTREAMS)(
    "if Codex sends back the thought of an answer that broke off, a %s upstream does not get the thought",
    (upstream) => {
      const thought = sealThought(upstream);
      for (const history of [
        [HI, thought],
        [HI, thought, HI],
        [HI, { type: "function_call", call_id: "c", name: "Read", arguments: "{}" }, thought],
      ]) {
        const { body, text } = convert(`responses>${upstream}`, formRequest("responses", history, true));
        expect(judge(upstream, body)).toEqual([]);
        expect(text).not.toContain("hm");
      }
    },
  );

  test.each(UPSTREAMS)(
    "if the history of Codex ends with an answer that broke off, a %s upstream gets a user's message after that answer",
    (upstream) => {
      const history = [HI, { type: "message", role: "assistant", content: "I be" }];
      const { body } = convert(`responses>${upstream}`, formRequest("responses", history, true));
      expect(judge(upstream, body)).toEqual([]);
      expect(JSON.stringify(body)).toContain("[conversation continues]");
    },
  );

  test("Codex gets the call of a custom tool with the namespace that the tool is in", () => {
    const exec = { type: "custom", name: "exec", description: "Runs.", format: { type: "text" } };
    const tools = [{ type: "namespace", name: "functions", description: "", tools: [exec] }];
    const body = { model: "m", stream: true, input: [{ type: "additional_tools", tools }, HI] };
    const converted = convert("responses>messages", body);
    const calls = [{ id: "c1", name: "functions__exec", args: { input: "1 + 1" } }];
    const { events } = stream(converted, [
      sse(formAnswer("messages", { thought: null, text: null, calls }, COUNTS)),
    ]);
    expect(events.at(-1).response.output).toMatchObject([
      { type: "custom_tool_call", namespace: "functions", name: "exec", input: "1 + 1" },
    ]);
  });

  test("if Codex asks for an image in original detail, a chat upstream is asked for high detail", () => {
    const image = (detail: string): Any => ({
      type: "input_image",
      image_url: "data:image/png;base64,eA==",
      detail,
    });
    const parts = ["original", "low", "high", "auto"].map(image);
    const { body } = convert("responses>chat", { input: [{ ...HI, content: parts }] });
    const details = body.messages[0].content.map((part: Any) => part.image_url.detail);
    expect(details).toEqual(["high", "low", "high", "auto"]);
  });
});

describe("a conversion does what Claude Code needs", () => {
  const DIRECTIONS = DIALECT_NAMES.filter((each) => each !== "messages").map((each) => `messages>${each}`);

  test.each(DIRECTIONS)(
    "the conversion %s replaces an answer's id, because Claude Code merges answers with equal ids",
    (direction) => {
      const [, upstream] = readDirection(direction);
      const converted = convert(direction, formRequest("messages", [{ role: "user", content: "Hi" }], true));
      const sent = formAnswer(upstream, { thought: null, text: "x", calls: [] }, COUNTS);
      const { events } = stream(converted, [sse(sent)]);
      expect(events[0].message.id).toBe("msg_1");
      const reply = upstream === "responses" ? sent.at(-1).response : { ...sent[0], ...sent.at(-1) };
      expect(whole(converted, reply).body.id ?? "msg_1").toBe("msg_1");
    },
  );

  test.each(["gpt-5.6", "gpt-5.1"])(
    "whether Claude Code marks a tool result for caching or not, %s gets the same result apart from the mark",
    (model) => {
      const ask = (mark: Any): Any => [
        { role: "user", content: "Hi" },
        { role: "assistant", content: [{ type: "tool_use", id: "c", name: "Read", input: {} }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "c", content: "one", ...mark }] },
      ];
      const results = [{ cache_control: { type: "ephemeral" } }, {}].map((mark) => {
        const { body } = convert("messages>responses", { max_tokens: 9, messages: ask(mark) }, { model });
        return JSON.stringify(body.input.at(-1));
      });
      const mark = ',"prompt_cache_breakpoint":{"mode":"explicit"}';
      expect(results[0]?.includes(mark)).toBe(model === "gpt-5.6");
      expect(results[0]?.replace(mark, "")).toBe(results[1] ?? "");
    },
  );

  test("a request that ends with the beginning of an answer is refused: Claude Code sends no such request", () => {
    const body = {
      max_tokens: 9,
      messages: [
        { role: "user", content: "Hi" },
        { role: "assistant", content: "I" },
      ],
    };
    expect(DIRECTIONS.map((direction) => refusal(direction, body))).toEqual(
      DIRECTIONS.map(() => "400 messages"),
    );
  });
});

test.each(["constructor", "__proto__", "toString", "hasOwnProperty"])(
  "%s, which is a member of every JavaScript object, is an unknown value in requests and answers",
  (word) => {
    for (const client of DIALECT_NAMES) {
      for (const upstream of DIALECT_NAMES) {
        if (client === upstream) continue;
        const user = formUser(client, { results: [], text: "Hi", image: false }, []);
        const base = formRequest(client, user, true);
        const direction = `${client}>${upstream}`;
        const { body } = convert(direction, {
          ...base,
          ...(client === "responses" && { reasoning: { effort: word } }),
          ...(client === "chat" && { reasoning_effort: word }),
          ...(client === "messages" && { output_config: { effort: word } }),
          ...(direction === "chat>responses" ? {} : { [`x_${word}`]: 1 }),
        });
        const mode = client === "content" ? { functionCallingConfig: { mode: word } } : word;
        const choice =
          client === "content"
            ? { toolConfig: mode }
            : { tool_choice: client === "messages" ? { type: word } : mode };
        expect(refusal(direction, { ...base, ...choice })).toStartWith("400 tool");
        expect(judge(upstream, body)).toEqual([]);
        expect(JSON.stringify(body)).not.toContain("native code");
        const sent = JSON.stringify(formAnswer(upstream, { thought: null, text: "x", calls: [] }, COUNTS))
          .replaceAll(/"(?:end_turn|stop|STOP|completed)"/g, `"${word}"`)
          .replaceAll('"response.created"', `"${word}"`);
        const { phase } = stream(convert(`${client}>${upstream}`, base), [sse(JSON.parse(sent))]);
        expect([client, upstream, phase]).toEqual([client, upstream, "broken"]);
      }
    }
  },
);

test("reasoning details that came in several pieces go back to their upstream as one piece", () => {
  const piece = (text: string, more: Any = {}): Any => ({
    choices: [
      { index: 0, delta: { reasoning_details: [{ type: "reasoning.text", index: 0, text, ...more }] } },
    ],
  });
  const end = { choices: [{ index: 0, delta: { content: "x" }, finish_reason: "stop" }] };
  const body = formRequest("messages", [{ role: "user", content: "Hi" }], true);
  const { events } = stream(convert("messages>chat", body), [
    sse([piece("a"), piece("b"), piece("c", { signature: "s" }), end, "[DONE]"]),
  ]);
  const signature = events.find(({ delta }) => delta?.type === "signature_delta").delta.signature;
  const history = [
    { role: "user", content: "Hi" },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "abc", signature },
        { type: "text", text: "x" },
      ],
    },
    { role: "user", content: "More" },
  ];
  const { body: next } = convert("messages>chat", formRequest("messages", history, true));
  expect(next.messages[2].reasoning_details).toEqual([
    { type: "reasoning.text", index: 0, text: "abc", signature: "s" },
  ]);
});
