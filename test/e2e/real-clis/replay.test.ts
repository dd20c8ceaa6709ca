// Each released agent runs once while the gateway records, and three times from the recording. The output
// must be the same. Each run has another home and another working folder, some with blanks in their paths.
// `REAL_CLIS=FOLDER bun test test/e2e/real-clis/replay.test.ts` runs this.

import { describe, expect, test } from "bun:test";
import { startGateway } from "../../harness/gateway.ts";
import { PROGRAM } from "../../harness/program.ts";
import { makeTempFolder } from "../../harness/temp.ts";
import { startReplay } from "../../harness/upstreams/recording.ts";
import { hasTool, startProgram, TEST_MS, WANTED } from "./installed.ts";
import { startScriptedModel } from "./scripted-model.ts";

const SECRET = "sk-test-recorded";

const AGENTS = [
  { tool: "claude", platform: "messages", maker: "anthropic", args: ["-p"] },
  { tool: "codex", platform: "responses", maker: "openai", args: ["exec", "--skip-git-repo-check"] },
  { tool: "gemini", platform: "content", maker: "google", args: ["-y", "-p"] },
] as const;

/** Claude Code's agents in the background end at a different moment in each run. */
const NO_RACE = { CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: "1" };

async function run({ tool, args }: (typeof AGENTS)[number], task: string, user: string, where: string[]) {
  using folder = makeTempFolder();
  const command = [...PROGRAM, "run", "--yes", "--secret", SECRET, ...where, tool, ...args, task];
  return await startProgram(command, { folder: folder.join(user), env: NO_RACE });
}

describe.skipIf(WANTED === "")("released agents do the same when they are replayed", () => {
  const all = AGENTS.filter(({ tool }) => hasTool(tool));
  const cases = ["Say hello.", "[spawn 2]"].flatMap((task) =>
    all.map((agent) => [agent.tool, task, agent] as const),
  );

  test.each(cases)(
    "%s with the task %s prints in each of three replays what it printed in the recorded run",
    async (_, task, agent) => {
      const { platform, maker } = agent;
      using folder = makeTempFolder();
      const upstream = startScriptedModel();
      const far = {
        platform,
        base_url: upstream.url,
        credential: "credential-of-far",
        price_provider: maker,
      };
      const config = {
        channels: { far },
        groups: { g: { platform, channels: ["far"] } },
        keys: [{ name: "k", group: "g", secret: SECRET, record: "agent" }],
      };
      const gateway = await startGateway({ config, folder });
      const first = await run(agent, task, "ann lee", ["--config", gateway.configPath]);
      expect(first).toMatchObject({ status: 0, wasEnded: false });
      gateway.signal("SIGTERM");
      await gateway.exited;
      upstream.stop();
      for (const user of ["bob", "ann lee", "c d e"]) {
        const replay = await startReplay(folder.join("ledger.jsonl.recordings/agent"));
        const done = await run(agent, task, user, ["--url", replay.url]);
        const { status, printed } = await replay.stop();
        expect(printed).toContain("not in the recording: 0");
        expect([done.status, done.stdout, status]).toEqual([0, first.stdout, 0]);
      }
    },
    TEST_MS,
  );
});
