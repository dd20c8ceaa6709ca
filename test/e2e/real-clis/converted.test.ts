// Each released agent does a task of many turns on models of other providers. The upstream is as strict as
// the real provider. `REAL_CLIS=FOLDER bun test test/e2e/real-clis/converted.test.ts` prints how much of each
// turn's input the next turn repeats.

import { afterAll, describe, expect, onTestFinished, test } from "bun:test";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DIALECT_NAMES, type DialectName } from "../../../src/dialects/dialect.ts";
import { type ChildGateway, startGateway } from "../../harness/gateway.ts";
import { PROGRAM } from "../../harness/program.ts";
import { checkPublishedTypes } from "../../bridges/published-types.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";
import { type ScriptedUpstream, startScriptedUpstream } from "../converted/scripted-upstream.ts";
import { ScriptedTask, SITTINGS, writeFiles } from "../converted/task.ts";
import { type Front, startFront } from "../converted/front.ts";
import { judgeMoney, judgeSession } from "../converted/verdict.ts";
import { type Finished, hasTool, startProgram, TEST_MS, WANTED } from "./installed.ts";

const UUID = "db7f03b5-105b-464a-ba35-e8c230eff292";

interface Agent {
  readonly tool: string;
  readonly client: DialectName;
  /** The arguments of the first sitting, and of each later sitting. */
  readonly first: readonly string[];
  readonly next: readonly string[];
  /** Asks for the compaction of the conversation. Otherwise the agent begins it when its window is full. */
  readonly compact?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The window is full before the last turn of a run. Gemini CLI forgets the size when a run ends. */
  readonly isFullEarly?: true;
  /** Files in the user's home. */
  readonly files?: (url: string) => Readonly<Record<string, unknown>>;
  /** The agent knows no model by itself. */
  readonly needsModel?: true;
  /** `gateway run` cannot make the tool speak this dialect, so `files` has the gateway's address. */
  readonly isStartedAlone?: true;
}

const SECRET = "sk-test-converted";
const TASK = "Change the first number.";
const GO_ON = "Go on.";

const codex = (model: readonly string[]): Pick<Agent, "first" | "next"> => {
  const exec = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", ...model];
  return { first: [...exec, TASK], next: [...exec, "resume", "--last", GO_ON] };
};

const CLAUDE = ["-p", "--allowedTools=Read,Edit,Bash"];

const AGENTS: readonly Agent[] = [
  {
    tool: "claude",
    client: "messages",
    first: [...CLAUDE, "--session-id", UUID, TASK],
    next: [...CLAUDE, "--resume", UUID, GO_ON],
    compact: [...CLAUDE, "--resume", UUID, "/compact"],
    env: { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", DISABLE_TELEMETRY: "1", DISABLE_AUTOUPDATER: "1" },
  },
  { tool: "codex", client: "responses", ...codex([]) },
  { tool: "codex", client: "responses", ...codex(["-m", "gpt-5.5-terra"]) },
  ...(["messages", "responses", "content"] as const).flatMap((client): Agent[] => [
    { tool: "opencode", client, first: ["run", TASK], next: ["run", "-c", GO_ON] },
    {
      tool: "pi",
      client,
      first: ["-p", TASK],
      next: ["-p", "-c", GO_ON],
      needsModel: true,
      // Otherwise, pi would not compact a conversation this short.
      files: () => ({ ".pi/agent/settings.json": { compaction: { keepRecentTokens: 50 } } }),
    },
  ]),
  {
    tool: "opencode",
    client: "chat",
    first: ["run", TASK],
    next: ["run", "-c", GO_ON],
    files: (url) => ({ ".config/opencode/opencode.json": describeChatProvider(url) }),
    isStartedAlone: true,
  },
  {
    tool: "gemini",
    client: "content",
    first: ["-y", "-p", TASK],
    next: ["-y", "--resume", "latest", "-p", GO_ON],
    isFullEarly: true,
    files: () => ({ ".gemini/settings.json": { security: { auth: { selectedType: "gemini-api-key" } } } }),
  },
];

function describeChatProvider(url: string): unknown {
  const model = {
    tool_call: true,
    limit: { context: 200_000, output: 8000 },
    modalities: { input: ["text", "image"], output: ["text"] },
  };
  const options = { baseURL: `${url}/v1`, apiKey: SECRET };
  const provider = { far: { npm: "@ai-sdk/openai-compatible", options, models: { asked: model } } };
  return { provider, model: "far/asked", small_model: "far/asked", enabled_providers: ["far"] };
}

const UPSTREAMS: readonly DialectName[] = DIALECT_NAMES;
const MODEL_OF: Readonly<Record<DialectName, string>> = {
  messages: "claude-opus-4-8",
  responses: "gpt-5.6",
  chat: "qwen3-coder",
  content: "gemini-3.5-pro",
};

const only = process.env["DIRECTION"] ?? "";
const CASES = AGENTS.filter(({ tool }) => hasTool(tool)).flatMap((agent) =>
  UPSTREAMS.filter((upstream) => isConverted(agent, upstream)).flatMap((upstream) => {
    const model = agent.first[agent.first.indexOf("-m") + 1];
    const title = `${agent.tool}${agent.first.includes("-m") ? ` ${model}` : ""}: ${agent.client} → ${upstream}`;
    return title.includes(only) ? [[title, agent, upstream] as const] : [];
  }),
);

/** On chat channels of a responses group, opencode and pi speak chat. Chat → responses is not tested. */
function isConverted({ client, tool }: Agent, upstream: DialectName): boolean {
  const pair = `${client} → ${upstream}`;
  const isSpoken = pair === "responses → chat" && ["opencode", "pi"].includes(tool);
  return upstream !== client && pair !== "chat → responses" && !isSpoken;
}

interface World {
  readonly folder: TempFolder;
  readonly task: ScriptedTask;
  readonly upstream: ScriptedUpstream;
  readonly gateway: ChildGateway;
  readonly front: Front;
}

async function openWorld(
  { client, files, isFullEarly, needsModel }: Agent,
  dialect: DialectName,
): Promise<World> {
  const folder = makeTempFolder();
  const work = folder.join("work");
  mkdirSync(work, { recursive: true });
  writeFiles(work);
  const task = new ScriptedTask(dialect, work, isFullEarly);
  const upstream = startScriptedUpstream(dialect, (asked) => task.play(asked));
  const channel = {
    platform: dialect,
    base_url: upstream.url,
    credential: "credential-of-far",
    aliases: { [needsModel === true ? "asked" : "*"]: MODEL_OF[dialect] },
    price_provider: "openai",
  };
  const gateway = await startGateway({
    config: {
      channels: { far: channel },
      groups: { g: { platform: client === "chat" ? "responses" : client, channels: ["far"], convert: true } },
      keys: [{ name: "k", group: "g", secret: SECRET }],
    },
    env: { XDG_RUNTIME_DIR: folder.path },
    command: PROGRAM,
  });
  const front = startFront(() => gateway.url);
  for (const [name, content] of Object.entries(files?.(front.url) ?? {}))
    await Bun.write(folder.join("home", name), JSON.stringify(content));
  return { folder, task, upstream, gateway, front };
}

function runAgent(agent: Agent, world: World, args: readonly string[]): Promise<Finished> {
  const { gateway, front, folder, task } = world;
  const where = ["run", "--yes", "--url", front.url, "--config", gateway.configPath, "--secret", SECRET];
  const command = agent.isStartedAlone === true ? [] : [...PROGRAM, ...where];
  return startProgram([...command, agent.tool, ...args], {
    folder: folder.path,
    env: agent.env ?? {},
    // The user cancels a turn that does not go on.
    ...(task.isStalled ? {} : { stopped: task.stalled }),
  });
}

/** Runs until the sitting has ended: some agents give up at an error, and their user goes on. */
async function playSitting(agent: Agent, world: World, at: number): Promise<void> {
  const { task } = world;
  for (let tries = 0; task.sitting === at && tries < 4; tries += 1) {
    const args = at === 0 && tries === 0 ? agent.first : agent.next;
    const done = await runAgent(agent, world, args);
    if (task.sitting === at)
      console.log(`again: ${agent.tool} ended with ${done.status}\n${done.stderr.slice(-300)}`);
  }
  // Some agents go on by themselves after a compaction.
  expect(task.sitting).toBeGreaterThan(at);
}

const rows: string[] = [];

describe.skipIf(WANTED === "")("released agents work on models of other providers", () => {
  afterAll(() => console.log(rows.join("\n")));

  test.each(CASES)(
    "a task of many turns works with %s",
    async (title, agent, dialect) => {
      const world = await openWorld(agent, dialect);
      const { task, upstream, folder, gateway, front } = world;
      onTestFinished(() => front.stop());
      onTestFinished(() => upstream.stop());
      onTestFinished(() => gateway.stop());
      onTestFinished(() => folder.remove());
      for (const at of SITTINGS.keys()) {
        if (at === 2 && agent.compact !== undefined) await runAgent(agent, world, agent.compact);
        await playSitting(agent, world, at);
      }
      const share = judgeSession(upstream, task, dialect);
      rows.push(`| ${title} | ${upstream.asked.length} | ${(100 * share).toFixed(1)} % |`);
      rows.push(...new Set(front.exchanged.map(({ adjusted }) => `  ${adjusted}`)));
      judgeMoney(agent.client, front.exchanged, gateway.ledger());
      expect(readFileSync(join(folder.path, "work/a.txt"), "utf8")).toBe("two\n");
      expect(await checkPublishedTypes({ [dialect]: upstream.asked.map(({ body }) => body) })).toBe("");
    },
    TEST_MS,
  );
});
