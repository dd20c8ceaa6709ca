// An agent in a loop is found by how its conversation ends: N equal pairs of tool call and result.

import { describe, expect, test } from "bun:test";
import { chat } from "../../../src/dialects/formats/chat.ts";
import { content } from "../../../src/dialects/formats/content.ts";
import type { Dialect } from "../../../src/dialects/dialect.ts";
import { messages } from "../../../src/dialects/formats/messages.ts";
import { CallChains } from "../../../src/billing/limits/call-chains.ts";
import { countSameCalls as countScanned, hashCall } from "../../../src/dialects/prompt/same-call.ts";
import { responses } from "../../../src/dialects/formats/responses.ts";
import { type Fixture, hasFixtures, listFixtures, readRequest } from "../../harness/fixtures.ts";

import type { CallChain, LastPairs } from "../../../src/billing/limits/call-chains.ts";
import type { Layout } from "../../../src/dialects/prompt/layouts.ts";
import { scanBody } from "../../harness/prompt.ts";

function countSameCalls(
  bytes: Uint8Array,
  layout: Layout,
  findChain: (responseId: string) => CallChain | null = () => null,
): LastPairs {
  const body = scanBody(bytes, layout);
  return body === null ? { hash: "", count: 0 } : countScanned(body, layout, findChain);
}

interface Step {
  /** What the model says before the call. */
  readonly text?: string;
  readonly input: string;
  readonly output: string;
}

type Value = Record<string, unknown>;

/** One dialect's words for a user's text and for a call with its result. */
interface Words {
  readonly dialect: Dialect;
  readonly list: string;
  readonly user: (text: string) => Value;
  readonly call: (step: Step, id: string) => Value[];
}

const MARK = { cache_control: { type: "ephemeral" } };

const WORDS: readonly Words[] = [
  {
    dialect: messages,
    list: "messages",
    user: (text) => ({ role: "user", content: [{ type: "text", text }] }),
    call: ({ text = "", input, output }, id) => [
      {
        role: "assistant",
        content: [
          { type: "text", text },
          { type: "tool_use", id, name: "Bash", input: { command: input } },
        ],
      },
      {
        role: "user",
        content: [{ tool_use_id: id, type: "tool_result", content: output, is_error: false }],
      },
    ],
  },
  {
    dialect: responses,
    list: "input",
    user: (text) => ({ type: "message", role: "user", content: [{ type: "input_text", text }] }),
    call: ({ text = "", input, output }, id) => [
      { type: "message", role: "assistant", content: [{ type: "output_text", text }] },
      { type: "reasoning", id: `rs_${id}`, summary: [], encrypted_content: `x${id}` },
      { type: "function_call", call_id: id, name: "shell", arguments: JSON.stringify({ input }) },
      { type: "function_call_output", call_id: id, output },
    ],
  },
  {
    dialect: responses,
    list: "input",
    user: (text) => ({ role: "user", content: text }),
    call: ({ input, output }, id) => [
      { type: "custom_tool_call", call_id: id, name: "apply_patch", input },
      { type: "custom_tool_call_output", call_id: id, output: [{ type: "input_text", text: output }] },
    ],
  },
  {
    dialect: chat,
    list: "messages",
    user: (text) => ({ role: "user", content: text }),
    call: ({ text = "", input, output }, id) => [
      {
        content: text,
        role: "assistant",
        tool_calls: [{ id, type: "function", function: { name: "shell", arguments: input } }],
      },
      { content: output, role: "tool", tool_call_id: id },
    ],
  },
  {
    dialect: content,
    list: "contents",
    user: (text) => ({ role: "user", parts: [{ text }] }),
    call: ({ text = "", input, output }, id) => [
      {
        role: "model",
        parts: [
          { text },
          { functionCall: { name: "shell", args: { input } }, thoughtSignature: `sign ${id}` },
        ],
      },
      { role: "user", parts: [{ functionResponse: { name: "shell", response: { output } } }] },
    ],
  },
];

function write({ list }: Words, turns: readonly Value[]): Uint8Array {
  return Buffer.from(JSON.stringify({ model: "m", [list]: turns, stream: true }));
}

const LOOP: Step = { input: "make", output: 'error: "no rule"' };

/** As Codex, Copilot CLI and Gemini CLI write the result of a command. */
const NOISY: ReadonlyArray<(at: number) => string> = [
  (at) => JSON.stringify({ chunk_id: `3c9d${at}0`, wall_time_seconds: 0.0001 * 7 ** at, exit_code: 0 }),
  (at) => `Script completed\nWall time ${at * 11.5} seconds\nOutput:\n${"x".repeat(3000)}`,
  (at) => `Chunk ID: 5f2${at}\nWall time: ${at}.0512 seconds\nProcess exited with code 0\nOutput:\nno rule`,
  (at) => `no rule\n<shellId: ${at * 7} completed with exit code 2>`,
  (at) => `<untrusted_context>\nOutput: no rule\nProcess Group PGID: ${26_330 + at}\n</untrusted_context>`,
];

const countPairs = (...request: Parameters<typeof countSameCalls>): number =>
  countSameCalls(...request).count;

for (const [index, words] of WORDS.entries()) {
  const { dialect, user, call } = words;
  const count = (turns: readonly Value[]): number => countPairs(write(words, turns), dialect.promptLayout);
  const loop = (times: number, change: (step: Step, at: number) => Step = (step) => step): Value[] =>
    Array.from({ length: times }, (_, at) => call(change(LOOP, at), `call_${at}`)).flat();

  describe(`${dialect.name} (${index})`, () => {
    test("counts each repetition, whatever the model says in between", () => {
      for (let times = 0; times < 8; times += 1) {
        const said = loop(times, (step, at) => ({ ...step, text: `Attempt ${at}.` }));
        expect(count([user("Build it."), ...said])).toBe(times);
      }
    });

    test("another input, another result and new text of the user start the count again", () => {
      expect(count([user("a"), ...loop(3), ...call({ ...LOOP, input: "ls" }, "x")])).toBe(1);
      expect(count([user("a"), ...loop(3), ...call({ ...LOOP, output: "done" }, "x")])).toBe(1);
      expect(count([user("a"), ...loop(3), user("Go on."), ...loop(2)])).toBe(2);
      expect(count([user("a"), ...loop(3), user("Go on.")])).toBe(0);
      expect(count([user("a"), ...loop(2), ...call({ ...LOOP, input: "ls" }, "x"), ...loop(2)])).toBe(2);
    });

    test.each(NOISY)("what a tool counts or times in its results makes no difference: %s", (output) => {
      const noisy = (step: Step, at: number): Step => ({ ...step, output: output(at) });
      expect(count([user("a"), ...loop(5, noisy)])).toBe(5);
      const different = (step: Step, at: number): Step => ({ ...step, output: `${output(at)} ${at}` });
      expect(count([user("a"), ...loop(5, different)])).toBe(1);
    });

    test("a retry is the same conversation", () => {
      const turns = [user("a"), ...loop(3)];
      expect([count(turns), count(turns)]).toEqual([3, 3]);
    });

    test("a result without its call is no repetition", () => {
      const results = [0, 1, 2].map((at) => call(LOOP, `call_${at}`).at(-1) ?? {});
      expect(count([user("a"), ...results])).toBe(0);
    });

    test("a broken body has no repetitions, and does not throw", () => {
      const body = write(words, [user("a"), ...loop(3)]);
      for (let end = 0; end < body.length; end += 7)
        expect(countPairs(body.subarray(0, end), dialect.promptLayout)).toBe(0);
      for (const list of [null, 1, "text", {}, [null], [[]], ["text"], [{ role: 1, content: 2, parts: 3 }]])
        expect(countPairs(Buffer.from(JSON.stringify({ [words.list]: list })), dialect.promptLayout)).toBe(0);
    });
  });
}

test("the mark for the cache moves from result to result", () => {
  const pair = (id: string, mark: object) => [
    { role: "assistant", content: [{ type: "tool_use", id, name: "Bash", input: {} }] },
    {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: id, content: [{ type: "text", text: "no", ...mark }] },
        { type: "text", text: `<system-reminder>${id}</system-reminder>` },
      ],
    },
  ];
  const turns = [{ role: "user", content: "go" }, ...pair("a", {}), ...pair("b", {}), ...pair("c", MARK)];
  expect(countPairs(Buffer.from(JSON.stringify({ messages: turns })), messages.promptLayout)).toBe(3);
});

describe("text of the user beside the last result", () => {
  const count = (...texts: string[]): number => {
    const step = (id: string, beside: readonly string[]): Value[] => [
      { role: "assistant", content: [{ type: "tool_use", id, name: "Bash", input: {} }] },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: id, content: "no" },
          ...beside.map((text) => ({ type: "text", text })),
        ],
      },
    ];
    const turns = [{ role: "user", content: "go" }, ...step("a", []), ...step("b", texts)];
    return countPairs(Buffer.from(JSON.stringify({ messages: turns })), messages.promptLayout);
  };
  const REMINDER = "<system-reminder>\nThe todo list is empty.\n</system-reminder>";

  test.each([
    ["alone", ["Go on."]],
    ["after a reminder of the tool", [REMINDER, "Go on."]],
    ["in one text with a reminder", [`${REMINDER}\nGo on.`]],
    ["that names the tag without closing it", ["Write <system-reminder> at the end."]],
    [
      "that Claude Code passes on in a reminder",
      ["<system-reminder>\nThe user sent a new message while you were working:\nStop.</system-reminder>"],
    ],
  ])("%s begins anew", (_, texts) => {
    expect(count(...texts)).toBe(0);
  });

  test.each([
    ["a reminder", [REMINDER]],
    ["several reminders and space between them", [`${REMINDER}\n\n${REMINDER}\n`, REMINDER]],
    ["a notice of a task", ["<task-notification>done</task-notification>"]],
    ["Cline's environment", ["<environment_details>\n12:03\n</environment_details>"]],
    ["an empty text", [""]],
  ])("%s is the tool's own, and the count goes on", (_, texts) => {
    expect(count(...texts)).toBe(2);
  });

  test("a reminder in a message of its own is not the user's either", () => {
    const call = WORDS[0]!.call;
    const turns = [WORDS[0]!.user("go"), ...call(LOOP, "a"), WORDS[0]!.user(REMINDER), ...call(LOOP, "b")];
    expect(countPairs(write(WORDS[0]!, turns), messages.promptLayout)).toBe(2);
  });
});

test("a byte order mark, escapes and any depth of a result change nothing", () => {
  const turns = [WORDS[0]!.user("go"), ...WORDS[0]!.call(LOOP, "a"), ...WORDS[0]!.call(LOOP, "b")];
  const text = JSON.stringify({ messages: turns }).replace('"output"', '"outp\\u0075t"');
  expect(countPairs(Buffer.from(`\ufeff${text}`), messages.promptLayout)).toBe(2);
  const deep = `${"[".repeat(200_000)}${"]".repeat(200_000)}`;
  const nested = text.replaceAll(JSON.stringify(LOOP.output), deep);
  expect(countPairs(Buffer.from(nested), messages.promptLayout)).toBe(2);
});

test("calls in parallel belong to their own results", () => {
  const ids = ["a", "b", "c"];
  const turns = [
    { role: "user", content: "go" },
    {
      role: "assistant",
      content: ids.map((id) => ({ type: "tool_use", id, name: "Read", input: { path: id } })),
    },
    { role: "user", content: ids.map((id) => ({ type: "tool_result", tool_use_id: id, content: "gone" })) },
  ];
  expect(countPairs(Buffer.from(JSON.stringify({ messages: turns })), messages.promptLayout)).toBe(1);
});

const DIALECT_OF: Readonly<Record<Fixture["family"], Dialect>> = {
  anthropic: messages,
  "openai-responses": responses,
  "openai-chat": chat,
  gemini: content,
};

describe.skipIf(!hasFixtures)("recorded sessions", () => {
  test("none is a loop", () => {
    const recorded = listFixtures(({ request_file }) => request_file !== undefined);
    const counts = recorded.map((fixture) => ({
      id: fixture.id,
      count: countPairs(readRequest(fixture), DIALECT_OF[fixture.family].promptLayout),
    }));
    expect(counts.filter(({ count }) => count > 1)).toEqual([]);
    // They are read: many end with the result of a tool.
    expect(counts.filter(({ count }) => count === 1).length).toBeGreaterThan(20);
  });
});

describe("a conversation that the upstream keeps", () => {
  const chains = new CallChains();
  const layout = responses.promptLayout;
  const shell = (input: unknown): string => hashCall("shell", JSON.stringify(input));
  const output = (id: string, text = "no rule"): Value => ({
    type: "function_call_output",
    call_id: id,
    output: text,
  });
  /** A request that continues a response, and the response to it, with one call. Returns the count. */
  const turn = (previous: string | null, id: string, input: readonly Value[], call = shell({})): number => {
    const body = Buffer.from(JSON.stringify({ input, ...(previous && { previous_response_id: previous }) }));
    const pairs = countSameCalls(body, layout, (responseId) => chains.find("k", responseId));
    const listener = chains.follow("k", pairs);
    listener.begin(id);
    listener.add(`call_${id}`, call);
    return pairs.count;
  };

  test("counts each repetition, over any number of requests", () => {
    expect(turn(null, "a0", [{ role: "user", content: "Build it." }])).toBe(0);
    for (let times = 1; times < 9; times += 1)
      expect(turn(`a${times - 1}`, `a${times}`, [output(`call_a${times - 1}`)])).toBe(times);
  });

  test("another result, another input and new text of the user start the count again", () => {
    expect(turn("a3", "b1", [output("call_a3", "done")])).toBe(1);
    expect(turn("b1", "b2", [output("call_b1")])).toBe(1);
    expect(turn("b2", "b3", [output("call_b2")], shell({ other: true }))).toBe(2);
    expect(turn("b3", "b4", [output("call_b3")])).toBe(1);
    expect(turn("b4", "b5", [output("call_b4"), { role: "user", content: "Go on." }])).toBe(0);
    expect(turn("b5", "b6", [output("call_b5")])).toBe(1);
    expect(turn("b6", "b7", [])).toBe(1);
  });

  test("a retry does not count, and two conversations from one response do not mix", () => {
    expect([1, 2, 3].map(() => turn("a2", "c1", [output("call_a2")]))).toEqual([3, 3, 3]);
    expect(turn("a2", "d1", [output("call_a2", "done")])).toBe(1);
    expect(turn("c1", "c2", [output("call_c1")])).toBe(4);
    expect(turn("d1", "d2", [output("call_d1", "done")])).toBe(2);
  });

  test("a call in the request itself is the same as one in a response", () => {
    const call = { type: "function_call", call_id: "x", name: "shell", arguments: "{}" };
    expect(turn("a2", "e1", [output("call_a2"), call, output("x")])).toBe(4);
  });

  test("what is not known begins anew", () => {
    expect(turn("unknown", "f1", [output("call_a2")])).toBe(0);
    expect(turn("a2", "f2", [output("call_of_nobody")])).toBe(0);
    expect(chains.find("another key", "a2")).toBeNull();
  });

  test("an id is read from the request however it is written, and only in its place", () => {
    const read = (text: string, dialect = layout): string[] => {
      const found: string[] = [];
      countSameCalls(Buffer.from(text), dialect, (id) => {
        found.push(id);
        return null;
      });
      return found;
    };
    expect(read('{"previous_response_id":"r\\u0065sp"}')).toEqual(["resp"]);
    expect(read('{"input":[{"previous_response_id":"nested"}]}')).toEqual([]);
    for (const value of ["null", "1", "{}", '["a"]'])
      expect(read(`{"previous_response_id":${value}}`)).toEqual([]);
    expect(read('{"previous_response_id":"a"}', messages.promptLayout)).toEqual([]);
  });
});
