import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { type DemoUpstream, startDemoUpstream } from "../../../harness/upstreams/demo-upstream.ts";
import { passMidnight } from "../../../harness/day.ts";
import { type ChildGateway, keyOf, makeConfig, startGateway } from "../../../harness/gateway.ts";
import { rawRequest } from "../../../harness/raw.ts";
import { makeTempFolder, type TempFolder } from "../../../harness/temp.ts";
import { makeRequest } from "../../../e2e/world.ts";
import { run } from "../../driving.ts";

const SESSION = "db7f03b5-105b-464a-ba35-e8c230eff292";
/** The document on stdin, as Claude Code writes it. */
const GIVEN = { session_id: SESSION, model: { id: "claude-opus-4-5", display_name: "Opus 4.5" }, cwd: "/x" };

let folder: TempFolder;
let upstream: DemoUpstream;
let gateway: ChildGateway;

beforeAll(async () => {
  await passMidnight();
  folder = makeTempFolder();
  upstream = startDemoUpstream();
  const config = makeConfig(upstream);
  const limits = { usd_per_day: "5", usd_per_session: "2" };
  gateway = await startGateway({
    config: { ...config, keys: config.keys.map((key) => ({ ...key, limits })) },
    folder,
  });
  const request = makeRequest("messages");
  await rawRequest(gateway.port, {
    ...request,
    fields: { ...request.fields, "x-claude-code-session-id": SESSION, "user-agent": "claude-cli/2" },
  });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
  folder.remove();
});

const line = async (stdin: string, ...args: string[]) =>
  run({ folder: folder.path, stdin }, "statusline", ...args);

test("P56: `statusline` shows model, session, day, cache and what is left of the nearest limit", async () => {
  const { stdout, status } = await line(JSON.stringify(GIVEN));
  expect(status).toBe(0);
  expect(stdout).toMatch(
    /^Opus 4\.5 · session \$0\.\d{6} · today \$0\.\d{6} · context 8 \(user 100%\) · cached 0% · left \$2\.00 of usd_per_session\n$/,
  );
});

test("P156: `statusline` shows what a plan paid in the session, in place of a charge", async () => {
  using other = makeTempFolder();
  const plan = await startGateway({
    config: {
      channels: { login: { platform: "messages", base_url: upstream.url, credential: "client" } },
      groups: { plan: { platform: "messages", channels: ["login"] } },
      keys: [{ name: "me", group: "plan", secret: "sk-of-mine" }],
    },
    folder: other,
  });
  const fields = {
    authorization: "Bearer credential-of-the-channel",
    "anthropic-beta": "oauth-2025-04-20",
    "user-agent": "claude-cli/2.1.330",
    "x-claude-code-session-id": SESSION,
    "x-gateway-key": "sk-of-mine",
  };
  expect((await rawRequest(plan.port, { ...makeRequest("messages"), fields })).status).toBe(200);
  const { stdout } = await run({ folder: other.path, stdin: JSON.stringify(GIVEN) }, "statusline");
  expect(stdout).toMatch(/ · session \$0\.\d{6} paid by a plan · today \$0\.00 · /);
  await plan.stop();
});

test("`statusline` shows the day and the key's limits for a session without requests", async () => {
  const fresh = JSON.stringify({ ...GIVEN, session_id: "fresh" });
  expect((await line(fresh)).stdout).toBe("Opus 4.5 · today $0.000103\n");
  expect((await line(fresh, "--key", "messages")).stdout).toMatch(/ · left \$2\.00 of usd_per_session\n$/);
});

test("`statusline --format` works for status bars that name no session", async () => {
  const odd = await line("", "--format", "today {today}{session}, {odd}{constructor}");
  expect(odd.stdout).toBe("today $0.000103, {odd}{constructor}\n");
  expect(odd.stderr).toContain("There is no field {odd}. Known: model, session, ");
  for (const session of [SESSION, "last"]) {
    const { stdout } = await line("", "--session", session, "--format", "{model} {cached} {left} {limit}");
    expect(stdout).toBe("claude-haiku-4-5 0% $2.00 usd_per_session\n");
  }
});

test("`statusline` finds no session in hostile input", async () => {
  for (const given of ["{", "[]", '{"session_id":5,"model":null}', '{"session_id":"\\u001b[31m&key=x"}'])
    expect((await line(given)).stdout).toBe("today $0.000103\n");
  const model = JSON.stringify({ model: { display_name: "\u001b[31mred" } });
  expect((await line(model)).stdout).not.toContain("\u001b");
});

test("`run claude --statusline` puts the status line into settings for this run, and leaves the user's file alone", async () => {
  mkdirSync(folder.join("bin"), { recursive: true });
  const script = '#!/bin/sh\nwhile [ "$1" != --settings ]; do shift; done; cat "$2"\n';
  writeFileSync(folder.join("bin/claude"), script, { mode: 0o755 });
  mkdirSync(folder.join(".claude"), { recursive: true });
  const theirs = '{"statusLine":{"type":"command","command":"mine"}}';
  writeFileSync(folder.join(".claude/settings.json"), theirs);
  const env = { PATH: `${folder.join("bin")}:${process.env["PATH"]}`, HOME: folder.path };
  const words = ["--yes", "--key", "messages", "--secret", keyOf("messages"), "claude"];
  const { stdout, stderr } = await run({ folder: folder.path, env }, "run", "--statusline", ...words);
  expect(stderr).toMatch(
    /^Claude Code: key messages, group messages \(.+\), billed by use at official prices\.\n$/,
  );
  const { statusLine } = JSON.parse(stdout);
  expect(statusLine).toEqual({ type: "command", command: expect.stringContaining(" statusline --ledger ") });
  const shown = Bun.spawn(["sh", "-c", statusLine.command], {
    stdin: new Blob([JSON.stringify(GIVEN)]),
    cwd: "/",
  });
  expect(await new Response(shown.stdout).text()).toStartWith("Opus 4.5 · session ");
  expect(readFileSync(folder.join(".claude/settings.json"), "utf8")).toBe(theirs);
});
