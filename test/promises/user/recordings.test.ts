// The contract's promises about recordings, and those about the console's page that need no browser.

import { describe, expect, test } from "bun:test";
import { cpSync, existsSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { PROGRAM } from "../../harness/program.ts";
import { rawRequest } from "../../harness/raw.ts";
import { whole } from "../world/answers.ts";
import { isReachable, listFiles, outside, readFiles } from "../world/seen.ts";
import { eventually, openOwnWorld, serveIn, useWorld } from "../world/world.ts";

const world = useWorld();
const plain = world.group("plain");
const kept = world.group("kept", { key: { record: "script" } });
const converted = world.group("converted", {
  key: { record: "converted" },
  channels: { main: { platform: "chat" } },
  group: { convert: true },
});

const FOLDER = "ledger.jsonl.recordings";
/** Matches files that are still being written. They get their real names when they are complete. */
const DRAFTS = /\.tmp$/;
const filesOf = (folder: string): string[] => listFiles(folder, DRAFTS);
const textOf = (folder: string): string => readFiles(folder, DRAFTS);

/** Records an answer to this prompt, and waits until it is written. */
async function record(prompt: string): Promise<void> {
  const answer = await kept.ask("messages", { messages: [{ role: "user", content: prompt }] });
  expect(answer.status).toBe(200);
  await eventually(() => textOf(world.path(FOLDER, "script")).includes(prompt));
}

test("P176: requests are recorded only with `run --record` or with `record` on their key, and the log says so", async () => {
  await world.line(await plain.ask("messages"));
  expect(existsSync(world.path(FOLDER))).toBe(false);
  await record("the prompt of a recorded request");
  expect(world.log()).toMatch(/recording: requests of the key \S+kept\S+ and their answers are written to/);
  expect((await world.runWith({ stdin: "{}" }, "statusline")).stdout).toMatch(/^● recording .*\n$/);
  const script = `exec 3<>/dev/tcp/127.0.0.1/${world.port}; printf 'GET /v1/models HTTP/1.1\\r\\nhost: 127.0.0.1\\r\\nx-api-key: %s\\r\\nconnection: close\\r\\n\\r\\n' "$ANTHROPIC_API_KEY" >&3; cat <&3 >/dev/null`;
  const flags = ["--record", "by-run", "--secret", plain.key];
  const ran = await world.run("run", ...flags, "anthropic", "bash", "-c", script);
  expect(ran).toMatchObject({ status: 0, stderr: expect.stringContaining("recorded: 1 request") });
  expect(world.log()).toContain("recording: requests of a run and their answers are written to");
  await plain.ask("messages", { messages: [{ role: "user", content: "outside of the run" }] });
  await kept.ask("messages", { model: "mystery-9" });
  const shown = async () => (await world.run("recordings", "show", "script")).stdout;
  // A request without a price has no amount: it did not cost $0.
  await eventually(async () => /mystery-9 +200 +1 +\d+ms *$/m.test(await shown()));
  const names = (await world.json("recordings", "list")).map(({ name }: { name: string }) => name);
  expect(names).toContain("script");
  expect(textOf(world.path(FOLDER))).not.toContain("outside of the run");
});

test("P177: a recording has mode 0700 and its files 0600, and contains no key, credential or login", async () => {
  const login = "sk-ant-oat01-INVENTED0aB1cD2eF3gH4";
  const body = {
    model: "test-model",
    max_tokens: 5,
    messages: [
      {
        role: "user",
        content: `a prompt with the secrets ${kept.key} ${login} ${kept.credentialOf()} of its own, not ${plain.key}.`,
      },
    ],
  };
  const fields = { "x-api-key": kept.key, authorization: `Bearer ${login}`, cookie: `token=${kept.key}` };
  const echo = { "x-echo": kept.credentialOf(), "x-other": plain.key };
  kept.channel().next({ fields: echo, body: whole("messages", { text: `not ${plain.key}.` }) });
  await world.request(`/v1/messages?key=${kept.key}`, fields, body);
  await eventually(() => textOf(world.path(FOLDER, "script")).includes("of its own"));
  expect((statSync(world.path(FOLDER, "script")).mode & 0o777).toString(8)).toBe("700");
  for (const file of filesOf(world.path(FOLDER)))
    expect((statSync(file).mode & 0o777).toString(8)).toBe("600");
  const text = textOf(world.path(FOLDER));
  for (const secret of [kept.key, kept.credentialOf(), login, plain.key])
    expect([secret, text.includes(secret)]).toEqual([secret, false]);
});

test("P176: a recording has a converted stream as the client got it, event by event", async () => {
  const answer = await converted.ask("messages", { stream: true });
  const folder = world.path(FOLDER, "converted");
  await eventually(() => filesOf(folder).some((file) => readFileSync(file, "utf8").includes("message_stop")));
  const [file] = filesOf(folder).filter((path) => readFileSync(path, "utf8").includes("message_stop"));
  const [head = "", ...lines] = readFileSync(file!, "utf8").split("\n");
  const body = lines.join("\n");
  expect(body).toBe(answer.text);
  let end = 0;
  for (const [, size] of JSON.parse(head).response.chunks) {
    end += size;
    expect(body.slice(0, end)).toEndWith("\n\n");
  }
});

describe("P178: a recording ends, and requests go on", () => {
  test("a recording ends at max_size, and requests go on", async () => {
    const config = { recordings: { max_size: "4KiB" } };
    const set = (own: typeof world) => own.group("small", { key: { record: "small" } });
    const [own, group] = await openOwnWorld({ config }, set);
    const ask = async (letter: string) => {
      const content = `${letter.repeat(3000)} of a prompt`;
      expect((await group.ask("messages", { messages: [{ role: "user", content }] })).status).toBe(200);
    };
    for (const letter of "xxxx") await ask(letter);
    // The recording has stopped for short requests, too.
    expect((await group.ask("messages", { system: "a short one" })).status).toBe(200);
    await own.halt();
    expect(textOf(own.path(FOLDER, "small"))).not.toContain("a short one");
    // What an earlier gateway recorded counts for `max_size`, too.
    await own.start();
    await ask("y");
    await own.halt();
    const size = filesOf(own.path(FOLDER, "small")).reduce((sum, path) => sum + statSync(path).size, 0);
    expect(size).toBeLessThan(4097);
  });

  test("a recording ends after max_age, and requests go on", async () => {
    const config = { recordings: { max_age: "1d" } };
    const set = (own: typeof world) => own.group("old", { key: { record: "old" } });
    const [own, group] = await openOwnWorld({ config }, set);
    await own.line(await group.ask("messages"));
    await own.halt();
    const folder = own.path(FOLDER, "old");
    expect(existsSync(folder)).toBe(true);
    const young = own.path(FOLDER, "young");
    cpSync(folder, young, { recursive: true });
    const [then, later] = [90_000_000, 80_000_000].map((age) => new Date(Date.now() - age));
    for (const path of [...filesOf(folder), folder]) utimesSync(path, then!, then!);
    for (const path of [...filesOf(young), young]) utimesSync(path, later!, later!);
    await own.start();
    await eventually(() => !existsSync(folder));
    expect(existsSync(young)).toBe(true);
    expect((await group.ask("messages")).status).toBe(200);
  });
});

describe("`serve --replay` answers only recorded requests, without an upstream", () => {
  const prompt = {
    model: "test-model",
    max_tokens: 500,
    messages: [{ role: "user", content: "what is replayed" }],
  };

  test("P179, P180: a replay accepts any key, sends nothing upstream, and says how a request differs from the recording", async () => {
    await record("what is replayed");
    const sent = kept.channel().seen.length;
    // The replay listens at the port of the config.
    const replay = await serveIn(world.folder, ["--replay", "script"]);
    const ask = (body: object, fields = {}) =>
      rawRequest(replay.port, {
        target: "/v1/messages",
        fields: { "x-api-key": "any-key-at-all", ...fields },
        body,
      });
    const foreign = await ask(prompt, { origin: "https://page.example", "sec-fetch-site": "cross-site" });
    const rebound = await ask(prompt, { host: "evil.example" });
    expect([foreign.status, rebound.status]).toEqual([403, 403]);
    const good = await ask(prompt);
    expect([good.status, JSON.parse(good.text).content[0].text]).toEqual([200, "Hello from upstream"]);
    const other = await ask({ ...prompt, messages: [{ role: "user", content: "what was never recorded" }] });
    expect(other.status).toBe(400);
    expect(other.text).toContain("differs from request 1 of the recording, first in messages[0].content: ");
    expect(kept.channel().seen).toHaveLength(sent);
    expect(await replay.stop()).toBe(1);
  });

  test("P180: `gateway run` works with a replay, and a prompt may differ from the recorded one in the home folder", async () => {
    const at = (home: string) => {
      const content = `memory: ${home}/.claude/projects, notes: ${home}/notes`;
      return { ...prompt, messages: [{ role: "user", content }] };
    };
    await kept.ask("messages", at("/srv/ann/deep"));
    await eventually(() => textOf(world.path(FOLDER, "script")).includes("/srv/ann/deep/notes"));
    const replay = await serveIn(world.folder, ["--replay", "script", "--port", "0"]);
    const url = `http://127.0.0.1:${replay.port}`;
    const ran = await world.run("run", "--url", url, "--secret", "sk-any-key", "anthropic", "true");
    expect(ran.status).toBe(0);
    const fields = { "x-api-key": "sk-any-key" };
    const answer = await rawRequest(replay.port, { target: "/v1/messages", fields, body: at("/ci/home") });
    expect(answer.status).toBe(200);
    expect(await replay.stop()).toBe(0);
  });

  test("`recordings remove` keeps a recording as long as a key or a run writes to it", async () => {
    const remove = (name: string) => world.run("recordings", "remove", name, "--yes");
    await record("a prompt before the removal");
    expect(await remove("script")).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("off the key"),
    });
    expect(textOf(world.path(FOLDER, "script"))).toContain("a prompt before the removal");
    const removal = [...PROGRAM, "recordings", "remove", "by-run", "--yes"];
    const flags = ["--record", "by-run", "--secret", plain.key];
    expect(await world.run("run", ...flags, "anthropic", ...removal)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("Wait for its run"),
    });
    expect(await remove("by-run")).toMatchObject({ status: 0 });
    expect(existsSync(world.path(FOLDER, "by-run"))).toBe(false);
  });

  test.skipIf(outside === undefined)("P179: a replay listens on loopback only", async () => {
    const args = ["--replay", "script", "--host", "0.0.0.0", "--port", "0"];
    const replay = await serveIn(world.folder, args).catch(() => null);
    if (replay === null) return;
    const found = await isReachable(replay.port);
    await replay.stop();
    expect(found).toBe(false);
  });
});

test("P181: `open` prints a link that signs in, and without a sign-in the page shows no data", async () => {
  const link = (await world.run("open", "--print")).stdout.trim();
  expect(link).toStartWith(world.url);
  expect(link).toMatch(/#./);
  const page = await world.request("/console", { accept: "text/html" });
  expect(page.status).toBe(200);
  for (const name of ["plain", "kept", "test-model", "0.00142"]) expect(page.text).not.toContain(name);
  for (const name of ["reports/keys", "reports/overview", "reports/requests", "live"])
    expect([name, (await world.request(`/console/api/${name}`)).status]).toEqual([name, 401]);
  const again = (await world.run("open", "--print")).stdout.trim();
  expect(again).not.toBe(link);
  if (process.platform !== "linux") return;
  writeFileSync(world.path("xdg-open"), '#!/bin/sh\necho "$1" > "$0.url"\n', { mode: 0o755 });
  const env = { DISPLAY: ":9", PATH: `${world.folder}:${process.env["PATH"]}` };
  expect((await world.runWith({ env }, "open", "--config", world.path("gateway.yaml"))).status).toBe(0);
  expect(readFileSync(world.path("xdg-open.url"), "utf8")).toContain("/console#code=");
});

describe("P183: the page is served on loopback only, unless console: always", () => {
  test.each([
    ["loopback", 404],
    ["always", 200],
  ])("with `console: %s`, asking a gateway on 0.0.0.0 for the page gives %d", async (setting, status) => {
    const config = { console: setting, listen: { host: "0.0.0.0", port: 0 } };
    const [own] = await openOwnWorld({ config }, (own) => own.group("wide"));
    const answer = await rawRequest(own.port, {
      target: "/console",
      fields: { accept: "text/html", host: `192.0.2.1:${own.port}` },
    });
    expect(answer.status === 200).toBe(status === 200);
  });

  test("with console: never, no request gets the page", async () => {
    const [own] = await openOwnWorld({ config: { console: "never" } }, (own) => own.group("never"));
    expect((await own.request("/console", { accept: "text/html" })).status).not.toBe(200);
  });
});
