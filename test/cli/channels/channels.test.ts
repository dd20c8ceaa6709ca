import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { startDemoUpstream, type DemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { locateControl, makeControlFolder } from "../../../src/gateway/api/socket.ts";
import { VERSION } from "../../../src/lib/version.ts";
import { type InsideGateway, keyOf, makeConfig, startGatewayHere } from "../../harness/gateway.ts";
import { rawRequest } from "../../harness/raw.ts";
import { useFolder } from "../../harness/temp.ts";
import { run } from "../driving.ts";
import { watch } from "../../harness/terminal/watching.ts";

let upstream: DemoUpstream;
const folder = useFolder();
let gateway: InsideGateway | null = null;
beforeEach(() => {
  upstream = startDemoUpstream();
});
afterEach(async () => {
  await gateway?.stop();
  gateway = null;
  upstream.stop();
});

/** Makes a group with two channels, and a group whose only channel cannot be reached. */
function makeChannels(): Record<string, unknown> {
  const base = makeConfig(upstream);
  const channel = { platform: "messages", base_url: upstream.url, credential: "xxxx" };
  return {
    ...base,
    channels: {
      main: channel,
      spare: { ...channel, priority: 2 },
      lost: { ...channel, base_url: "http://127.0.0.1:9" },
    },
    groups: {
      messages: { platform: "messages", channels: ["main", "spare"] },
      other: { platform: "messages", channels: ["lost"], multiplier: "0.5" },
    },
    keys: [
      { name: "messages", group: "messages", secret: keyOf("messages") },
      { name: "other", group: "other", secret: "sk-other" },
    ],
  };
}

/** Answers on the socket on which a gateway with this folder's config would listen. */
function answerInstead(state: unknown, version?: string): Disposable {
  const [place] = locateControl(folder.join("ledger.jsonl"));
  if (place === undefined) throw new Error("there is no place for a control socket");
  writeFileSync(folder.join("gateway.yaml"), JSON.stringify(makeChannels()), { mode: 0o600 });
  makeControlFolder(place.folder);
  const headers: Record<string, string> = version === undefined ? {} : { "x-gateway-version": version };
  const server = Bun.serve({ unix: place.path, fetch: () => Response.json(state, { headers }) });
  return { [Symbol.dispose]: () => void server.stop(true) };
}

test("a gateway of another version causes an error that says what to do", async () => {
  const known = { version: "0.0.9", channels: [{ name: "main", condition: "splendid" }] };
  const strange = { recent: [{ what: "a request" }] };
  for (const words of [["channels"], ["channels", "--json"], ["channels", "probe", "main"], ["top"]]) {
    for (const [state, version] of [
      [known, "0.0.9"],
      [strange, undefined],
    ] as const) {
      using _ = answerInstead(state, version);
      expect(await run(around(), ...words)).toEqual({
        status: 1,
        stdout: "",
        stderr: `gateway: The running gateway has ${version === undefined ? "another version" : `version ${version}`}, this command ${VERSION}. Stop it and start it again.\n`,
      });
    }
  }
});

function start(): InsideGateway {
  gateway = startGatewayHere({ config: makeChannels(), folder });
  return gateway;
}

const around = () => ({
  folder: folder.path,
  env: {
    GATEWAY_CONFIG: folder.join("gateway.yaml"),
    ...(process.env["XDG_RUNTIME_DIR"] && { XDG_RUNTIME_DIR: process.env["XDG_RUNTIME_DIR"] }),
    // A proxy in the environment is for requests to the world, not for this machine's own sockets.
    HTTP_PROXY: "http://127.0.0.1:1",
  },
});

const ask = (port: number, key = keyOf("messages"), text = "Hello") =>
  rawRequest(port, {
    target: "/v1/messages",
    fields: { "x-api-key": key },
    body: { model: "claude-haiku-4-5", max_tokens: 9, messages: [{ role: "user", content: text }] },
  });

describe("`gateway channels` shows the state of each channel", () => {
  test("`gateway channels` shows each channel as the running gateway knows it", async () => {
    const { port } = start();
    await ask(port);
    const { status, stdout, stderr } = await run(around(), "channels");
    expect([status, stderr]).toEqual([0, ""]);
    const rows = stdout.trimEnd().split("\n");
    expect(rows).toHaveLength(4);
    expect(rows[0]).toMatch(
      /^CHANNEL +PLATFORM +GROUPS +STATE +SINCE +LEFT +FIRST +P95 +OK\/H +REQ\/H +ERR\/H +TODAY +OPEN/,
    );
    expect(rows[1]).toMatch(
      /^main +messages +messages +available +\d+s .*100% +1 +0 +\$0\.0\d+ +1 \(1 idle\)$/,
    );
    expect(rows[2]).toMatch(/^spare +messages +messages +unknown /);
  });

  test("`channels` says that no gateway runs, and shows the configured channels", async () => {
    await start().running.stop(0);
    gateway = null;
    const { status, stdout, stderr } = await run(around(), "channels", "--json");
    expect(status).toBe(1);
    expect(stderr).toContain("No gateway is running for this config");
    expect(JSON.parse(stdout).map((view: { state: string }) => view.state)).toEqual([
      "unknown",
      "unknown",
      "unknown",
    ]);
  });
});

describe("`gateway channels --watch` goes on showing the state of each channel", () => {
  test("`gateway channels --watch` shows changes, fits the terminal's width, and leaves the terminal as it was", async () => {
    const { port } = start();
    const watched = watch({ ...around(), columns: 150, rows: 12 }, "channels", "--watch");
    await watched.until(/main +messages +messages +unknown/);
    await ask(port, "sk-other");
    await watched.until(/lost +messages +other +unavailable/);
    await watched.until('The group "other" has no available channel.');
    watched.resize(40, 6);
    await watched.until(
      (rows) => rows.every((row) => row.length <= 40) && /^main .*unknown/m.test(rows.join("\n")),
    );
    watched.press("\u0003");
    expect(await watched.status).toBe(0);
    expect(watched.screen.cursor).toMatchObject({ column: 0, isShown: true });
  });

  test("`gateway channels --watch` runs on after the gateway has ended and started again", async () => {
    start();
    const watched = watch({ ...around(), columns: 150, rows: 12 }, "channels", "--watch");
    await watched.until("main");
    await gateway?.running.stop(0);
    await watched.until("No gateway is running for this config.");
    start();
    await watched.until((rows) => !rows.join("").includes("No gateway"));
    watched.press("\u0003");
    expect(await watched.status).toBe(0);
  });
});

describe("P47: `gateway models` lists the models of each group", () => {
  test("`gateway models` lists the models of each group with price and multiplier", async () => {
    start();
    const { status, stdout, stderr } = await run(around(), "models", "--group", "messages", "--json");
    expect([status, stderr]).toEqual([0, ""]);
    const models = JSON.parse(stdout);
    const found = models.find(({ id }: { id: string }) => id === "claude-haiku-4-5");
    expect(found).toMatchObject({
      group: "messages",
      platform: "messages",
      multiplier: "1",
      channels: ["main", "spare"],
      price: { input: "1", output: "5" },
    });
    const table = await run(around(), "models", "--key-name", "messages");
    expect(table.stdout).toMatch(
      /^claude-haiku-4-5 +messages +messages +×1 +1 +5 +0\.1 +1\.25 +main, spare$/m,
    );
  });

  test("`gateway models` names a group of which no channel could be reached, and fails", async () => {
    start();
    const { status, stdout, stderr } = await run(around(), "models", "--json");
    expect(status).toBe(1);
    expect(JSON.parse(stdout).length).toBeGreaterThan(0);
    expect(stderr).toMatch(
      /^No channel of the group "other" gave a list of its models .*\("lost": .*\)\.\n$/,
    );
  });

  test("`gateway models` does not fail if one of a group's channels is reached, but names the other channel", async () => {
    const config = makeChannels();
    const groups = { messages: { platform: "messages", channels: ["main", "lost"] } };
    gateway = startGatewayHere({ config: { ...config, groups, keys: [] }, folder });
    const { status, stderr } = await run(around(), "models");
    expect(stderr).toMatch(/^The models of channel "lost" are unknown: .*\nPrices are/);
    expect(status).toBe(0);
  });

  test.each<[string[], string]>([
    [["--group", "mesages"], 'There is no group "mesages" (did you mean "messages"?).'],
    [["--key-name", "nobody"], 'There is no key "nobody"'],
    [["--group", "other", "--key-name", "other"], "--group and --key-name exclude each other."],
  ])("`gateway models` refuses %p", async (args, message) => {
    start();
    const { status, stderr } = await run(around(), "models", ...args);
    expect(status).toBeGreaterThan(0);
    expect(stderr).toContain(message);
  });
});
