// Released agents run once with recording, and three times offline: with the same output and the same amounts.
// `REAL_CLIS=FOLDER bun test test/e2e/real-clis/replay.test.ts`.

import { describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { DialectName } from "../../../src/dialects/dialect.ts";
import { startGateway } from "../../harness/gateway.ts";
import { PROGRAM } from "../../harness/program.ts";
import { makeTempFolder, readLedger, type TempFolder } from "../../harness/temp.ts";
import { startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { type Replaying, startReplay } from "../../harness/upstreams/recording.ts";
import { startScriptedUpstream } from "../converted/scripted-upstream.ts";
import { ScriptedTask, writeFiles } from "../converted/task.ts";
import { type Finished, hasTool, startProgram, TEST_MS, WANTED } from "./installed.ts";

const SECRET = "sk-test-recorded";

interface Agent {
  readonly tool: string;
  readonly dialect: DialectName;
  readonly args: readonly string[];
}

const AGENTS: readonly Agent[] = [
  { tool: "claude", dialect: "messages", args: ["-p", "--allowedTools=Read,Edit,Bash"] },
  {
    tool: "codex",
    dialect: "responses",
    args: ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"],
  },
  { tool: "gemini", dialect: "content", args: ["-y", "-p"] },
];

const PRICED_AS = { messages: "anthropic", responses: "openai", chat: "openai", content: "google" };

/** The agent's home is new each time. The folder of its work is not: the model's calls name it. */
function clear(folder: TempFolder): void {
  for (const name of ["home", "work"]) rmSync(folder.join(name), { recursive: true, force: true });
  mkdirSync(folder.join("work"), { recursive: true });
  writeFiles(folder.join("work"));
}

interface Ran {
  readonly done: Finished;
  /** What the agent has made of the file. */
  readonly file: string;
}

async function run(
  { tool, args }: Agent,
  folder: TempFolder,
  where: readonly string[],
  task: string,
): Promise<Ran> {
  clear(folder);
  const done = await startProgram([...PROGRAM, "run", "--yes", ...where, tool, ...args, task], {
    folder: folder.path,
  });
  return { done, file: readFileSync(folder.join("work/a.txt"), "utf8") };
}

const amountsOf = (lines: readonly Record<string, unknown>[]) =>
  lines.map(({ model, usage, official_usd }) => JSON.stringify({ model, usage, official_usd })).toSorted();

async function record(agent: Agent, folder: TempFolder, url: string, task: string) {
  const { dialect } = agent;
  const gateway = await startGateway({
    config: {
      channels: {
        far: {
          platform: dialect,
          base_url: url,
          credential: "credential-of-far",
          price_provider: PRICED_AS[dialect],
        },
      },
      groups: { g: { platform: dialect, channels: ["far"] } },
      keys: [{ name: "k", group: "g", secret: SECRET }],
    },
    folder,
    env: { XDG_RUNTIME_DIR: folder.path },
  });
  const where = ["--config", gateway.configPath, "--url", gateway.url, "--secret", SECRET];
  const ran = await run(agent, folder, [...where, "--record", "agent"], task);
  gateway.signal("SIGTERM");
  await gateway.exited;
  const lines = gateway.ledger();
  return { ran, lines, recording: folder.join("ledger.jsonl.recordings/agent") };
}

async function replayOnce(agent: Agent, folder: TempFolder, recording: string, task: string, ledger: string) {
  const replay: Replaying = await startReplay(recording, "--ledger", ledger);
  const where = ["--url", replay.url, "--secret", "any-key"];
  const ran = await run(agent, folder, where, task);
  return { ran, ...(await replay.stop()), lines: readLedger(ledger) };
}

async function compare(agent: Agent, folder: TempFolder, url: string, task: string): Promise<void> {
  const { ran, lines, recording } = await record(agent, folder, url, task);
  expect(ran.done).toMatchObject({ status: 0, wasEnded: false });
  for (const round of [1, 2, 3]) {
    const again = await replayOnce(agent, folder, recording, task, folder.join(`${round}.jsonl`));
    expect(again.ran.done.stdout).toBe(ran.done.stdout);
    expect(again.ran.file).toBe(ran.file);
    expect(again.printed).toContain("not in the recording: 0");
    expect(again.status).toBe(0);
    expect(amountsOf(again.lines)).toEqual(amountsOf(lines));
    for (const line of again.lines) expect(line).toMatchObject({ replayed: true, charge_usd: "0" });
  }
}

describe.skipIf(WANTED === "")("released agents, recorded and replayed", () => {
  const all = AGENTS.filter(({ tool }) => hasTool(tool)).map((agent) => [agent.tool, agent] as const);

  const compareWith = (
    agent: Agent,
    folder: TempFolder,
    upstream: { url: string; stop(): void },
    task: string,
  ) => compare(agent, folder, upstream.url, task).finally(() => upstream.stop());

  test.each(all)(
    "%s says hello to the demo",
    async (_, agent) => {
      using folder = makeTempFolder();
      await compareWith(agent, folder, startDemoUpstream(), "Say hello.");
    },
    TEST_MS,
  );

  test.each(all)(
    "%s reads, edits and runs a command that fails, with a refused request and a cut answer between",
    async (_, agent) => {
      using folder = makeTempFolder();
      const script = new ScriptedTask(agent.dialect, join(folder.path, "work"));
      const upstream = startScriptedUpstream(agent.dialect, (asked) => script.play(asked));
      await compareWith(agent, folder, upstream, "Change the first number.");
    },
    TEST_MS,
  );
});
