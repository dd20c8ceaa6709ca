import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { type ClientSource, InferredSessions, readClient } from "../../../src/gateway/intake/client.ts";
import { sha256Hex } from "../../../src/lib/secret.ts";

function sourceOf(fields: Record<string, string>, body: Record<string, unknown> = {}): ClientSource {
  return {
    field: (name) => fields[name],
    member: (name) => (Object.hasOwn(body, name) ? JSON.stringify(body[name]) : undefined),
  };
}

const SESSION = "db7f03b5-105b-464a-ba35-e8c230eff292";
const THREAD = "01a20052-12f9-7f13-b729-8a165cd996d0";
const OTHER = "01a20052-1310-74d3-900c-a3531aa1ded7";
const CLAUDE = { "user-agent": "claude-cli/2.1.330 (external, sdk-cli)" };
const CODEX = { "user-agent": "codex_exec/0.169.0 (Debian 12.0.0; x86_64) xterm (codex_exec; 0.169.0)" };
const turn = (ids: Record<string, string>) => ({ "x-codex-turn-metadata": JSON.stringify(ids) });

describe("the sender of a request", () => {
  test.each<[string, Record<string, string>, Record<string, unknown>, ReturnType<typeof readClient>]>([
    [
      "Claude Code names its session in a header",
      { ...CLAUDE, "x-claude-code-session-id": SESSION },
      {},
      { tool: "claude-code", session: SESSION },
    ],
    [
      "a subagent of Claude Code has its own id and its parent's",
      {
        ...CLAUDE,
        "x-claude-code-session-id": SESSION,
        "x-claude-code-agent-id": "a1",
        "x-claude-code-parent-agent-id": "a0",
      },
      {},
      { tool: "claude-code", session: SESSION, agent: "a1", parent: "a0" },
    ],
    [
      "older versions of Claude Code name the session in the body, as JSON text",
      CLAUDE,
      { metadata: { user_id: JSON.stringify({ device_id: "d", account_uuid: "", session_id: SESSION }) } },
      { tool: "claude-code", session: SESSION },
    ],
    [
      "the oldest ones name it at the end of the user id",
      CLAUDE,
      { metadata: { user_id: `user_6b58_account__session_${SESSION}` } },
      { tool: "claude-code", session: SESSION },
    ],
    [
      "a user id without a session is not stored",
      CLAUDE,
      { metadata: { user_id: "somebody" } },
      { tool: "claude-code" },
    ],
    [
      "Codex's main thread has the id of the session",
      { ...CODEX, "session-id": THREAD, "thread-id": THREAD },
      { prompt_cache_key: THREAD },
      { tool: "codex", session: THREAD },
    ],
    [
      "a thread of its own is an agent of Codex",
      { ...CODEX, "session-id": THREAD, "thread-id": OTHER, ...turn({ parent_thread_id: THREAD }) },
      {},
      { tool: "codex", session: THREAD, agent: OTHER },
    ],
    [
      "an agent that another agent of Codex started names it as its parent",
      { ...CODEX, "session-id": THREAD, "thread-id": OTHER, "x-codex-parent-thread-id": SESSION },
      {},
      { tool: "codex", session: THREAD, agent: OTHER, parent: SESSION },
    ],
    [
      "Codex's turn metadata has the ids where the headers lack them",
      { ...CODEX, ...turn({ session_id: THREAD, thread_id: OTHER, parent_thread_id: SESSION }) },
      {},
      { tool: "codex", session: THREAD, agent: OTHER, parent: SESSION },
    ],
    [
      "without them, the key of Codex's prompt cache is its session",
      CODEX,
      { prompt_cache_key: THREAD },
      { tool: "codex", session: THREAD },
    ],
    [
      "opencode names its session",
      { "user-agent": "opencode/1.18.33 ai-sdk/provider-utils/4.0.46", "x-session-affinity": "ses_1" },
      {},
      { tool: "opencode", session: "ses_1" },
    ],
    [
      "a run names the session of a tool that names none",
      { "user-agent": "GeminiCLI/0.61.0/gemini-3 (linux; x64)", "x-gateway-session": "run-1" },
      {},
      { tool: "gemini-cli", session: "run-1" },
    ],
    [
      "a run names a tool whose user agent is that of a library",
      { "user-agent": "anthropic/JS 0.70.0", "x-gateway-tool": "pi" },
      {},
      { tool: "pi" },
    ],
    [
      "a tool that is known by its user agent keeps its name in a run",
      { "user-agent": "GeminiCLI/0.61.0/gemini-3 (linux; x64)", "x-gateway-tool": "gemini" },
      {},
      { tool: "gemini-cli" },
    ],
    [
      "a name that cannot be one of a tool does not count",
      { "user-agent": "anthropic/JS 0.70.0", "x-gateway-tool": "<b>" },
      {},
      { tool: "anthropic" },
    ],
    [
      "a tool's own session comes before that of its run",
      { "user-agent": "opencode/1.18.33", "x-gateway-session": "run-1", "x-session-affinity": "ses_1" },
      {},
      { tool: "opencode", session: "ses_1" },
    ],
    [
      "Gemini CLI names none",
      { "user-agent": "GeminiCLI-tui/0.61.0/gemini-3.1-pro-preview (linux; x64; terminal)" },
      {},
      { tool: "gemini-cli" },
    ],
    [
      "Qwen Code is not taken for Claude Code, whose name it uses",
      { "user-agent": "claude-cli/0.24.4 (external, cli)" },
      {},
      { tool: "qwen-code" },
    ],
    [
      "a session that the user adds to a tool without one counts",
      {
        "user-agent": "GeminiCLI-tui/0.61.0/gemini-3.1-pro-preview (linux; x64; terminal)",
        "x-session-id": "s",
      },
      {},
      { tool: "gemini-cli", session: "s" },
    ],
    [
      "Copilot CLI has the user agent of an SDK, and a header of its own",
      { "user-agent": "Anthropic/JS 0.94.0", "x-initiator": "agent" },
      {},
      { tool: "copilot" },
    ],
    [
      "the first name of a session that has a value counts",
      { "user-agent": "curl/8.5.0", "session-id": "", "conversation-id": "c" },
      {},
      { tool: "curl", session: "c" },
    ],
    ["an SDK is known by its user agent", { "user-agent": "OpenAI/JS 6.49.0" }, {}, { tool: "openai" }],
    [
      "an unknown tool is recorded with its product name and its session",
      { "user-agent": "My-Agent/0.1", "x-session-id": "s" },
      {},
      { tool: "my-agent", session: "s" },
    ],
    [
      "a tool without a version is known by its name",
      { "user-agent": "node-fetch" },
      {},
      { tool: "node-fetch" },
    ],
    ["a key in place of a user agent is not stored", { "user-agent": `sk-${"a".repeat(24)}` }, {}, {}],
    ["a request that shows nothing has no parts", {}, {}, {}],
    ["the label is kept", { "x-gateway-label": "my project" }, {}, { label: "my project" }],
  ])("%s", (_, fields, body, expected) => {
    const { version: _version, ...client } = readClient(sourceOf(fields, body));
    expect(client).toEqual(expected);
  });

  test.each([
    ["claude-cli/2.1.332 (external, cli)", "2.1.332"],
    ["codex_exec/0.169.0 (Linux)", "0.169.0"],
    ["OpenAI/Python v1", undefined],
    ["my-agent/v3.0-beta.1", "3.0-beta.1"],
    [`x/1${"0".repeat(40)}`, undefined],
    ["node-fetch", undefined],
  ])("the version of %s is %s", (agent, version) => {
    expect(readClient(sourceOf({ "user-agent": agent })).version).toBe(version);
  });

  test("a tool that another field names has not the version of its library", () => {
    const fields = { "user-agent": "OpenAI/JS 6.49.0", "x-gateway-tool": "my-agent" };
    expect(readClient(sourceOf(fields))).toMatchObject({ tool: "my-agent", version: undefined });
  });

  test("an id is stored as received or as its hash, and never with anything else in it", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: "binary" }), fc.stringMatching(/^[\w.:/-]{1,200}$/)), (id) => {
        const { session } = readClient(sourceOf({ ...CLAUDE, "x-claude-code-session-id": id }));
        const isPlain = /^[A-Za-z0-9._:/-]{1,128}$/.test(id);
        expect(session).toBe(id === "" ? undefined : isPlain ? id : sha256Hex(id));
      }),
    );
  });

  test("a key in the place of an id is never stored", () => {
    const key = `sk-${"x".repeat(24)}`;
    for (const id of [key, `session:${key}`]) {
      const { session } = readClient(sourceOf({ ...CLAUDE, "x-claude-code-session-id": id }));
      expect(session).toBe(sha256Hex(id));
    }
  });

  test("a label has no control or direction characters and at most 128 characters", () => {
    const label = (text: string) =>
      readClient(sourceOf({ "x-gateway-label": Buffer.from(text).toString("latin1") })).label;
    expect(label("my%20k%C3%BC")).toBe("my kü");
    expect(label("100%")).toBe("100%");
    expect(label("a%1b%5b31mb")).toBe("a[31mb");
    expect(label("a\u001b[31mb\u202ec")).toBe("a[31mbc");
    expect(label("größe \u{1F600}")).toBe("größe \u{1F600}");
    expect(label("\u{1F600}".repeat(200))).toBe("\u{1F600}".repeat(128));
    expect(label(" \u200b ")).toBeUndefined();
  });

  test("hostile bodies and headers are no error", () => {
    for (const user_id of [null, 5, {}, "{", '{"session_id":5}', '{"session_id":""}']) {
      const { tool, session } = readClient(sourceOf(CLAUDE, { metadata: { user_id } }));
      expect([tool, session]).toEqual(["claude-code", undefined]);
    }
    const torn = readClient(sourceOf({ ...CODEX, "x-codex-turn-metadata": "{not json" }));
    const odd = readClient(sourceOf(CODEX, { prompt_cache_key: { a: 1 } }));
    for (const { tool, session } of [torn, odd]) expect([tool, session]).toEqual(["codex", undefined]);
  });
});

describe("a tool that names no session", () => {
  const MINUTE = 60_000;
  const gemini = { tool: "gemini-cli" };

  test("gets an inferred one, which ends after half an hour without a request", () => {
    const sessions = new InferredSessions();
    const first = sessions.complete(gemini, "laptop", 0);
    expect(first).toMatchObject({ tool: "gemini-cli", inferred: true });
    expect(sessions.complete(gemini, "laptop", 29 * MINUTE)).toEqual(first);
    expect(sessions.complete(gemini, "laptop", 59 * MINUTE)).toEqual(first);
    expect(sessions.complete(gemini, "laptop", 90 * MINUTE).session).not.toBe(first.session);
  });

  test("has one for each key, tool and label", () => {
    const sessions = new InferredSessions();
    const ids = [
      sessions.complete(gemini, "laptop", 0),
      sessions.complete(gemini, "ci", 0),
      sessions.complete({ tool: "curl" }, "laptop", 0),
      sessions.complete({ ...gemini, label: "a" }, "laptop", 0),
    ].map(({ session }) => session);
    expect(new Set(ids).size).toBe(4);
  });

  test("gets one also if nothing names the tool", () => {
    const sessions = new InferredSessions();
    const { session } = sessions.complete({}, "k", 0);
    expect(session).toMatch(/^inferred-/);
    expect(sessions.complete({}, "k", 1)).toEqual({ session, inferred: true });
    expect(sessions.complete({}, "other", 1).session).not.toBe(session);
  });

  test("a session that the tool names stays", () => {
    const sessions = new InferredSessions();
    expect(sessions.complete({ tool: "codex", session: "s" }, "k", 0)).toEqual({
      tool: "codex",
      session: "s",
    });
  });

  test("continues after a restart", () => {
    const client = new InferredSessions().complete(gemini, "laptop", 0);
    const time = new Date(0).toISOString();
    const again = new InferredSessions([
      { client: { tool: "codex", session: "s" }, key: "laptop", time },
      { client, key: "laptop", time },
      { client: null, key: "laptop", time },
    ]);
    expect(again.complete(gemini, "laptop", 20 * MINUTE)).toEqual(client);
    expect(again.complete(gemini, "laptop", 51 * MINUTE).session).not.toBe(client.session);
  });

  test("memory is bounded: the least recently used session is forgotten", () => {
    const sessions = new InferredSessions();
    const first = sessions.complete(gemini, "key-0", 0);
    for (let number = 1; number <= 10_000; number += 1) sessions.complete(gemini, `key-${number}`, 1);
    expect(sessions.complete(gemini, "key-0", 2).session).not.toBe(first.session);
  });
});
