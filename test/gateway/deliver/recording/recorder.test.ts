// Recording, by the real program: what is in the files, and what is not.

import { afterAll, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { openRecording, type Recording } from "../../../../src/recording/store.ts";
import {
  type ChildGateway,
  CREDENTIAL,
  keyOf,
  makeConfig,
  startGateway,
  type TestConfig,
} from "../../../harness/gateway.ts";
import { startDemoUpstream } from "../../../harness/upstreams/demo-upstream.ts";

const upstream = startDemoUpstream();
afterAll(() => upstream.stop());

function recordingConfig(more: object = {}): TestConfig {
  const config = makeConfig(upstream, { ...more });
  for (const key of config.keys) if (key["name"] === "messages") key["record"] = "first-run";
  return config;
}

function recordingsOf(gateway: ChildGateway): string {
  return gateway.folder.join("ledger.jsonl.recordings");
}

function open(gateway: ChildGateway, name = "first-run"): Recording {
  const recording = openRecording(join(recordingsOf(gateway), name));
  if (recording === null) throw new Error("nothing was recorded");
  return recording;
}

function ask(gateway: ChildGateway, body: object, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${gateway.url}/v1/messages`, {
    method: "POST",
    headers: { "x-api-key": keyOf("messages"), "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
}

const HELLO = { model: "claude-haiku-4-5", max_tokens: 100, messages: [{ role: "user", content: "Hello" }] };

test("a request and its answer are in the recording as the client sent and got them, with the line of the ledger", async () => {
  const gateway = await startGateway({ config: recordingConfig() });
  try {
    const text = await (await ask(gateway, { ...HELLO, stream: true })).text();
    await gateway.recorded(1);
    gateway.signal("SIGTERM");
    await gateway.exited;
    const [exchange, ...others] = open(gateway).exchanges;
    expect(others).toEqual([]);
    expect(exchange?.request).toMatchObject({ method: "POST", target: "/v1/messages" });
    const { readBody } = open(gateway);
    expect(JSON.parse(readBody(exchange?.request.body ?? []).toString())).toEqual({ ...HELLO, stream: true });
    expect(readBody(exchange?.response.body ?? []).toString()).toBe(text);
    expect(exchange?.response).toMatchObject({ status: 200, end: "whole" });
    const sizes = exchange?.response.chunks.map(([, size]) => size) ?? [];
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(Buffer.byteLength(text));
    const [line] = gateway.ledger();
    expect(line).toMatchObject({ recording: "first-run", id: exchange?.id });
    expect(line).toMatchObject(exchange?.line ?? { is: "missing" });
  } finally {
    await gateway.stop();
  }
});

function readAll(folder: string): string {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return files.map((entry) => readFileSync(join(entry.parentPath, entry.name), "latin1")).join("\n");
}

/** Sends requests to a gateway that records them, and returns everything that it has written then. */
async function record(
  config: TestConfig,
  send: (gateway: ChildGateway) => Promise<void>,
): Promise<{ text: string; lines: Record<string, unknown>[]; log: string }> {
  const gateway = await startGateway({ config });
  try {
    await send(gateway);
    gateway.signal("SIGTERM");
    expect(await gateway.exited).toBe(0);
    const folder = recordingsOf(gateway);
    return {
      text: existsSync(folder) ? readAll(folder) : "",
      lines: gateway.ledger(),
      log: gateway.stdout() + gateway.stderr(),
    };
  } finally {
    await gateway.stop();
  }
}

const OWN = keyOf("messages");
const OTHER_KEY = "sk-other-key-of-this-gateway-0123456789";
const LOGIN = "Bearer oauth-token-of-a-person-0123456789abcdef";

test("no key, credential or login is in any file of a recording: not of headers, the URL, bodies, or what the upstream repeats", async () => {
  const config = recordingConfig();
  config.keys.push({ name: "other", group: "content", secret: OTHER_KEY });
  const told = [CREDENTIAL, OWN, OTHER_KEY, LOGIN.slice(7)].join(" and ");
  const escaped = JSON.stringify(JSON.stringify(`\n${told}`)).slice(1, -1);
  const body = { ...HELLO, messages: [{ role: "user", content: `MARK ${told} ${escaped}` }] };
  const { text } = await record(config, async (gateway) => {
    await (
      await ask(gateway, body, { authorization: LOGIN, "x-other": OTHER_KEY, cookie: `a=${OWN}` })
    ).text();
    await (await ask(gateway, { ...body, stream: true })).text();
    const packed = gzipSync(JSON.stringify(body));
    await fetch(`${gateway.url}/v1/messages?key=${OTHER_KEY}&beta=${OWN}&own=${CREDENTIAL}`, {
      method: "POST",
      headers: { "x-api-key": OWN, "content-type": "application/json", "content-encoding": "gzip" },
      body: packed,
    }).then((answer) => answer.text());
    await gateway.recorded(3);
  });
  // The answers quote the prompts.
  expect(text.match(/MARK/g)?.length).toBeGreaterThanOrEqual(3);
  expect(text.match(/"target":"\/v1\/messages[^"]*"/g)).toHaveLength(3);
  for (const secret of [CREDENTIAL, OWN, OTHER_KEY, LOGIN, LOGIN.slice(7)]) {
    expect(text).not.toContain(secret);
    expect(text).not.toContain(btoa(secret));
  }
});

test("requests of other keys, and requests without a key, are not recorded", async () => {
  const { text, lines } = await record(recordingConfig(), async (gateway) => {
    await ask(gateway, HELLO, { "x-api-key": "sk-unknown" }).then((answer) => answer.text());
    await fetch(`${gateway.url}/v1/responses`, {
      method: "POST",
      headers: { authorization: `Bearer ${keyOf("responses")}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "gpt-5.4", input: "Hello" }),
    }).then((answer) => answer.text());
    await gateway.recorded(2);
  });
  expect(text).toBe("");
  expect(lines.map(({ recording }) => recording)).toEqual([undefined]);
});

test("refusals, model lists and counts are recorded, too: a tool asks for them when it starts", async () => {
  const { text } = await record(recordingConfig(), async (gateway) => {
    await fetch(`${gateway.url}/v1/models`, { headers: { "x-api-key": OWN } }).then((answer) =>
      answer.text(),
    );
    await ask(gateway, { ...HELLO, model: "" }).then((answer) => answer.text());
    await gateway.recorded(2);
  });
  const lines = text.split("\n").filter((line) => line.startsWith('{"v":1'));
  expect(
    lines.map((line) => JSON.parse(line)).map(({ request, response }) => [request.target, response.status]),
  ).toEqual([
    ["/v1/models", 200],
    ["/v1/messages", 400],
  ]);
});

test("a recording that has its largest size stops and says so, and requests go on", async () => {
  const config = recordingConfig({ recordings: { max_size: "8KiB" } });
  const long = { ...HELLO, messages: [{ role: "user", content: "word ".repeat(4000) }] };
  const gateway = await startGateway({ config });
  try {
    expect((await ask(gateway, long)).status).toBe(200);
    await gateway.noticed('recording: "first-run" has stopped: it would be larger than 8192 bytes');
    expect((await ask(gateway, HELLO)).status).toBe(200);
    await gateway.recorded(2);
    expect(gateway.ledger().map(({ recording }) => recording)).toEqual(["first-run", undefined]);
  } finally {
    await gateway.stop();
  }
});

test("after kill -9, every exchange whose line is there is complete", async () => {
  const gateway = await startGateway({ config: recordingConfig() });
  try {
    const body = { ...HELLO, messages: [{ role: "user", content: "word ".repeat(9000) }] };
    const sending = Array.from({ length: 40 }, (_, index) =>
      ask(gateway, { ...body, system: `${index} ${"text ".repeat(2000)}` }).then(
        (answer) => answer.text(),
        () => "",
      ),
    );
    const folder = join(recordingsOf(gateway), "first-run");
    while (!openRecording(folder)?.exchanges.length) await Bun.sleep(1);
    gateway.signal("SIGKILL");
    await Promise.all(sending);
    await gateway.exited;
    const { exchanges, readBody } = open(gateway);
    expect(exchanges.length).toBeGreaterThan(0);
    for (const { request, response } of exchanges) {
      expect(JSON.parse(readBody(request.body).toString())).toMatchObject({ model: HELLO.model });
      expect(JSON.parse(readBody(response.body).toString())).toMatchObject({ type: "message" });
    }
  } finally {
    await gateway.stop();
  }
});
