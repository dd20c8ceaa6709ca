// Whether the ledger shows who sent a request. Each released tool starts a subagent in a session, and goes on
// before and after a compaction. It also runs into a loop, which is stopped. `REAL_CLIS=FOLDER bun test
// test/e2e/real-clis/sessions.test.ts` prints the tables of docs/decisions/0018-who-sent-it.md.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Identity, clientSchema } from "../../../src/billing/ledger/line.ts";
import type { DemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { type ChildGateway, keyOf, makeConfig, type Platform, startGateway } from "../../harness/gateway.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";
import { type Finished, hasTool, startProgram, TEST_MS, WANTED } from "./installed.ts";
import { PROGRAM } from "../../harness/program.ts";
import { readPrompt, startScriptedModel } from "./scripted-model.ts";

/** Matches the words with which the tools request a summary. */
const COMPACTION = /summary|summariz|snapshot/i;
const UUID = "db7f03b5-105b-464a-ba35-e8c230eff292";

interface Talk {
  readonly tool: string;
  readonly platform: Platform;
  /** The tool's name in the ledger. */
  readonly name: string;
  /** The arguments of each call. One call fills the window, so that the next call begins with a summary. */
  readonly calls: ReadonlyArray<readonly string[]>;
  /** Gemini CLI and pi count tokens themselves, and do not compact calls this short. */
  readonly compacts: boolean;
  /** How the ledger shows subagents. `none`: the tool has none. `hidden`: the tool names neither
   *  subagents nor sessions, so the ledger has a session for each run. */
  readonly subagents: "agents" | "sessions" | "none" | "hidden";
}

const codex = (...words: string[]): string[] => ["exec", "--skip-git-repo-check", ...words];

const TALKS: readonly Talk[] = [
  {
    tool: "claude",
    platform: "messages",
    name: "claude-code",
    calls: [
      ["-p", "--session-id", UUID, "[spawn 2]"],
      ["-p", "--resume", UUID, "Go on."],
      ["-p", "--resume", UUID, "/compact"],
      ["-p", "--resume", UUID, "Go on."],
    ],
    compacts: true,
    subagents: "agents",
  },
  {
    tool: "codex",
    platform: "responses",
    name: "codex",
    calls: [
      codex("[spawn 2]"),
      codex("resume", "--last", "Go on. [full]"),
      codex("resume", "--last", "Go on."),
    ],
    compacts: true,
    subagents: "agents",
  },
  ...(["messages", "responses"] as const).map((platform): Talk => ({
    tool: "opencode",
    platform,
    name: "opencode",
    calls: [
      ["run", "[spawn 1]"],
      ["run", "-c", "Go on. [full]"],
      ["run", "-c", "Go on."],
    ],
    compacts: true,
    subagents: "sessions",
  })),
  {
    tool: "gemini",
    platform: "content",
    name: "gemini-cli",
    calls: [
      ["-y", "-p", "[spawn 1]"],
      ["-y", "--resume", "latest", "-p", "Go on."],
      ["-y", "--resume", "latest", "-p", "Go on again."],
    ],
    compacts: false,
    subagents: "hidden",
  },
  ...(["messages", "responses", "content"] as const).map((platform): Talk => ({
    tool: "pi",
    platform,
    name: "pi",
    calls: [
      ["-p", "hello"],
      ["-p", "-c", "Go on."],
    ],
    compacts: false,
    subagents: platform === "responses" ? "none" : "hidden",
  })),
];

interface Loop {
  readonly tool: string;
  readonly platform: Platform;
  readonly args: readonly string[];
  /** The user's next words in the same session. */
  readonly next: readonly string[];
}

const LOOPS: readonly Loop[] = [
  {
    tool: "claude",
    platform: "messages",
    args: ["-p", "--allowedTools=Bash", "[loop]"],
    next: ["-p", "-c", "--allowedTools=Bash", "Go on."],
  },
  { tool: "codex", platform: "responses", args: codex("[loop]"), next: codex("resume", "--last", "Go on.") },
  ...(["messages", "responses", "content"] as const).flatMap((platform) => [
    { tool: "opencode", platform, args: ["run", "[loop]"], next: ["run", "-c", "Go on."] },
    { tool: "pi", platform, args: ["-p", "[loop]"], next: ["-p", "-c", "Go on."] },
  ]),
  {
    tool: "gemini",
    platform: "content",
    args: ["-y", "-p", "[loop]"],
    next: ["-y", "--resume", "latest", "-p", "Go on."],
  },
];

describe.skipIf(WANTED === "")("real tools' sessions are in the lines of their requests", () => {
  let folder: TempFolder;
  let model: DemoUpstream;
  let gateway: ChildGateway;
  const rows: string[] = [];

  beforeAll(async () => {
    folder = makeTempFolder();
    // Without this file, each run has a temporary home, whose path Gemini CLI writes into its system prompt.
    const gemini = { security: { auth: { selectedType: "gemini-api-key" } } };
    await Bun.write(folder.join("home/.gemini/settings.json"), JSON.stringify(gemini));
    model = startScriptedModel();
    const config = makeConfig(model);
    const keys = config.keys.map((key) => ({ ...key, limits: { same_call: 4 } }));
    gateway = await startGateway({
      config: { ...config, keys },
      env: { XDG_RUNTIME_DIR: folder.path },
      command: PROGRAM,
    });
  }, TEST_MS);

  afterAll(async () => {
    await gateway.stop();
    model.stop();
    folder.remove();
    console.log(rows.join("\n"));
  });

  function runTool(
    { tool, platform }: Pick<Talk, "tool" | "platform">,
    args: readonly string[],
  ): Promise<Finished> {
    const where = ["run", "--yes", "--config", gateway.configPath, "--secret", keyOf(platform)];
    return startProgram([...PROGRAM, ...where, tool, ...args], { folder: folder.path });
  }

  test.each(
    TALKS.filter(({ tool }) => hasTool(tool)).map(
      (talk) => [`${talk.tool} (${talk.platform})`, talk] as const,
    ),
  )(
    "the line of each request has the session that the tool named: %s",
    async (title, talk) => {
      const [line, request] = [gateway.ledger().length, model.requests.length];
      for (const call of talk.calls) {
        const { status, stdout, stderr } = await runTool(talk, call);
        expect({ call, status, text: status === 0 ? "" : stdout + stderr }).toEqual({
          call,
          status: 0,
          text: "",
        });
      }
      const lines = gateway.ledger().slice(line);
      const prompts = model.requests.slice(request).map(readPrompt);
      expect(prompts.some((text) => COMPACTION.test(text))).toBe(talk.compacts);
      const clients = lines.map(({ client }) => clientSchema.parse(client));
      rows.push(`| ${title} | ${clients.length} | ${describeClients(clients)} |`);
      expect(new Set(clients.map(({ tool }) => tool))).toEqual(new Set([talk.name]));
      expect(new Set(clients.map(({ label }) => label))).toEqual(new Set(["work"]));
      expect(clients.filter(({ inferred }) => inferred === true)).toEqual([]);
      expectSubagents(talk, clients);
      // No request of the session may be called a cache miss.
      expect(lines.flatMap(({ cache, id }) => (cache === undefined ? [] : [{ id, cache }]))).toEqual([]);
    },
    TEST_MS,
  );

  test.each(
    LOOPS.filter(({ tool }) => hasTool(tool)).map((loop) => [loop.tool, loop.platform, loop] as const),
  )(
    "a tool in a loop is refused at the fourth equal result and ends, and its next prompt starts a new count: %s (%s)",
    async (tool, platform, { args, next }) => {
      for (const words of [args, next]) {
        const [request, record] = [model.requests.length, gateway.records().length];
        const { wasEnded } = await runTool({ tool, platform }, words);
        const refused = gateway
          .records()
          .slice(record)
          .filter(({ status }) => status === 429);
        const [first, last] = [refused[0], refused.at(-1)].map((each) => Date.parse(String(each?.time)));
        const ms = (last ?? 0) - (first ?? 0);
        rows.push(
          `| ${tool} (${platform}) | ${words === args ? "" : "goes on"} | ${refused.length} | ${ms} ms |`,
        );
        expect({ wasEnded, refusals: refused[0]?.problem }).toEqual({
          wasEnded: false,
          refusals: expect.stringContaining("the same tool call 4 times in a row"),
        });
        const sent = model.requests.slice(request).map(({ json }) => JSON.stringify(json));
        expect(sent.filter((text) => text.includes("[loop]") && text.includes('"tools":')).length).toBe(4);
      }
    },
    TEST_MS,
  );
});

function expectSubagents({ subagents, calls }: Talk, clients: readonly Identity[]): void {
  const ids = new Set(clients.map(({ session }) => session));
  const own = clients.filter(({ agent, parent }) => agent === undefined && parent === undefined);
  const [main] = new Set(own.map(({ session }) => session));
  if (subagents === "hidden")
    return expect([...ids]).toEqual(calls.map(() => expect.stringMatching(/^run-/)));
  if (subagents === "none") return expect([...ids]).toEqual([main]);
  if (subagents === "sessions") {
    const children = clients.filter(({ parent }) => parent !== undefined);
    expect(children.length).toBeGreaterThan(0);
    expect(new Set(children.map(({ parent }) => parent))).toEqual(new Set([main]));
    return;
  }
  expect([...ids]).toEqual([main]);
  const agents = new Map(
    clients.flatMap(({ agent, parent }) => (agent === undefined ? [] : [[agent, parent]])),
  );
  expect(agents.size).toBe(2);
  const [first, second] = agents.keys();
  expect([...agents.values()]).toEqual([undefined, first]);
  expect(second).not.toBe(first);
}

function describeClients(clients: readonly Identity[]): string {
  const exact = clients.filter(({ inferred }) => inferred !== true).length;
  const sessions = new Set(clients.map(({ session }) => session)).size;
  const agents = new Set(clients.flatMap(({ agent }) => agent ?? [])).size;
  const parents = clients.filter(({ parent }) => parent !== undefined).length;
  return `${exact} exact, ${clients.length - exact} inferred | ${sessions} | ${agents} | ${parents}`;
}
