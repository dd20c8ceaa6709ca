// Runs the released tools through the gateway and without it. To the last token, their logs must agree with
// the simulated upstream's reports and with the ledger. Requests that a log lacks are listed with the reason.
// `REAL_CLIS=FOLDER bun test test/e2e/real-clis/history.test.ts` prints the table of docs/history.md.

import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { joinHistory, type OurLine } from "../../../src/billing/history/join.ts";
import { readHistory } from "../../../src/billing/history/read-history.ts";
import { listOurLines } from "../../../src/billing/history/report.ts";
import { Table } from "../../../src/billing/store/open.ts";
import type { LoggingTool } from "../../../src/billing/history/entry.ts";
import {
  READ_KINDS,
  countTokens,
  OUTPUT_KINDS,
  PROMPT_KINDS,
  type Usage,
} from "../../../src/billing/usage.ts";
import { readLoggedUsage } from "../../../src/dialects/meters/logged.ts";
import { type ChildGateway, keyOf, makeConfig, type Platform, startGateway } from "../../harness/gateway.ts";
import { PROGRAM } from "../../harness/program.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";
import type { ReceivedRequest } from "../../harness/upstreams/demo-upstream.ts";
import { subtract } from "./compare.ts";
import { hasTool, startProgram, TEST_MS, WANTED } from "./installed.ts";
import { type Reported, type ScriptedModel, startScriptedModel } from "./scripted-model.ts";

/** The ids of the session through the gateway, and of the session without it. */
const UUID = "db7f03b5-105b-464a-ba35-e8c230eff292";
const OTHER_UUID = "5c1d6c0e-3f2a-4b7e-9a51-0d6f4b1c2e3f";

interface Scene {
  readonly tool: string;
  readonly name: LoggingTool;
  readonly platform: Platform;
  /** The arguments of each call. Those with `[slow]` are interrupted when the upstream has begun to answer. */
  readonly calls: ReadonlyArray<readonly string[]>;
  /** The settings with which the tool goes straight to the upstream. */
  readonly direct: (url: string) => {
    readonly env: Readonly<Record<string, string>>;
    readonly args?: readonly string[];
  };
  /** Finds the ids of threads. `LAST` stands for the last id, which is that of the newest thread. */
  readonly findLast?: (home: string) => readonly string[];
  /** Requests without an entry in the log, by prompt and model. */
  readonly unlogged: ReadonlyArray<readonly [reason: string, prompt: RegExp, model?: RegExp]>;
  /** Gemini CLI 0.61: the next session's start removes the log of a session that was resumed. */
  readonly removesLogs?: true;
}

/** More bytes than the head and the first event of an answer have. */
const BEGUN_BYTES = 2000;
const GEMINI_SETTINGS = JSON.stringify({ security: { auth: { selectedType: "gemini-api-key" } } });
const STOPPED = ["a stopped answer", /\[slow\]/] as const;
const FAILED = ["an answer that broke off", /\[cut\]/] as const;
/** Stands for the id of the last thread, which `codex fork` needs. */
const LAST = "LAST";
const codex = (...words: string[]): string[] => ["exec", "--skip-git-repo-check", ...words];

/** Lists the logs, sorted by their names, which begin with their times. */
function listLogs(home: string, pattern: string): string[] {
  return [...new Bun.Glob(`**/${pattern}`).scanSync({ cwd: home, dot: true, absolute: true })].toSorted();
}

const SCENES: readonly Scene[] = [
  {
    tool: "claude",
    name: "claude-code",
    platform: "messages",
    calls: [
      ["-p", "--session-id", UUID, "[spawn 2]"],
      ["-p", "--resume", UUID, "Go on."],
      ["-p", "--resume", UUID, "--fork-session", "And a fork."],
      ["-p", "--resume", UUID, "/compact"],
      ["-p", "--resume", UUID, "Go on."],
      ["-p", "--resume", UUID, "[slow] please"],
      ["-p", "--resume", UUID, "After it was stopped."],
    ],
    direct: (url) => ({ env: { ANTHROPIC_BASE_URL: url, ANTHROPIC_AUTH_TOKEN: "invented" } }),
    unlogged: [["a summary", /^CRITICAL: Respond with TEXT ONLY/], ["a title", /^<session>/], STOPPED],
  },
  {
    tool: "codex",
    name: "codex",
    platform: "responses",
    calls: [
      codex("[spawn 2]"),
      codex("resume", "--last", "Go on. [full]"),
      codex("resume", "--last", "Go on."),
      codex("fork", LAST, "And a fork."),
      codex("resume", "--last", "[slow] please"),
      codex("resume", "--last", "[cut] please"),
      codex("resume", "--last", "After it was stopped."),
    ],
    direct: (url) => ({
      env: { INVENTED: "invented" },
      args: ["name=direct", `base_url=${url}/v1`, "wire_api=responses", "env_key=INVENTED"]
        .flatMap((each) => ["-c", `model_providers.direct.${each}`])
        .concat("-c", "model_provider=direct"),
    }),
    unlogged: [STOPPED, FAILED],
    // The ids of the user's own threads, without those of subagents.
    findLast: (home) =>
      listLogs(home, "rollout-*.jsonl").flatMap((file) => {
        const { payload } = JSON.parse(readFileSync(file, "utf8").split("\n")[0] ?? "");
        return typeof payload.source === "string" ? [payload.id] : [];
      }),
  },
  {
    tool: "gemini",
    name: "gemini-cli",
    platform: "content",
    calls: [
      ["-y", "-p", "[spawn 1]"],
      ["-y", "--resume", "latest", "-p", "Go on. [spawn 1] [full]"],
      ["-y", "--resume", "latest", "-p", "[slow] please"],
      ["-y", "--resume", "latest", "-p", "After it was stopped."],
    ],
    direct: (url) => ({
      env: { GOOGLE_GEMINI_BASE_URL: url, GEMINI_API_KEY: "invented", GEMINI_CLI_TRUST_WORKSPACE: "true" },
    }),
    unlogged: [["a request of its router", /./s, /flash-lite/], ["a summary", /state_snapshot/], STOPPED],
    removesLogs: true,
  },
  {
    tool: "opencode",
    name: "opencode",
    platform: "messages",
    calls: [
      ["run", "[spawn 1]"],
      ["run", "-c", "Go on. [full]"],
      ["run", "-c", "--fork", "And a fork."],
      ["run", "-c", "[slow] please"],
      ["run", "-c", "After it was stopped."],
    ],
    direct: (url) => ({
      env: {
        OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
        OPENCODE_CONFIG_CONTENT: JSON.stringify({
          model: "anthropic/claude-sonnet-4-5",
          small_model: "anthropic/claude-haiku-4-5",
          enabled_providers: ["anthropic"],
          provider: {
            anthropic: {
              options: { baseURL: `${url}/v1`, apiKey: "invented" },
              models: { "claude-sonnet-4-5": {}, "claude-haiku-4-5": {} },
            },
          },
        }),
      },
    }),
    unlogged: [["a title", /./s, /haiku/], STOPPED],
  },
];

/** Returns the counts as a text: input, read from the cache, output. */
function countReported({ counts }: Reported): string {
  const { input, cacheRead, cacheWrite5m, cacheWrite1h, output } = counts;
  return [input + cacheRead + cacheWrite5m + cacheWrite1h, cacheRead, output].join(" ");
}

function countUsage(usage: Usage): string {
  return [PROMPT_KINDS, READ_KINDS, OUTPUT_KINDS].map((kinds) => countTokens(usage, kinds)).join(" ");
}

describe.skipIf(WANTED === "")("the logs of real tools agree with the ledger", () => {
  const rows: string[] = [];
  let model: ScriptedModel;

  beforeAll(() => {
    model = startScriptedModel();
  });

  afterAll(() => {
    model.stop();
    console.log(rows.join("\n"));
  });

  /** Waits until a long answer to a request with `[slow]` has begun. A tool also gets many short answers. */
  async function waitForSlow(from: number): Promise<void> {
    const isSlow = (request: ReceivedRequest): boolean =>
      JSON.stringify(request.json).includes("[slow]") && request.sentBytes() >= BEGUN_BYTES;
    while (!model.requests.slice(from).some(isSlow)) await Bun.sleep(20);
  }

  async function runScene(
    scene: Scene,
    folder: TempFolder,
    gateway: ChildGateway | null,
  ): Promise<readonly Reported[]> {
    const first = model.reported.length;
    const { env, args = [] } = scene.direct(model.url);
    for (const words of scene.calls) {
      const call = words.map((each) => {
        if (each === LAST) return scene.findLast?.(join(folder.path, "home")).at(-1) ?? "";
        return gateway === null && each === UUID ? OTHER_UUID : each;
      });
      const [word = "", ...others] = call;
      const direct = [scene.tool, ...(scene.tool === "codex" ? [word, ...args, ...others] : call)];
      const through = [
        "run",
        "--yes",
        "--config",
        gateway?.configPath ?? "",
        "--secret",
        keyOf(scene.platform),
        scene.tool,
        ...call,
      ];
      const isSlow = call.some((each) => each.includes("[slow]"));
      await startProgram(gateway === null ? direct : [...PROGRAM, ...through], {
        folder: folder.path,
        ...(gateway === null && { env }),
        ...(isSlow && { stopped: waitForSlow(model.requests.length) }),
      });
    }
    return model.reported.slice(first);
  }

  function explain({ unlogged }: Scene, { prompt, model: name }: Reported): string | null {
    const found = unlogged.find(([, text, models]) => text.test(prompt) && (models?.test(name) ?? true));
    return found?.[0] ?? null;
  }

  function compare({ name }: Scene, home: string, lines: readonly OurLine[]) {
    const { entries } = readHistory({ tools: [name], env: { HOME: home }, usageOf: readLoggedUsage });
    const own = lines.filter(({ client }) => client?.tool === name);
    return joinHistory([...entries.values()], own);
  }

  /** Returns what the upstream reported and the log does not list. */
  function expectLogged(scene: Scene, home: string, reported: readonly Reported[]): readonly Reported[] {
    const history = readHistory({ tools: [scene.name], env: { HOME: home }, usageOf: readLoggedUsage });
    const entries = [...history.entries.values()];
    const listed = entries.map(({ model: name, usage }) => `${name} ${countUsage(usage)}`);
    const all = reported.map((each) => `${each.model} ${countReported(each)}`);
    const unexplained = subtract(all, listed);
    const hidden = reported.filter((each) => {
      const index = unexplained.indexOf(`${each.model} ${countReported(each)}`);
      if (index >= 0) unexplained.splice(index, 1);
      return index >= 0;
    });
    expect({ damaged: history.damaged, unread: history.unread, invented: subtract(listed, all) }).toEqual({
      damaged: 0,
      unread: [],
      invented: [],
    });
    expect(hidden.filter((each) => explain(scene, each) === null)).toEqual([]);
    expect(listed).not.toEqual([]);
    return hidden;
  }

  test.each(SCENES.filter(({ tool }) => hasTool(tool)).map((scene) => [scene.tool, scene] as const))(
    "%s: the log agrees with the upstream, and with the ledger if the requests went through the gateway",
    async (tool, scene) => {
      using folder = makeTempFolder();
      const home = join(folder.path, "home");
      await Bun.write(join(home, ".gemini/settings.json"), GEMINI_SETTINGS);
      const gateway = await startGateway({
        config: makeConfig(model),
        env: { XDG_RUNTIME_DIR: folder.path },
        command: PROGRAM,
      });
      onTestFinished(() => gateway.stop());
      const through = await runScene(scene, folder, gateway);
      const hidden = expectLogged(scene, home, through);
      using table = new Table(gateway.folder.join("ledger.jsonl"), { report: () => {} });
      const lines = [...listOurLines(table, { since: null, until: null })];
      // Each request has its line. An exact line has the counts that the upstream reported.
      expect(lines.map((line) => String(line.upstream_request_id)).toSorted()).toEqual(
        through.map(({ id }) => id).toSorted(),
      );
      const wrong = lines.filter(({ upstream_request_id: requestId, usage, basis }) => {
        const own = through.find(({ id }) => id === requestId);
        return basis === "exact" && own !== undefined && countUsage(usage) !== countReported(own);
      });
      expect(wrong).toEqual([]);
      const inside = compare(scene, home, lines);
      expect(inside.onlyEntries).toEqual([]);
      expect(inside.onlyLines.map((line) => String(line.upstream_request_id)).toSorted()).toEqual(
        hidden.map(({ id }) => id).toSorted(),
      );
      using apart = makeTempFolder();
      const elsewhere = scene.removesLogs === true ? apart : folder;
      const other = join(elsewhere.path, "home");
      await Bun.write(join(other, ".gemini/settings.json"), GEMINI_SETTINGS);
      const beside = await runScene(scene, elsewhere, null);
      const both =
        elsewhere === folder
          ? expectLogged(scene, home, [...through, ...beside])
          : [...hidden, ...expectLogged(scene, other, beside)];
      // If the first run's logs are gone, its lines could be joined to entries of the second run.
      const outside = compare(scene, other, elsewhere === folder ? lines : []);
      expect(outside.onlyEntries.length).toBeGreaterThan(0);
      if (elsewhere === folder)
        expect([outside.onlyLines, outside.pairs.length]).toEqual([inside.onlyLines, inside.pairs.length]);
      const reasons = Map.groupBy(both, (each) => explain(scene, each));
      rows.push(
        `| ${tool} | ${through.length} + ${beside.length} | ${through.length + beside.length - both.length} | ${[...reasons].map(([reason, some]) => `${some.length} × ${reason}`).join(", ")} | ${inside.pairs.length} in both, ${inside.onlyLines.length} only in the ledger |`,
      );
    },
    TEST_MS,
  );
});
