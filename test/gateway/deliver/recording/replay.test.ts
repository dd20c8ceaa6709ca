// A script is recorded once, and replayed without its upstream: by the official SDKs, and over a WebSocket.

import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import OpenAi from "openai";
import { parse } from "yaml";
import { openRecording } from "../../../../src/recording/store.ts";
import { keyOf, makeConfig, startGateway } from "../../../harness/gateway.ts";
import { PROGRAM } from "../../../harness/program.ts";
import { runProcess } from "../../../cli/driving.ts";
import { makeTempFolder, readLedger, type TempFolder } from "../../../harness/temp.ts";
import { startDemoUpstream } from "../../../harness/upstreams/demo-upstream.ts";
import { openSocket } from "../../../harness/web-socket.ts";
import { startReplay } from "../../../harness/upstreams/recording.ts";

let home: TempFolder;
let folder: string;
let recordedOutput: string;

beforeAll(async () => {
  home = makeTempFolder();
  const upstream = startDemoUpstream({ sockets: true });
  const config = makeConfig(upstream);
  for (const key of config.keys) key["record"] = "script";
  const gateway = await startGateway({ config, folder: home });
  recordedOutput = await runScript(gateway.url, keyOf);
  gateway.signal("SIGTERM");
  await gateway.exited;
  upstream.stop();
  folder = home.join("ledger.jsonl.recordings/script");
});
afterAll(() => home.remove());

/** What a program prints that uses every SDK. Its prompts have a clock and an id. */
async function runScript(
  url: string,
  keyFor: (platform: "messages" | "responses" | "content") => string,
): Promise<string> {
  const out: string[] = [];
  const hello = `Hello at ${new Date().toISOString()} from ${crypto.randomUUID()}`;
  const anthropic = new Anthropic({ baseURL: url, apiKey: keyFor("messages"), maxRetries: 0 });
  const messages = [{ role: "user", content: hello } as const];
  const ask = { model: "claude-haiku-4-5", max_tokens: 200, messages };
  const first = await anthropic.messages.create(ask);
  out.push(JSON.stringify(first.content));
  for await (const event of anthropic.messages.stream({
    ...ask,
    messages: [
      ...messages,
      { role: "assistant", content: first.content },
      { role: "user", content: "Go on" },
    ],
  }))
    out.push(JSON.stringify(event));
  const openai = new OpenAi({ baseURL: `${url}/v1`, apiKey: keyFor("responses"), maxRetries: 0 });
  for await (const event of await openai.responses.create({ model: "gpt-5.4", input: hello, stream: true }))
    out.push(JSON.stringify(event));
  const chat = await openai.chat.completions.create({ model: "gpt-5.4", messages });
  out.push(JSON.stringify(chat.choices));
  const google = new GoogleGenAI({ apiKey: keyFor("content"), httpOptions: { baseUrl: url } });
  const stream = await google.models.generateContentStream({ model: "gemini-3.5-flash", contents: hello });
  for await (const part of stream) out.push(JSON.stringify(part.candidates));
  out.push(await talk(url, keyFor("responses")));
  return out.join("\n");
}

/** A response over a WebSocket. */
async function talk(url: string, key: string): Promise<string> {
  const socket = await openSocket(Number(new URL(url).port), key);
  socket.send({ type: "response.create", model: "gpt-5.4", input: "Hello over a socket" });
  await socket.next("response.completed");
  socket.close();
  return socket.texts.join("\n");
}

test("a recorded script is replayed three times with the same output, and nothing is written", async () => {
  const before = readLedger(home.join("ledger.jsonl"));
  expect(before).toHaveLength(6);
  for (const _round of [1, 2, 3]) {
    const replay = await startReplay(folder);
    expect(await runScript(replay.url, () => "any-key")).toBe(recordedOutput);
    const { status, printed } = await replay.stop();
    expect(printed).toContain(`replayed 6 of 6 requests; not in the recording: 0`);
    expect(status).toBe(0);
  }
  expect(readLedger(home.join("ledger.jsonl"))).toEqual(before);
});

test("a request that is not in the recording is an error that names what differs, and the exit status says so", async () => {
  const replay = await startReplay(folder);
  const anthropic = new Anthropic({ baseURL: replay.url, apiKey: "any", maxRetries: 3 });
  const messages = [{ role: "user", content: "Goodbye" } as const];
  const failed = await anthropic.messages
    .create({ model: "claude-haiku-4-5", max_tokens: 200, messages })
    .catch((error: unknown) => String(error));
  expect(failed).toContain("differs from request 1 of the recording first in messages[0].content");
  const { status, printed } = await replay.stop();
  expect([status, printed.match(/not in the recording: POST/g)?.length]).toEqual([1, 1]);
  // A log has no prompts.
  expect(printed).not.toContain("Goodbye");
});

/** A copy of the recording, whose lines and pieces a test may change. Sends the request of its first stream. */
function copyRecording() {
  const copy = makeTempFolder();
  cpSync(folder, copy.join("copy"), { recursive: true });
  const recording = openRecording(copy.join("copy"));
  // The second request is a stream.
  const stream = recording?.exchanges[1];
  if (recording === null || stream === undefined) throw new Error("the recording has no stream");
  const body = recording.readBody(stream.request.body);
  const send = (url: string): Promise<Response> =>
    fetch(url + stream.request.target, { method: "POST", body });
  return { copy, path: copy.join("copy"), stream, send };
}

test("a recording that was changed answers with an error, and the exit status says so", async () => {
  const { copy, path, stream, send } = copyRecording();
  const [hash = ""] = stream.response.body;
  writeFileSync(join(path, "bodies", hash.slice(0, 2), hash), "other");
  const replay = await startReplay(path);
  const answer = await send(replay.url);
  expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining("was changed")]);
  expect((await replay.stop()).status).toBe(1);
  copy.remove();
});

test.each([
  ["a page of another origin", { origin: "https://example.com" }],
  ["a page of another origin, without CORS", { "sec-fetch-site": "cross-site" }],
  ["a name that a DNS server made up", { host: "evil.example.com" }],
])("a replay refuses %s: the recording holds prompts", async (_, headers) => {
  const replay = await startReplay(folder, "--host", "0.0.0.0");
  expect(new URL(replay.url).hostname).toBe("127.0.0.1");
  const answer = await fetch(`${replay.url}/v1/models`, { headers });
  expect(answer.status).toBe(403);
  await replay.stop();
});

test("a recording that others can write to is named by `recordings list`, which shows the others", async () => {
  using work = makeTempFolder();
  const ledger = ["--ledger", work.join("ledger.jsonl")];
  for (const name of ["good", "open"])
    cpSync(folder, work.join(`ledger.jsonl.recordings/${name}`), { recursive: true });
  chmodSync(work.join("ledger.jsonl.recordings/open"), 0o777);
  const listed = await runProcess({ folder: home.path }, "recordings", "list", "--json", ...ledger);
  expect(JSON.parse(listed.stdout)).toMatchObject([{ name: "good", exchanges: 6 }]);
  expect([listed.status, listed.stderr]).toEqual([0, expect.stringContaining("open can be used by others")]);
});

test("a folder that is no recording is not replayed", async () => {
  using work = makeTempFolder();
  const { stderr, status } = await runProcess({ folder: home.path }, "serve", "--replay", work.path);
  expect([stderr, status]).toEqual([expect.stringContaining("There is no recording at"), 1]);
});

const ONE_REQUEST = `
  const { ANTHROPIC_BASE_URL: url, ANTHROPIC_AUTH_TOKEN: token, ANTHROPIC_API_KEY: key, ANTHROPIC_CUSTOM_HEADERS: more } = process.env;
  const own = Object.fromEntries(more.split("\\n").map((line) => line.split(": ")));
  const body = JSON.stringify({ model: "claude-haiku-4-5", max_tokens: 9, messages: [{ role: "user", content: "Hi" }] });
  const headers = { "x-api-key": key ?? token, "content-type": "application/json", ...own };
  console.log((await fetch(url + "/v1/messages", { method: "POST", headers, body })).status);
`;

test("`gateway run --record` records this run, and no other request of the same key", async () => {
  const upstream = startDemoUpstream();
  const gateway = await startGateway({ config: makeConfig(upstream) });
  try {
    const runOnce = async (...flags: string[]): Promise<string> => {
      const words = ["run", "--url", gateway.url, ...flags, "anthropic", process.execPath, "-e", ONE_REQUEST];
      const env = { ...process.env, GATEWAY_CONFIG: home.join("none"), GATEWAY_KEY: keyOf("messages") };
      const { stdout, stderr } = await runProcess({ folder: home.path, env }, ...words);
      return stdout + stderr;
    };
    expect(await runOnce("--record", "one-run")).toMatch(/200[^]*recorded: 1 request in/);
    expect(await runOnce()).toMatch(/^200\n/);
    await gateway.recorded(2);
    expect(gateway.ledger().map(({ recording }) => recording)).toEqual(["one-run", undefined]);
    expect(await runOnce("--record", "../away")).toContain("letters, digits");
  } finally {
    await gateway.stop();
    upstream.stop();
  }
});

test.each([
  ["the recorded request", "Hello at 2027-01-01 from 0b0c0d0e-1111-4222-8333-444455556666", 0],
  ["another request", "Goodbye", 1],
])("the workflow of examples/ runs a script that sends %s", async (_, content, expected) => {
  const workflow = parse(readFileSync(join(import.meta.dir, "../../../../examples/replay-ci.yml"), "utf8"));
  const [, step] = workflow.jobs.replay.steps;
  using work = makeTempFolder();
  cpSync(folder, work.join("recordings/agent-test"), { recursive: true });
  const body = { model: "claude-haiku-4-5", max_tokens: 200, messages: [{ role: "user", content }] };
  const send = `curl -s "$ANTHROPIC_BASE_URL/v1/messages" -H "x-api-key: $ANTHROPIC_API_KEY" -d '${JSON.stringify(body)}'`;
  const write = (name: string, text: string) =>
    writeFileSync(work.join(name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  write("agent-test.sh", `${send} > answer.json`);
  write("gateway", `exec ${PROGRAM.join(" ")} "$@"`);
  const free = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => {} } });
  const port = String(free.port);
  free.stop(true);
  const script: string = step.run.replaceAll("8790", port);
  const env = { ...process.env, ...step.env, PATH: `${work.path}:${process.env["PATH"] ?? ""}` };
  env["ANTHROPIC_BASE_URL"] = step.env.ANTHROPIC_BASE_URL.replace("8790", port);
  const ran = Bun.spawn(["bash", "-e", "-c", script], {
    cwd: work.path,
    env,
    stdout: "ignore",
    stderr: "ignore",
  });
  expect(await ran.exited).toBe(expected);
  expect(readFileSync(work.join("answer.json"), "utf8")).toContain(
    expected === 0 ? '"type":"message"' : "not in the recording",
  );
});

/** Records one request whose prompt names the agent's home, and replays it for the home of another machine. */
async function recordInHome(
  platform: "messages" | "responses",
  path: string,
  bodyIn: (home: string) => object,
) {
  const place = makeTempFolder();
  const upstream = startDemoUpstream();
  const config = makeConfig(upstream);
  for (const key of config.keys) key["record"] = "home";
  const gateway = await startGateway({ config, folder: place });
  const send = async (url: string, home: string): Promise<number> => {
    const headers = { authorization: `Bearer ${keyOf(platform)}` };
    const body = JSON.stringify(bodyIn(home));
    const response = await fetch(url + path, { method: "POST", headers, body });
    await response.text();
    return response.status;
  };
  expect(await send(gateway.url, "/tmp/a")).toBe(200);
  await gateway.stop();
  upstream.stop();
  const replay = await startReplay(place.join("ledger.jsonl.recordings/home"));
  return { place, send, replay };
}

const messageIn = (home: string): object => ({
  model: "claude-haiku-4-5",
  max_tokens: 20,
  system: `Your memory is in ${home}/.claude/projects/-work/memory/. Plans go to ${home}/plans.`,
  messages: [{ role: "user", content: "Hello" }],
});

test.each(["/github/home", "/workspace", "/tmp/a/b", "/root"])(
  "a script that was recorded in the home /tmp/a is replayed in the home %s",
  async (home) => {
    const { place, send, replay } = await recordInHome("messages", "/v1/messages", messageIn);
    expect(await send(replay.url, home)).toBe(200);
    expect(await replay.stop()).toMatchObject({ status: 0 });
    place.remove();
  },
);

test.each([
  ["messages", "/v1/messages", messageIn, "anthropic", "ANTHROPIC_BASE_URL"],
  ["responses", "/v1/responses", () => ({ model: "gpt-5.4", input: "Hello" }), "openai", "OPENAI_BASE_URL"],
] as const)(
  "a replay of %s requests counts nothing that `gateway run --url` asks for itself",
  async (platform, path, bodyIn, tool, variable) => {
    const { place, replay } = await recordInHome(platform, path, bodyIn);
    const secret = { folder: place.path, stdin: "sk-any", env: { GATEWAY_CONFIG: "" } };
    const where = ["--url", replay.url, "--secret", "-"];
    const command = ["sh", "-c", `echo "$${variable}"`];
    const ran = await runProcess(secret, "run", ...where, tool, ...command);
    expect(ran).toMatchObject({ status: 0, stdout: expect.stringContaining(replay.url) });
    const shown = await runProcess(secret, "env", "opencode", ...where, "--json");
    expect(JSON.parse(shown.stdout)).toMatchObject({ platform });
    const { status, printed } = await replay.stop();
    expect(printed).toContain("replayed 0 of 1 request; not in the recording: 0");
    expect(status).toBe(0);
    place.remove();
  },
);
