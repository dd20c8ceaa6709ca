// Tests that bugs of other projects do not happen here. Each row has the names of the issues, the direction
// of the conversion, and a check.

import { expect, test } from "bun:test";
import {
  type Any,
  convert,
  readDirection,
  refusal,
  type Setting,
  sse,
  stream,
  type Streamed,
} from "./calls.ts";
import { formAnswer } from "./provider.ts";
import { formRequest, formUser, keepAnswer } from "./session.ts";

const COUNTS = { prompt: 10, read: 4, output: 6, reasoning: 2 };
const READ = { id: "c1", name: "Read", args: { path: "x" } };
const TURN = { thought: "hm", text: "Hello", calls: [READ] };
const USER = { role: "user", content: "Hi" };

const ask = (more: Any = {}, messages: Any[] = [USER]): Any => ({
  ...formRequest("messages", messages, true),
  ...more,
});
const askResponses = (input: Any[], more: Any = {}): Any => ({
  ...formRequest("responses", input, true),
  ...more,
});
const askChat = (messages: Any[], more: Any = {}): Any => ({
  ...formRequest("chat", messages, true),
  ...more,
});
const said = (text: string): Any => ({
  type: "message",
  role: "user",
  content: [{ type: "input_text", text }],
});
const functionOf = (name: string, more: Any = {}): Any => ({
  name,
  input_schema: { type: "object", ...more },
});

/** Writes a stream of chat chunks with these deltas. */
function chat(deltas: Any[], finish: string | null = "stop"): string {
  const chunk = (delta: Any, finish_reason: string | null = null): Any => ({
    id: "up",
    model: "m",
    choices: [{ index: 0, delta, finish_reason }],
  });
  return sse([
    ...deltas.map((delta) => chunk(delta)),
    ...(finish === null ? [] : [chunk({}, finish), "[DONE]"]),
  ]);
}

function answer(direction: string, body: Any, events: string, setting: Setting = {}): Streamed {
  return stream(convert(direction, body, setting), [events]);
}

const callOf = (index: number | undefined, id: string, args: string, name = "Read"): Any => ({
  tool_calls: [
    { ...(index === undefined ? {} : { index }), id, type: "function", function: { name, arguments: args } },
  ],
});
const more = (index: number, args: string): Any => ({
  tool_calls: [{ index, function: { arguments: args } }],
});

/** Returns the client's next request after one answer, as the upstream gets it. */
function next(direction: string, turn: Any = TURN, second: Setting = {}): Any {
  const [client, upstream] = readDirection(direction);
  const say = (text: string | null, calls: Any[]): Any[] =>
    formUser(client, { results: [], text, image: false }, calls);
  const first = say("Hi", []);
  const sent = sse(formAnswer(upstream, turn, COUNTS));
  const kept = keepAnswer(client, answer(direction, formRequest(client, first, true), sent).events);
  const more = say(turn.calls.length === 0 ? "More" : null, turn.calls);
  return convert(direction, formRequest(client, [...first, ...kept, ...more], true), second).body;
}

const types = (events: Any[]): string[] => events.map(({ type }) => type);

const CUSTOM = {
  type: "custom",
  name: "apply_patch",
  description: "Patch.",
  format: { type: "grammar", syntax: "lark", definition: "start: x" },
};
const PATCH = "*** Begin Patch\n*** End Patch";
const patch = (args: Any): Any => ({
  thought: null,
  text: null,
  calls: [{ id: "c1", name: "apply_patch", args }],
});

type Row = readonly [bug: string, direction: string, check: (direction: string) => void];

const ROWS: readonly Row[] = [
  [
    "raine/claude-code-proxy#52",
    "messages>responses",
    (direction) => {
      const { input } = next(direction);
      const at = input.findIndex(({ type }: Any) => type === "reasoning");
      expect(input[at]).toEqual({
        type: "reasoning",
        id: "rs_up",
        summary: [],
        encrypted_content: "blob(hm)",
      });
      expect(types(input.slice(at))).toEqual([
        "reasoning",
        "message",
        "function_call",
        "function_call_output",
      ]);
    },
  ],
  [
    "decolua/9router#355, router-for-me/CLIProxyAPI#4890",
    "messages>chat",
    (direction) => {
      const kept = next(direction, TURN, { quirks: { replay: true } }).messages;
      expect(kept.at(-2)).toMatchObject({ role: "assistant", reasoning_content: "hm" });
      const lost = next(direction, TURN, { quirks: { replay: true }, secret: "other" }).messages;
      expect(lost.at(-2)).toMatchObject({ role: "assistant", reasoning_content: " " });
      expect(next(direction, { ...TURN, calls: [] }, { secret: "other" }).messages.at(-2)).not.toHaveProperty(
        "reasoning_content",
      );
    },
  ],
  [
    "router-for-me/CLIProxyAPI#4154, #5424, #5872",
    "messages>chat",
    (direction) => {
      const details = [{ type: "reasoning.text", text: "c", signature: "s" }];
      for (const delta of [{ reasoning_content: "a" }, { reasoning: "b" }, { reasoning_details: details }]) {
        const { events } = answer(direction, ask(), chat([delta, { content: "x" }]));
        expect(events.find((event) => event.delta?.thinking)?.delta.thinking).toMatch(/[abc]/);
      }
      const both = answer(
        direction,
        ask(),
        chat([{ reasoning: "b", reasoning_details: details }, { content: "x" }]),
      );
      const [kept] = keepAnswer("messages", both.events);
      expect(kept.content[0].thinking).toBe("b");
      const again = convert(direction, ask({}, [USER, kept, USER])).body.messages;
      expect(again.find(({ role }: Any) => role === "assistant").reasoning_details).toEqual(details);
    },
  ],
  [
    "google/adk-python#4801",
    "responses>messages",
    (direction) => {
      const block = (index: number, content_block: Any, ...deltas: Any[]): Any[] => [
        { type: "content_block_start", index, content_block },
        ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
        { type: "content_block_stop", index },
      ];
      const thought = (index: number, word: string): Any[] =>
        block(
          index,
          { type: "thinking", thinking: word, signature: "" },
          { type: "signature_delta", signature: `sig(${word})` },
        );
      const call = (index: number, id: string): Any[] =>
        block(index, { type: "tool_use", id, name: "Read", input: {} });
      const events = [
        { type: "message_start", message: { id: "m", content: [] } },
        ...thought(0, "one"),
        ...call(1, "c1"),
        ...thought(2, "two"),
        ...call(3, "c2"),
        { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 1 } },
        { type: "message_stop" },
      ];
      const kept = keepAnswer("responses", answer(direction, askResponses([said("Hi")]), sse(events)).events);
      const results = ["c1", "c2"].map((call_id) => ({
        type: "function_call_output",
        call_id,
        output: "ok",
      }));
      const { messages } = convert(direction, askResponses([said("Hi"), ...kept, ...results])).body;
      expect(types(messages[1].content)).toEqual(["thinking", "tool_use", "thinking", "tool_use"]);
      expect(messages[1].content[2]).toEqual({ type: "thinking", thinking: "two", signature: "sig(two)" });
    },
  ],
  [
    "router-for-me/CLIProxyAPI#2360, lbjlaq/Antigravity-Manager#172",
    "messages>content",
    (direction) => {
      const { contents } = next(direction, { ...TURN, thought: null });
      const call = contents[1].parts.find(({ functionCall }: Any) => functionCall);
      expect(call.thoughtSignature).toBe("skip_thought_signature_validator");
    },
  ],
  [
    "BerriAI/litellm#18570",
    "messages>content",
    (direction) => {
      const { contents } = next(direction, { ...TURN, calls: [] });
      expect(contents[1].parts).toEqual([{ text: "Hello", thoughtSignature: "sig(hm)" }]);
    },
  ],
  [
    "maximhq/bifrost#1479",
    "chat>messages",
    (direction) => {
      const model = "claude-sonnet-4-5";
      const small = convert(direction, askChat([USER], { max_tokens: 1000 }), { model });
      expect(small.body.thinking).toBeUndefined();
      expect(small.conversion.adjusted).toContain("reasoning_effort");
      const low = convert(direction, askChat([USER], { max_tokens: 1500, reasoning_effort: "low" }), {
        model,
      });
      expect(low.body.thinking.budget_tokens).toBe(1024);
    },
  ],
  [
    "maximhq/bifrost#6342",
    "responses>messages",
    (direction) => {
      const thought = "  spaces \n and lines ";
      expect(next(direction, { ...TURN, thought }).messages[1].content[0]).toEqual({
        type: "thinking",
        thinking: thought,
        signature: `sig(${thought})`,
      });
    },
  ],

  [
    "BerriAI/litellm#24176",
    "messages>chat",
    (direction) => {
      const { events } = answer(direction, ask(), chat([{ content: "a" }]));
      expect(events[0].message.usage).toMatchObject({
        input_tokens: 0,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 0,
        cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
        output_tokens: 0,
      });
    },
  ],
  [
    "BerriAI/litellm#15307",
    "messages>chat",
    (direction) => {
      const deltas = [
        callOf(0, "a", '{"path":'),
        callOf(1, "b", '{"path":'),
        more(0, '"1"}'),
        more(1, '"2"}'),
      ];
      const [kept] = keepAnswer("messages", answer(direction, ask(), chat(deltas)).events);
      expect(kept.content.map(({ id, input }: Any) => [id, input.path])).toEqual([
        ["a", "1"],
        ["b", "2"],
      ]);
    },
  ],
  [
    "lich0821/ccNexus#89",
    "messages>chat",
    (direction) => {
      const deltas = [callOf(0, "a", '{"path":"1"}'), callOf(0, "b", '{"path":"2"}')];
      const [kept] = keepAnswer("messages", answer(direction, ask(), chat(deltas)).events);
      expect(kept.content.map(({ id, input }: Any) => [id, input.path])).toEqual([
        ["a", "1"],
        ["b", "2"],
      ]);
      const nameless = [callOf(undefined, "", '{"path":"1"}'), callOf(undefined, "", '{"path":"2"}')];
      const [other] = keepAnswer("messages", answer(direction, ask(), chat(nameless)).events);
      expect(other.content.map(({ input }: Any) => input.path)).toEqual(["1", "2"]);
      expect(new Set(other.content.map(({ id }: Any) => id)).size).toBe(2);
    },
  ],
  [
    "saberjack/SHTUCodeProxy#1",
    "messages>chat",
    (direction) => {
      const together = {
        tool_calls: [...callOf(0, "a", "{}").tool_calls, ...callOf(1, "b", "{}").tool_calls],
      };
      const [both] = keepAnswer("messages", answer(direction, ask(), chat([together])).events);
      expect(both.content.map(({ id }: Any) => id)).toEqual(["a", "b"]);
      const snapshots = [
        callOf(0, "a", '{"path"'),
        callOf(0, "a", '{"path":"12'),
        callOf(0, "a", '{"path":"123"}'),
      ];
      const [one] = keepAnswer("messages", answer(direction, ask(), chat(snapshots)).events);
      expect(one.content).toEqual([{ type: "tool_use", id: "a", name: "Read", input: { path: "123" } }]);
    },
  ],
  [
    "inflaborg/ccrelay#119",
    "messages>chat",
    (direction) => {
      const { events } = answer(direction, ask(), chat([callOf(0, "a", "", "Bash")]));
      expect(events.find(({ delta }) => delta?.type === "input_json_delta")?.delta.partial_json).toBe("{}");
    },
  ],
  [
    "farion1231/cc-switch#2620",
    "messages>chat",
    (direction) => {
      const deltas = [callOf(0, "a", '{"path":'), { content: "aside" }, more(0, '"1"}')];
      const [kept] = keepAnswer("messages", answer(direction, ask(), chat(deltas)).events);
      expect(kept.content).toEqual([
        { type: "tool_use", id: "a", name: "Read", input: { path: "1" } },
        { type: "text", text: "aside" },
      ]);
    },
  ],
  [
    "vllm-project/vllm#56285",
    "responses>chat",
    (direction) => {
      const { events } = answer(direction, askResponses([said("Hi")]), sse(formAnswer("chat", TURN, COUNTS)));
      const named = new Map<number, Set<string>>();
      for (const { output_index: at, item_id, item } of events)
        if (at !== undefined) named.set(at, (named.get(at) ?? new Set()).add(item_id ?? item.id));
      const { output } = events.at(-1).response;
      expect([...named.values()].map((ids) => [...ids])).toEqual(output.map(({ id }: Any) => [id]));
      expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, at) => at));
    },
  ],

  [
    "BerriAI/litellm#41424",
    "messages>responses",
    (direction) => {
      const marked = { type: "text", text: "Hi", cache_control: { type: "ephemeral" } };
      const { input } = convert(direction, ask({}, [{ role: "user", content: [marked] }])).body;
      expect(input.at(-1).content[0].prompt_cache_breakpoint).toEqual({ mode: "explicit" });
      expect(input[0].content[0].prompt_cache_breakpoint).toEqual({ mode: "explicit" });
      expect(convert(direction, ask(), { model: "gpt-5.1" }).text).not.toContain("prompt_cache_breakpoint");
    },
  ],
  [
    "ggml-org/llama.cpp#21793, vllm-project/vllm#36829, ollama/ollama#14918, anthropics/claude-code#68900",
    "messages>chat",
    (direction) => {
      const line = { type: "text", text: "x-anthropic-billing-header: cc_version=1; cch=ab12;" };
      const { messages } = convert(
        direction,
        ask({ system: [line, { type: "text", text: "Be brief." }] }),
      ).body;
      expect(messages[0]).toEqual({ role: "system", content: "Be brief." });
    },
  ],

  [
    "diegosouzapw/OmniRoute#3414",
    "messages>content",
    (direction) => {
      const body = JSON.stringify([{ error: { code: 400, message: "Bad.", status: "INVALID_ARGUMENT" } }]);
      const error = convert(direction, ask()).conversion.convertError(400, Buffer.from(body));
      expect(JSON.parse(error.body).error).toEqual({ type: "invalid_request_error", message: "Bad." });
    },
  ],
  [
    "lidge-jun/opencodex#422, router-for-me/CLIProxyAPI#5857, farion1231/cc-switch#5536",
    "responses>chat",
    (direction) => {
      expect(
        refusal(direction, askResponses([said("Hi"), { type: "compaction", encrypted_content: "x" }])),
      ).toBe("400 input[1]");
      expect(refusal(direction, askResponses([said("Hi"), { type: "compaction_trigger" }]))).toBe(
        "400 input[1]",
      );
    },
  ],

  [
    "caozhiyuan/copilot-api#242, router-for-me/CLIProxyAPI#5753, farion1231/cc-switch#3669",
    "responses>chat",
    (direction) => {
      const tools = [CUSTOM];
      const inputs = [
        { input: PATCH },
        { patch: PATCH },
        { command: PATCH },
        { input: `\`\`\`diff\n${PATCH}\n\`\`\`` },
      ];
      for (const args of inputs) {
        const { events } = answer(
          direction,
          askResponses([said("Hi")], { tools }),
          sse(formAnswer("chat", patch(args), COUNTS)),
        );
        expect(events.at(-1).response.output[0]).toMatchObject({
          type: "custom_tool_call",
          call_id: "c1",
          input: PATCH,
        });
        expect(events.find(({ type }) => type === "response.custom_tool_call_input.done")?.input).toBe(PATCH);
        expect(types(events)).not.toContain("response.function_call_arguments.delta");
      }
    },
  ],
  [
    "BerriAI/litellm#31571, looplj/axonhub#860",
    "responses>messages",
    (direction) => {
      const call = { type: "custom_tool_call", call_id: "c1", name: "apply_patch", input: PATCH };
      const output = { type: "custom_tool_call_output", call_id: "c1", output: "Done" };
      const { tools, messages } = convert(
        direction,
        askResponses([said("Hi"), call, output], { tools: [CUSTOM] }),
      ).body;
      expect(tools[0]).toMatchObject({ name: "apply_patch", input_schema: { required: ["input"] } });
      expect(tools[0].description).toContain("start: x");
      expect(messages[1].content[0]).toMatchObject({ type: "tool_use", input: { input: PATCH } });
      expect(messages[2].content[0]).toMatchObject({ type: "tool_result", content: "Done" });
    },
  ],
  [
    "MetaFARS/codex-relay#37",
    "responses>chat",
    (direction) => {
      const tools = [{ type: "function", name: "apply_patch", parameters: { type: "object" } }];
      const { events } = answer(
        direction,
        askResponses([said("Hi")], { tools }),
        sse(formAnswer("chat", patch({ input: "x" }), COUNTS)),
      );
      expect(events.at(-1).response.output[0]).toMatchObject({
        type: "function_call",
        arguments: '{"input":"x"}',
      });
    },
  ],
  [
    "ggml-org/llama.cpp#20156, lmstudio-ai/lmstudio-bug-tracker#1383, vllm-project/vllm#49493",
    "responses>chat",
    (direction) => {
      const tools = [
        CUSTOM,
        { type: "namespace", name: "mcp", tools: [{ type: "function", name: "list", parameters: null }] },
        { type: "image_generation" },
        { type: "web_search" },
      ];
      const converted = convert(direction, askResponses([said("Hi")], { tools }));
      expect(converted.body.tools.map((tool: Any) => [tool.type, tool.function.name])).toEqual([
        ["function", "apply_patch"],
        ["function", "mcp__list"],
      ]);
      expect(converted.conversion.adjusted).toEqual(["tools:image_generation", "tools:web_search"]);
      const { events } = stream(converted, [
        sse(
          formAnswer("chat", { thought: null, text: null, calls: [{ ...READ, name: "mcp__list" }] }, COUNTS),
        ),
      ]);
      expect(events.at(-1).response.output[0]).toMatchObject({ name: "list", namespace: "mcp" });
    },
  ],
  [
    "claude-code-best/claude-code#177, openai/codex#8638",
    "messages>chat",
    (direction) => {
      const call = { role: "assistant", content: [{ type: "tool_use", id: "c1", name: "Read", input: {} }] };
      const mixed = [
        { type: "text", text: "note" },
        { type: "tool_result", tool_use_id: "c1", content: "ok" },
      ];
      const { messages } = convert(direction, ask({}, [USER, call, { role: "user", content: mixed }])).body;
      expect(messages.slice(-2).map(({ role }: Any) => role)).toEqual(["tool", "user"]);
    },
  ],
  [
    "vercel/ai#8474",
    "chat>messages",
    (direction) => {
      const call = { role: "assistant", content: null, tool_calls: callOf(undefined, "c1", "{}").tool_calls };
      const { messages } = convert(
        direction,
        askChat([
          USER,
          call,
          { role: "user", content: "note" },
          { role: "tool", tool_call_id: "c1", content: "ok" },
        ]),
      ).body;
      expect(types(messages.at(-1).content)).toEqual(["tool_result", "text"]);
    },
  ],
  [
    "anthropics/claude-code#63469",
    "messages>chat",
    (direction) => {
      const messages = [USER, { role: "system", content: "Be quick." }];
      expect(convert(direction, ask({}, messages)).body.messages.at(-1)).toEqual({
        role: "system",
        content: "Be quick.",
      });
      const first = convert(direction, ask({}, messages), { quirks: { systems: "first" } }).body.messages;
      expect(first.filter(({ role }: Any) => role === "system")).toHaveLength(1);
      expect(first.at(-1).content).toContain("<system-reminder>");
    },
  ],
  [
    "router-for-me/CLIProxyAPI#5354",
    "messages>content",
    (direction) => {
      const { contents } = convert(
        direction,
        ask({}, [USER, { role: "system", content: "Be quick." }, USER]),
      ).body;
      expect(contents.map(({ role }: Any) => role)).toEqual(["user"]);
    },
  ],
  [
    "Wei-Shaw/sub2api#1995, icebear0828/codex-proxy#572",
    "messages>responses",
    (direction) => {
      const call = (name: string): Any => {
        const turn = {
          thought: null,
          text: null,
          calls: [{ id: "c", name, args: { path: "x", pages: "" } }],
        };
        return keepAnswer(
          "messages",
          answer(direction, ask(), sse(formAnswer("responses", turn, COUNTS))).events,
        )[0].content[0].input;
      };
      expect(call("Read")).toEqual({ path: "x" });
      expect(call("Bash")).toEqual({ path: "x", pages: "" });
      expect(convert(direction, ask()).body.tools[0].strict).toBe(false);
    },
  ],
  [
    "SaladDay/cc-switch-cli#468",
    "messages>chat",
    (direction) => {
      const tools = [functionOf("Read"), { type: "advisor_20260301", name: "advisor" }];
      const { body, conversion } = convert(direction, ask({ tools }));
      expect(body.tools).toHaveLength(1);
      expect(conversion.adjusted).toEqual(["tools:advisor_20260301"]);
      expect(refusal(direction, ask({ tools, tool_choice: { type: "tool", name: "advisor" } }))).toBe(
        "400 tools",
      );
      expect(refusal(direction, ask({ tools: tools.slice(1) }))).toBe("400 tools");
    },
  ],
  [
    "farion1231/cc-switch#5085",
    "messages>chat",
    (direction) => {
      const content = [
        { type: "server_tool_use", id: "s1", name: "web_search", input: { query: "bun" } },
        {
          type: "web_search_tool_result",
          tool_use_id: "s1",
          content: [{ title: "Bun", url: "https://bun.sh" }],
        },
        { type: "text", text: "Found." },
      ];
      const { messages } = convert(direction, ask({}, [USER, { role: "assistant", content }, USER])).body;
      expect(messages[2].content).toContain("https://bun.sh");
    },
  ],
  [
    "automazeio/vibeproxy#338, router-for-me/CLIProxyAPI#136, #3512",
    "messages>content",
    (direction) => {
      const schema = { propertyNames: { pattern: "x" }, properties: { a: { const: 1, $comment: "c" } } };
      const { tools } = convert(direction, ask({ tools: [functionOf("Read", schema)] })).body;
      expect(tools[0].functionDeclarations[0]).toEqual({
        name: "Read",
        description: "",
        parametersJsonSchema: { type: "object", ...schema },
      });
    },
  ],
  [
    "raine/claude-code-proxy#10, yuegongzi/copilot-api#28, router-for-me/CLIProxyAPI#121, #3132",
    "messages>responses",
    (direction) => {
      const search = {
        type: "web_search_20250305",
        name: "web_search",
        max_uses: 3,
        allowed_domains: ["bun.sh"],
      };
      const converted = convert(
        direction,
        ask({ tools: [search], tool_choice: { type: "tool", name: "web_search" } }),
      );
      expect(converted.body).toMatchObject({
        tools: [{ type: "web_search", filters: { allowed_domains: ["bun.sh"] } }],
        max_tool_calls: 3,
        tool_choice: { type: "web_search" },
      });
      const action = { type: "search", query: "bun", sources: [{ type: "url", url: "https://bun.sh" }] };
      const output = [
        { type: "web_search_call", id: "ws", status: "completed", action },
        { type: "message", content: [{ type: "output_text", text: "x" }] },
      ];
      const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
      const { events } = stream(converted, [
        sse([
          {
            type: "response.completed",
            response: { id: "r", object: "response", status: "completed", output, usage },
          },
        ]),
      ]);
      expect(keepAnswer("messages", events)[0].content.map(({ type }: Any) => type)).toEqual([
        "server_tool_use",
        "web_search_tool_result",
        "text",
      ]);
      expect(events.at(-2).usage.server_tool_use.web_search_requests).toBe(1);
      expect(refusal(direction, ask({ tools: [{ ...search, blocked_domains: ["x.com"] }] }))).toBe(
        "400 tools[].blocked_domains",
      );
      expect(refusal("messages>chat", ask({ tools: [search] }))).toBe("400 tools");
    },
  ],
  [
    "Wei-Shaw/sub2api#3060",
    "messages>responses",
    (direction) => {
      const { body, conversion } = convert(direction, ask(), { quirks: { cap: "none" } });
      expect(body.max_output_tokens).toBeUndefined();
      expect(conversion.adjusted).toEqual(["max_tokens"]);
    },
  ],
  [
    "decolua/9router#1468",
    "messages>chat",
    (direction) => {
      const { body, conversion } = convert(
        direction,
        ask({ context_management: { edits: [{ type: "clear_thinking_20251015" }] } }),
      );
      expect(body.context_management).toBeUndefined();
      expect(conversion.adjusted).toEqual([]);
      expect(refusal(direction, ask({ context_management: { edits: [{ type: "compact_20260112" }] } }))).toBe(
        "400 context_management",
      );
    },
  ],
];

test.each(ROWS.map((row) => [...row] as const))(
  "the bug %s (%s) does not happen here",
  (_bug, direction, check) => check(direction),
);

test("R3: the text of a second choice reaches no client, even if the first choice sent the same text", () => {
  const say = (index: number, content: string): Any => ({ choices: [{ index, delta: { content } }] });
  const events = [say(0, "a"), say(0, "b"), say(0, "same"), say(1, "same"), say(1, "other"), say(0, "c")];
  const { text } = stream(convert("messages>chat", ask()), [sse(events)]);
  expect([...text.matchAll(/"text":"(\w+)"/g)].map(([, piece]) => piece).join("")).toBe("absamec");
});
