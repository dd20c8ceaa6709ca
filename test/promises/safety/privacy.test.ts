// Secrets, prompts, files of the gateway, and who may ask.

import { describe, expect, test } from "bun:test";
import {
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { once } from "node:events";
import { createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { rawRequest } from "../../harness/raw.ts";
import { makeIdentity } from "../../harness/upstreams/identity.ts";
import { ask, stream, whole } from "../world/answers.ts";
import { eventually, type Group, inWorld, keyFields, useWorld, World } from "../world/world.ts";

const spans: string[] = [];
const receiver = createServer((request, response) => {
  const parts: Buffer[] = [];
  request.on("data", (part: Buffer) => parts.push(part));
  request.on("end", () => {
    spans.push(Buffer.concat(parts).toString());
    response.end("{}");
  });
});
receiver.listen(0, "127.0.0.1");
receiver.unref();
const address = receiver.address();
const otlp = { url: `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}/v1/traces` };

const world = useWorld({ config: { otlp } });
const plain = world.group("plain");
const chat = world.group("chat", { platform: "responses", channels: { main: { platform: "chat" } } });
const other = world.group("other");
const own = world.group("own");
const alias = world.group("alias", { channels: { main: { aliases: { fast: "test-model" } } } });
const models = world.group("models", { channels: { main: { models: ["test-model"] } } });
const limited = world.group("limited", { key: { limits: { usd_per_day: 5 } } });
const redirected = world.group("redirected");
const page = world.group("page", { platform: "content" });

const outside = Object.values(networkInterfaces())
  .flat()
  .find((each) => each !== undefined && !each.internal && each.family === "IPv4");

test.skipIf(outside === undefined)(
  "P187: the gateway listens on loopback, unless the config says otherwise",
  async () => {
    const reach = (port: number): Promise<boolean> =>
      Bun.connect({ hostname: outside!.address, port, socket: { data() {} } }).then(
        (socket) => {
          socket.end();
          return true;
        },
        () => false,
      );
    expect(await reach(world.port)).toBe(false);
    const config = { listen: { host: "0.0.0.0", port: 0 } };
    await inWorld(
      { config },
      (own) => own.group("wide"),
      async (own) => {
        expect(await reach(own.port)).toBe(true);
      },
    );
  },
);

test("P188: the client's key never goes upstream", async () => {
  const fields = {
    ...keyFields("messages", plain.key),
    authorization: `Bearer ${plain.key}`,
    "x-gateway-key": plain.key,
    "x-goog-api-key": plain.key,
    "x-copy": plain.key,
  };
  expect((await world.request(`/v1/messages?key=${plain.key}`, fields, ask("messages").body)).status).toBe(
    200,
  );
  expect(
    (
      await world.request(
        `/v1beta/models/test-model:generateContent?key=${page.key}`,
        {},
        ask("content").body,
      )
    ).status,
  ).toBe(200);
  for (const seen of [plain.channel().seen.at(-1)!, page.channel().seen.at(-1)!])
    expect(JSON.stringify([seen.path, seen.fields])).not.toMatch(/sk-test-/);
});

const escapeJson = (text: string): string =>
  text.replaceAll(/./g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
const encodePercent = (text: string): string =>
  text.replaceAll(/./g, (c) => `%${c.charCodeAt(0).toString(16)}`);

/** The secret is in the text, as a reader of JSON or of a URL would see it. */
function leaks(text: string, secret: string): boolean {
  const fromHex = (_: string, hex: string): string => String.fromCharCode(Number.parseInt(hex, 16));
  const readings = [
    text,
    text.replaceAll(/\\u([0-9a-f]{4})/gi, fromHex),
    text.replaceAll(/%([0-9a-f]{2})/gi, fromHex),
  ];
  return readings.some((each) => each.includes(secret));
}

/** An answer, an error and a stream repeat the text. None of them may leak the secret, and all of them arrive. */
async function repeat(group: Group, text: string, secret: string): Promise<void> {
  const body = JSON.stringify(whole("messages", { text: "MARK" })).replace("MARK", `a ${text} b`);
  group.channel().next({ body, fields: { "x-echo": text } }, { status: 400, body });
  for (let count = 0; count < 2; count += 1) {
    const answer = await group.ask("messages");
    expect(leaks(answer.bytes.toString(), secret)).toBe(false);
    expect(answer.text).toContain(" b");
  }
  const pieces = stream("messages", { text: "MARK" });
  const all = pieces.join("").replace("MARK", `a ${text} b`);
  const from = all.indexOf(text);
  for (let at = from; at < from + text.length; at += 7) {
    group.channel().next(async (_, out) => {
      out.head(200, { "content-type": "text/event-stream" });
      out.write(all.slice(0, at));
      await Bun.sleep(2);
      out.write(all.slice(at));
      out.end();
    });
    const answer = await group.ask("messages", { stream: true });
    expect(leaks(answer.text, secret)).toBe(false);
    expect(answer.text).toContain("message_stop");
  }
}

describe("P189: answers contain no channel credential, whole or split over the chunks of a stream", () => {
  test.each([
    ["as it is", (text: string) => text],
    ["JSON-escaped", escapeJson],
    ["percent-encoded", encodePercent],
  ])("%s", async (_, write) => {
    await repeat(plain, write(plain.credentialOf()), plain.credentialOf());
  });
});

test("P189: answers contain no credential of another channel", () =>
  repeat(other, chat.credentialOf(), chat.credentialOf()));

test("P189: answers contain no key", () => repeat(own, own.key, own.key));

/** All files below a folder, as text. */
function readAll(folder: string): string {
  return readdirSync(folder, { recursive: true })
    .map((name) => join(folder, String(name)))
    .filter((path) => lstatSync(path).isFile() && !path.endsWith("gateway.yaml"))
    .map((path) => readFileSync(path, "latin1"))
    .join("\n");
}

test("P190, P191: ledger, log, spans and other files contain no secret, prompt or response", async () => {
  const prompt = "PROMPT-of-a-person-about-nothing";
  const response = "RESPONSE-of-a-model-about-nothing";
  const body = {
    system: `${prompt} in the system prompt`,
    messages: [{ role: "user", content: prompt }],
    tools: [{ name: "run", description: `${prompt} in a tool`, input_schema: { type: "object" } }],
  };
  plain
    .channel()
    .next(
      { body: whole("messages", { text: response }) },
      { status: 400, body: { error: { message: prompt } } },
    );
  await world.line(await plain.ask("messages", body));
  await plain.ask("messages", body);
  await world.request(
    "/v1/messages",
    { "x-api-key": "sk-of-nobody-0123456789" },
    { ...body, model: "test-model" },
  );
  await eventually(() => spans.join("").includes("plain"));
  const kept = world.log() + readAll(world.folder) + spans.join("\n");
  for (const text of [prompt, response, plain.key, plain.credentialOf(), "sk-of-nobody-0123456789"])
    expect([text, kept.includes(text)]).toEqual([text, false]);
});

test("P192: the gateway's own files have mode 0600", async () => {
  await world.line(await plain.ask("messages"));
  const own = readdirSync(world.folder).filter((name) => name.startsWith("ledger.jsonl"));
  expect(own.length).toBeGreaterThan(2);
  for (const name of own) {
    const stat = statSync(world.path(name));
    if (stat.isFile()) expect([name, (stat.mode & 0o777).toString(8)]).toEqual([name, "600"]);
    else expect([name, (stat.mode & 0o077).toString(8)]).toEqual([name, "0"]);
  }
});

test("P192: the gateway follows no link in the place of its own files", async () => {
  const names = [
    "ledger.jsonl.lock",
    "ledger.jsonl.open",
    "ledger.jsonl.index",
    "ledger.jsonl.channels.json",
    "ledger.jsonl.alerts.json",
    "ledger.jsonl.context",
  ];
  for (const name of names) {
    const own = new World();
    const group = own.group("link");
    try {
      await own.prepare();
      const victim = own.path("victim");
      writeFileSync(victim, "precious\n");
      symlinkSync(victim, own.path(name));
      await own.start().then(
        async () => {
          await group.ask("messages");
          await own.run("usage");
          await own.halt();
        },
        () => {},
      );
      expect([name, readFileSync(victim, "utf8")]).toEqual([name, "precious\n"]);
      symlinkSync(own.path("not-there"), own.path("gateway.yaml.tmp"));
      expect(existsSync(own.path("not-there"))).toBe(false);
    } finally {
      await own.stop();
    }
  }
});

test("P193: a gateway on loopback refuses requests for other host names", async () => {
  const fields = keyFields("messages", plain.key);
  const to = (host: string, target = "/v1/messages") =>
    rawRequest(world.port, {
      target,
      fields: { ...fields, host },
      ...(target.length > 2 && { body: ask("messages").body }),
    });
  const before = plain.channel().seen.length;
  for (const host of [
    "evil.example",
    "127.0.0.1.evil.example",
    "rebound.example:80",
    "localhost\r\nhost: evil",
  ])
    expect((await to(host)).status).toBeGreaterThanOrEqual(400);
  expect(plain.channel().seen).toHaveLength(before);
  for (const host of ["127.0.0.1", `localhost:${world.port}`, `[::1]:${world.port}`])
    expect((await to(host)).status).toBe(200);
  const config = { allowed_hosts: ["gateway.example"] };
  await inWorld(
    { config },
    (own) => own.group("named"),
    async (own, group) => {
      const named = { ...keyFields("messages", group.key), host: "gateway.example" };
      expect((await own.request("/v1/messages", named, ask("messages").body)).status).toBe(200);
    },
  );
});

test("P194: redirects are not followed", async () => {
  const before = plain.channel().seen.length;
  redirected
    .channel()
    .next({ status: 307, fields: { location: `${plain.channel().url}/v1/messages` }, body: "" });
  const answer = await redirected.ask("messages");
  expect(answer.status).toBeGreaterThanOrEqual(400);
  expect(plain.channel().seen).toHaveLength(before);
});

test("P194: certificates are verified, and nothing is sent before that", async () => {
  const { authority, certificate: cert, key } = makeIdentity(["localhost"], Date.now());
  const seen: string[] = [];
  const secure = createTlsServer({ cert, key }, (request, response) => {
    seen.push(request.url ?? "");
    response.setHeader("content-type", "application/json");
    request.resume().on("end", () => response.end(JSON.stringify(whole("messages"))));
  });
  secure.listen(0, "127.0.0.1");
  await once(secure, "listening");
  const at = secure.address();
  const port = typeof at === "object" ? at?.port : 0;
  const channel = (host: string, more: object = {}) => ({
    channels: { main: { base_url: `https://${host}:${port}`, ...more } },
  });
  const own = new World({ env: { NO_PROXY: "localhost,127.0.0.1", NODE_TLS_REJECT_UNAUTHORIZED: "0" } });
  const ca = join(own.folder, "ca.pem");
  writeFileSync(ca, authority);
  const strange = own.group("strange", channel("localhost"));
  const misnamed = own.group("misnamed", channel("127.0.0.1", { ca }));
  const known = own.group("known", channel("localhost", { ca }));
  await own.start();
  for (const group of [strange, misnamed]) expect((await group.ask("messages")).status).toBe(502);
  expect(seen).toEqual([]);
  expect((await known.ask("messages")).status).toBe(200);
  await own.stop();
  secure.close();
});

test("P195: a web page of another origin gets 403 for a key in the URL, unless cors_origins allows it", async () => {
  const target = (key: string) => `/v1beta/models/test-model:generateContent?key=${key}`;
  const origin = "https://page.example";
  const { body } = ask("content");
  const before = page.channel().seen.length;
  expect((await world.request(target(page.key), { origin }, body)).status).toBe(403);
  expect((await world.request(target(page.key), { "sec-fetch-site": "cross-site" }, body)).status).toBe(403);
  expect(page.channel().seen).toHaveLength(before);
  const config = { cors_origins: [origin] };
  const set = (own: World) => own.group("cors", { platform: "content" });
  await inWorld({ config }, set, async (own, group) => {
    expect((await own.request(target(group.key), { origin }, body)).status).toBe(200);
  });
});

/** Bodies in which another parser could find the model `other-model`. */
const DOUBLE = [
  '{"model":"test-model","model":"other-model","max_tokens":5,"messages":[]}',
  '{"model":"other-model","max_tokens":5,"messages":[],"model":"test-model"}',
  '{"model":"test-model","mod\\u0065l":"other-model","max_tokens":5,"messages":[]}',
  '{"model":"test-model","Model":"other-model","max_tokens":5,"messages":[]}',
  '{"model":"test-model","\uff4dodel":"other-model","max_tokens":5,"messages":[]}',
  '{"model":"test-model","model\\u0000":"other-model","max_tokens":5,"messages":[]}',
  '{"model":"test-model","a":[/*"*/1],"model":"other-model","b":[/*"*/1],"max_tokens":5,"messages":[]}',
  '{"model":"test-model","a":[//"\\n1],"model":"other-model","b":[//"\\n1],"max_tokens":5,"messages":[]}',
  `{"model":"test-model","a":['"'],"model":"other-model","b":['"'],"max_tokens":5,"messages":[]}`,
];

describe("P196: a body with a second model gets 400 where the model decides something", () => {
  test.each([alias, models, limited])("in the group $name", async (group) => {
    for (const body of DOUBLE) {
      const before = group.channel().seen.length;
      const answer = await world.request("/v1/messages", keyFields("messages", group.key), body);
      expect([body, answer.status, group.channel().seen.length - before]).toEqual([body, 400, 0]);
    }
  });
});
