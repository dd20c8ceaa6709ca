// The contract's promises about secrets, prompts, the gateway's files, and access.

import { describe, expect, test } from "bun:test";
import { lstatSync, readdirSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { rawRequest } from "../../harness/raw.ts";
import { makeIdentity } from "../../harness/upstreams/identity.ts";
import { ask, type Dialect, stream, whole } from "../world/answers.ts";
import { isReachable, outside, readFiles } from "../world/seen.ts";
import type { Fields, Script } from "../world/upstream.ts";
import { bearer, eventually, type Group, openOwnWorld, keyFields, useWorld, World } from "../world/world.ts";

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
const channels = { main: { platform: "chat" } };
const chat = world.group("chat", {
  platform: "responses",
  channels,
  group: { convert: true },
  keys: { recorded: { record: "converted" } },
});
const other = world.group("other", { key: { secret: "words-of-the-owner-0123" } });
/** A key as `keys add` makes it. The config has its hash. */
const MADE = `sk-${"0aZ".repeat(15).slice(2)}`;
/** A key as `keys add --secret` takes it. The config has its hash. */
const BROUGHT = "sk-team/Ab+Cd.0123456789";
for (const key of [MADE, BROUGHT]) {
  const hash = new Bun.CryptoHasher("sha256").update(key).digest("hex");
  world.group(`key-${key.length}`, { key: { secret: undefined, secret_sha256: hash } });
}
/** A credential of twelve characters, some of which JSON or URLs escape. */
const SIGNS = 'cr/w+s="0123';
/** A credential as long as a JSON Web Token. */
const LONG = `cred-${"0123456789abcdef".repeat(20)}`;
const long = world.group("long", { channels: { main: { credential: LONG } } });
const own = world.group("own", { channels: { main: { credential: SIGNS } } });
const alias = world.group("alias", { channels: { main: { aliases: { fast: "test-model" } } } });
const globs = world.group("globs", { channels: { main: { aliases: { "fast-*": "test-model" } } } });
const narrow = world.group("narrow", {
  platform: "content",
  channels: { main: { models: ["test-model"] } },
});
const models = world.group("models", { channels: { main: { models: ["test-model"] } } });
const limited = world.group("limited", { key: { limits: { usd_per_day: 5 } } });
const total = world.group("total", { key: { limits: { usd_total: 5 } } });
const session = world.group("session", { key: { limits: { usd_per_session: 5 } } });
const grouped = world.group("grouped", { group: { limits: { usd_per_month: 5 } } });
const redirected = world.group("redirected");
const busy = world.group("busy");
const page = world.group("page", { platform: "content" });
const stored = world.group("stored", { platform: "responses" });
const crossed = world.group("crossed", {
  channels: { main: { platform: "chat" } },
  group: { convert: true },
});

test.skipIf(outside === undefined)(
  "P187: the gateway listens on loopback, unless the config says otherwise",
  async () => {
    expect(await isReachable(world.port)).toBe(false);
    const config = { listen: { host: "0.0.0.0", port: 0 } };
    const [own] = await openOwnWorld({ config }, (own) => own.group("wide"));
    expect(await isReachable(own.port)).toBe(true);
  },
);

const escapeJson = (text: string): string =>
  text.replaceAll(/./g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
const encodePercent = (text: string): string =>
  text.replaceAll(/./g, (c) => `%${c.charCodeAt(0).toString(16)}`);

/** Whether the text has the secret, as it is or as a reader of JSON or of a URL would decode it. */
function leaks(text: string, secret: string): boolean {
  const fromHex = (_: string, hex: string): string => String.fromCharCode(Number.parseInt(hex, 16));
  const readings = [
    text,
    text.replaceAll(/\\u([0-9a-f]{4})/gi, fromHex),
    text.replaceAll(/\\(["/])/g, "$1"),
    text.replaceAll(/%([0-9a-f]{2})/gi, fromHex),
  ];
  return readings.some((each) => each.includes(secret));
}

describe("P188: the client's key never goes upstream", () => {
  const spellings: readonly (readonly [string, (key: string) => string])[] = [
    ["as it is", (key) => key],
    ["with one escape of a URL", (key) => key.replace("s", "%73").replace("wo", "w%6f")],
    ["with an escape in its middle", (key) => key.replace("test", "te%73t").replace("owner", "ow%6Eer")],
    ["percent-encoded", encodePercent],
    ["percent-encoded in capitals", (key) => encodePercent(key).toUpperCase()],
    ["JSON-escaped", escapeJson],
  ];
  const places: readonly (readonly [string, (key: string) => [query: string, fields: Fields]])[] = [
    [
      "the key's own fields",
      (key) => ["", { authorization: `Bearer ${key}`, "x-goog-api-key": key, "x-acme-api-key": key }],
    ],
    ["other fields", (key) => ["", { "x-copy": key, "user-agent": `tool/1 ${key}` }]],
    ["a field of several words", (key) => ["", { "x-copy": `a "${key}", b; c=${key}` }]],
    ["a sentence", (key) => ["", { "x-copy": `This is my key: ${key}.` }]],
    ["a field's name", (key) => ["", { [key.replaceAll(/[^\w-]/g, "")]: "1" }]],
    ["a cookie", (key) => ["", { cookie: `a=${key}` }]],
    ["the parameter `key`", (key) => [`?key=${key}&b=1`, {}]],
    ["another parameter", (key) => [`?a=1&copy=${key}&b=1`, {}]],
    ["a parameter's name", (key) => [`?${key}`, {}]],
  ];
  const rows = spellings.flatMap(([how, write]) =>
    places.map(([where, put]) => [where, how, write, put] as const),
  );

  test("a request with the key in its path is refused", async () => {
    for (const key of [stored.key, other.key])
      expect((await world.request(`/v1/responses/${key}`, bearer(stored.key))).status).toBe(400);
  });

  test.each(rows)("a key in %s (%s) does not go upstream", async (where, _, write, put) => {
    for (const [group, dialect] of [
      [plain, "messages"],
      [page, "content"],
      [crossed, "messages"],
      [stored, "chat"],
    ] as const)
      // The key of the request, and that of another group.
      for (const key of [group.key, other.key]) {
        const before = group.channel().seen.length;
        const [query, fields] = put(write(key));
        const own = where === "the key's own fields" ? { ...fields, "x-gateway-key": group.key } : fields;
        const { target, body } = ask(dialect);
        await world.request(target + query, { ...keyFields(dialect, group.key), ...own }, body);
        const seen = group.channel().seen.slice(before);
        const text = JSON.stringify(seen.map(({ path, fields: all }) => [path, all]));
        expect([seen.length, leaks(text, key), leaks(text.toLowerCase(), key)]).toEqual([1, false, false]);
      }
  });
});

/** What every complete stream has near its end. */
const ENDS: Readonly<Record<Dialect, string>> = {
  messages: "message_stop",
  responses: "response.completed",
  chat: "[DONE]",
  content: "finishReason",
};

/** The upstream repeats the text in an answer, a compressed one, an error and a stream. All must arrive, without the secret. */
async function repeat(group: Group, dialect: Dialect, text: string, secret: string): Promise<void> {
  const body = JSON.stringify(whole(dialect, { text: "MARK" })).replace("MARK", `a disk-${text}.../x b`);
  const packed = { body: gzipSync(body), fields: { "content-encoding": "gzip" } };
  group.channel().next({ body, fields: { "x-echo": text } }, packed, { status: 400, body });
  for (let count = 0; count < 3; count += 1) {
    const answer = await group.ask(dialect);
    expect(leaks(answer.bytes.toString(), secret)).toBe(false);
    expect(answer.text).toContain(" b");
  }
  const pieces = stream(dialect, { text: "MARK" });
  const all = pieces.join("").replaceAll("MARK", `a disk-${text}.../x b`);
  const from = all.indexOf(text);
  for (let at = from; at < from + text.length; at += Math.max(7, text.length >> 5)) {
    group.channel().next(async (_, out) => {
      out.head(200, { "content-type": "text/event-stream" });
      out.write(all.slice(0, at));
      await Bun.sleep(2);
      out.write(all.slice(at));
      out.end();
    });
    const answer = await group.ask(dialect, { stream: true });
    expect(leaks(answer.text, secret)).toBe(false);
    expect(answer.text).toContain(ENDS[dialect]);
  }
}

describe("P189: answers contain no channel credential and no key, in one piece or split over the chunks of a stream", () => {
  const writings = [
    ["as it is", (text: string) => text],
    ["JSON-escaped", escapeJson],
    ["as JSON is written", (text: string) => JSON.stringify(text).slice(1, -1)],
    [
      "as JSON with escaped slashes",
      (text: string) => JSON.stringify(text).slice(1, -1).replaceAll("/", "\\/"),
    ],
    ["percent-encoded", encodePercent],
    ["percent-encoded in capitals", (text: string) => encodePercent(text).toUpperCase()],
  ] as const;
  const secrets = [
    ["a credential", plain, plain.credentialOf(), "messages"],
    ["a credential with signs", own, SIGNS, "messages"],
    ["another channel's credential", other, chat.credentialOf(), "messages"],
    ["a long credential", long, LONG, "messages"],
    ["a key", own, own.key, "messages"],
    ["another key", plain, MADE, "messages"],
    ["a key that another request brought", plain, BROUGHT, "messages"],
    ["a key that consists of words", stored, other.key, "responses"],
    ["a responses channel's credential", stored, stored.credentialOf(), "responses"],
    ["a chat channel's credential", chat, chat.credentialOf(), "chat"],
    ["a content channel's credential", page, page.credentialOf(), "content"],
  ] as const;
  const rows = secrets.flatMap((secret) =>
    writings.map((writing) => [secret[0], writing[0], secret, writing[1]] as const),
  );
  test.each(rows)("no answer repeats %s (%s)", async (_, __, [, group, secret, dialect], write) => {
    if (secret === BROUGHT) expect((await world.request("/v1/models", bearer(BROUGHT))).status).toBe(200);
    await repeat(group, dialect, write(secret), secret);
  });

  test("a secret in the upstream's content-encoding does not reach the client", async () => {
    own.channel().next({ fields: { "content-encoding": SIGNS } });
    const answer = await own.ask("messages");
    expect([answer.status, leaks(answer.bytes.toString(), SIGNS)]).toEqual([502, false]);
  });

  test("no secret reaches a client, even if a conversion joins the parts of a split secret", async () => {
    const [start, end] = [stored.credentialOf().slice(0, 11), stored.credentialOf().slice(11)] as const;
    const parts = [start, end].map((text) => ({ type: "output_text", text, annotations: [] }));
    const item = { type: "message", id: "m", role: "assistant", status: "completed", content: parts };
    stored.channel().next({ body: { ...whole("responses"), output: [item] } });
    const answer = await stored.ask("chat");
    expect([answer.status, leaks(answer.text, stored.credentialOf())]).toEqual([200, false]);
    // The last event of a response repeats the text of its deltas, joined.
    const pieces = stream("chat", { text: "MARK" });
    const deltas = [start, end, "x".repeat(200_000)].map((text) => pieces[1]!.replace("MARK", text));
    for (const many of [deltas, deltas.slice(0, 2)]) {
      chat.channel().next({ pieces: [pieces[0]!, ...many, ...pieces.slice(2)] });
      const { text } = await chat.ask("responses", { stream: true });
      expect([text.includes("response.completed"), leaks(text, start + end)]).toEqual([true, false]);
    }
  });

  test("a long event of a conversion is masked and sent in pieces, so that other requests get their turns", async () => {
    const pieces = stream("chat", { text: "MARK" });
    const delta = pieces[1]!.replace("MARK", "100% ".repeat(40_000) + chat.credentialOf());
    for (const key of [chat.key, chat.keyOf("recorded")]) {
      chat.channel().next({ pieces: [pieces[0]!, delta, ...pieces.slice(2)] });
      const { text, bytes } = await chat.ask("responses", { stream: true }, bearer(key));
      expect([text.includes("response.completed"), leaks(text, chat.credentialOf())]).toEqual([true, false]);
      expect(text.split("100% ")).toHaveLength(5 * 40_000 + 1);
      const sizes = bytes.toString("latin1").matchAll(/^([\da-f]+)\r$/gm);
      expect(Math.max(...Array.from(sizes, ([, size]) => Number.parseInt(size!, 16)))).toBeLessThan(40_000);
    }
  });

  test("a list of models and an error that repeats the path contain no credential and no key", async () => {
    own.channel().models = ["test-model", SIGNS, MADE];
    const fields = keyFields("messages", own.key);
    const list = await world.request("/v1/models", fields);
    expect([list.status, leaks(list.text, SIGNS), leaks(list.text, MADE)]).toEqual([200, false, false]);
    for (const path of [`/v1/models/x-${MADE}`, `/v1/${MADE}`, `/v1/models/${MADE}`])
      expect([path, leaks((await world.request(path, fields)).text, MADE)]).toEqual([path, false]);
  });
});

const PROMPT = "PROMPT-of-a-person-about-nothing";
const RESPONSE = "RESPONSE-of-a-model-about-nothing";
const STRANGER = "sk-of-nobody-0123456789";
const SPOKEN = {
  system: `${PROMPT} in the system prompt`,
  messages: [
    { role: "user", content: PROMPT },
    {
      role: "assistant",
      content: [
        { type: "text", text: `${PROMPT} in a block` },
        { type: "tool_use", id: "call_1", name: "run", input: { word: PROMPT } },
      ],
    },
    {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "call_1", content: PROMPT },
        { type: "text", text: `${PROMPT} again` },
      ],
    },
  ],
  tools: [{ name: "run", description: `${PROMPT} in a tool`, input_schema: { type: "object" } }],
};
const CLAUDE = {
  "user-agent": "claude-cli/2.1.332 (external, cli)",
  "x-claude-code-session-id": "session-of-privacy",
};
const said = stream("messages", { text: RESPONSE });
const failed = { type: "error", error: { type: "api_error", message: `no: ${PROMPT}` } };
const IMAGE = { role: "user", content: [{ type: "image", source: { type: PROMPT } }] };

/** Each row has a request's fate, the client's status, the group, the body, the upstream's script, and more fields. */
const SENT: readonly (readonly [string, number, Group, object | string, (Script | null)?, Fields?])[] = [
  ["is answered whole", 200, plain, SPOKEN, { body: whole("messages", { text: RESPONSE }) }],
  ["is answered as a stream", 200, plain, { ...SPOKEN, stream: true }, { pieces: said }],
  ["is cut", 200, plain, { ...SPOKEN, stream: true }, { pieces: said.slice(0, 3), ending: "cut" }],
  [
    "fails in its stream",
    200,
    plain,
    { ...SPOKEN, stream: true },
    { pieces: [...said.slice(0, 3), `event: error\ndata: ${JSON.stringify(failed)}\n\n`] },
  ],
  ["is refused by the upstream", 400, plain, SPOKEN, { status: 400, body: failed }],
  [
    "is answered with a page",
    502,
    page,
    SPOKEN,
    { body: `<html>${RESPONSE}</html>`, fields: { "content-type": "text/html" } },
  ],
  ["is converted", 200, crossed, SPOKEN, { body: whole("chat", { text: RESPONSE }) }],
  ["cannot be converted", 400, crossed, { ...SPOKEN, messages: [IMAGE] }],
  ["fails", 500, page, SPOKEN, { status: 500, body: failed }],
  ["makes its channel rest", 429, busy, SPOKEN, { status: 429, body: failed }],
  ["has a key for a model", 400, plain, { ...SPOKEN, model: other.key }],
  ["has a key for a tool", 200, plain, { ...SPOKEN, tools: [{ name: other.key, input_schema: {} }] }],
  [
    "has its key for a session",
    200,
    plain,
    SPOKEN,
    {},
    { "x-claude-code-session-id": plain.key, "x-gateway-label": plain.key, "user-agent": plain.key },
  ],
  [
    "is answered with the credential",
    200,
    plain,
    SPOKEN,
    {
      body: whole("messages", { model: plain.credentialOf() }),
      fields: { "request-id": plain.credentialOf() },
    },
  ],
  ["is not JSON", 400, plain, `{"model":"test-model","messages":[${PROMPT}`],
  ["is a word", 400, plain, PROMPT],
  ["is not an object", 400, plain, JSON.stringify([PROMPT])],
  ["has a model that is not a text", 400, plain, { ...SPOKEN, model: { name: PROMPT } }],
  [
    "has two models",
    400,
    alias,
    JSON.stringify({ model: "test-model", ...SPOKEN }).replace("{", '{"model":"other-model",'),
  ],
  ["has an encoding that it is not in", 400, plain, PROMPT, null, { "content-encoding": "gzip" }],
  ["has an unknown key", 401, plain, SPOKEN, null, { "x-gateway-key": STRANGER }],
];

test("P190, P191: ledger, log, spans and other files contain no secret, prompt or response", async () => {
  for (const [what, status, group, sent, script, more] of SENT) {
    if (script) group.channel().next(script);
    const isContent = group === page;
    const body = isContent || typeof sent === "string" ? sent : { model: "test-model", ...sent };
    const target = isContent ? ask("content").target : "/v1/messages";
    const fields = { ...keyFields(isContent ? "content" : "messages", group.key), ...CLAUDE, ...more };
    expect([what, (await world.request(target, fields, body)).status]).toEqual([what, status]);
  }
  for (const key of [plain.key, other.key])
    await world.request(`/v1/strange/${key}`, keyFields("messages", plain.key), PROMPT);
  await world.request(`${ask("content").target}?key=${STRANGER}`, {}, SPOKEN);
  const { length } = spans;
  await world.line(await other.ask("messages"));
  await eventually(() => spans.slice(length).join("").includes("other"));
  // When a gateway stops, it first writes all that still waits to be written.
  const { server } = world;
  await world.halt();
  const kept =
    server.stdout() + server.stderr() + readFiles(world.folder, /gateway\.yaml$/) + spans.join("\n");
  await world.start();
  const secrets = [plain, other, crossed, page].flatMap((group) => [group.key, group.credentialOf()]);
  for (const text of [PROMPT, RESPONSE, STRANGER, ...secrets])
    expect([text, leaks(kept, text)]).toEqual([text, false]);
});

test("P192: the gateway's own files have mode 0600, whatever the umask is", async () => {
  const prefix = ["sh", "-c", 'umask 0; exec "$0" "$@"'];
  const set = (own: World) => own.group("own", { key: { record: "kept", limits: { usd_total: "0.002" } } });
  const config = { alerts: { at: [20] }, recordings: {} };
  const [own, group] = await openOwnWorld({ prefix, config }, set);
  await own.line(await group.ask("messages", {}, CLAUDE));
  const link = (await own.run("open", "--print", "--config", own.path("gateway.yaml"))).stdout;
  const from = { origin: own.url, host: own.url.slice(7), "content-type": "application/json" };
  await own.request("/console/api/sign-in", from, { code: link.trim().split("#code=")[1] });
  const check = (): string[] => {
    const found = readdirSync(own.folder, { recursive: true }).map(String);
    const made = found.filter((name) => !/^(?:home$|home\/\.(?:bun|cache)|gateway\.yaml$)/.test(name));
    for (const name of made) {
      const stat = lstatSync(own.path(name), { throwIfNoEntry: false });
      if (stat === undefined || stat.isSocket()) continue;
      const expected = stat.isFile() ? "600" : "700";
      expect([name, (stat.mode & 0o777).toString(8)]).toEqual([name, expected]);
    }
    return made;
  };
  const running = check();
  await own.halt();
  const all = [...running, ...check()].join("\n");
  const ends = " .lock .open .index .channels.json .alerts.json .context .sign-ins.json".split(" ");
  for (const end of ends)
    expect(all).toMatch(new RegExp(`^ledger\\.jsonl${end.replaceAll(".", "\\.")}$`, "m"));
  expect(all).toContain("recordings/kept");
});

test("P193: a gateway on loopback refuses requests for other host names", async () => {
  const fields = keyFields("messages", plain.key);
  const to = (host: string, target = "/v1/messages") =>
    rawRequest(world.port, {
      target,
      fields: { ...fields, host },
      ...(target === "/v1/messages" && { body: ask("messages").body }),
    });
  const before = plain.channel().seen.length;
  for (const host of [
    "evil.example",
    "127.0.0.1.evil.example",
    "rebound.example:80",
    "10.1.2.3:80",
    "localhost\r\nhost: evil",
  ])
    for (const target of ["/v1/messages", "/v1/models", "/metrics", "/healthz", "/console", "/strange"])
      expect([host, target, (await to(host, target)).status]).toEqual([
        host,
        target,
        host.includes("\n") ? 400 : 403,
      ]);
  expect(plain.channel().seen).toHaveLength(before);
  for (const host of ["127.0.0.1", `localhost:${world.port}`, `[::1]:${world.port}`])
    expect((await to(host)).status).toBe(200);
  const config = { allowed_hosts: ["gateway.example"] };
  const [own, group] = await openOwnWorld({ config }, (own) => own.group("named"));
  const named = { ...keyFields("messages", group.key), host: "gateway.example" };
  expect((await own.request("/v1/messages", named, ask("messages").body)).status).toBe(200);
  for (const host of ["evil-gateway.example", "gateway.example.evil"])
    expect((await own.request("/v1/models", { ...named, host })).status).toBe(403);
});

test.each([301, 302, 303, 307, 308])("P194: redirects are not followed: %d", async (status) => {
  const before = plain.channel().seen.length;
  const location = `${plain.channel().url}/v1/messages`;
  redirected.channel().next({ status, fields: { location }, body: "" });
  expect((await redirected.ask("messages")).status).toBeGreaterThanOrEqual(400);
  await world.run("channels", "probe", redirected.channelName());
  expect(plain.channel().seen).toHaveLength(before);
});

test("P122, P194: certificates are verified, and nothing is sent before that", async () => {
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
  await own.line(await known.ask("messages"));
  expect(own.lines()).toHaveLength(1);
  await own.stop();
  secure.close();
});

test("P75, P195: a web page of another origin gets 403 for a key in the URL, unless cors_origins allows it", async () => {
  const target = (key: string) => `/v1beta/models/test-model:generateContent?key=${key}`;
  const origin = "https://page.example";
  const { body } = ask("content");
  const before = page.channel().seen.length;
  for (const other of [origin, "null", "http://127.0.0.1:1", `https://127.0.0.1:${world.port}`])
    expect([other, (await world.request(target(page.key), { origin: other }, body)).status]).toEqual([
      other,
      403,
    ]);
  const same = { origin: world.url, host: `127.0.0.1:${world.port}` };
  expect((await world.request(`/v1beta/models?key=${page.key}`, same)).status).toBe(200);
  for (const site of ["cross-site", "same-site"])
    for (const [path, sent] of [[target(page.key), body], [`/v1beta/models?key=${page.key}`]] as const)
      expect((await world.request(path, { "sec-fetch-site": site }, sent)).status).toBe(403);
  expect(page.channel().seen).toHaveLength(before);
  const config = { cors_origins: [origin] };
  const set = (own: World) => own.group("cors", { platform: "content" });
  const [own, group] = await openOwnWorld({ config }, set);
  const allowed = await own.request(target(group.key), { origin }, body);
  expect([allowed.status, allowed.field("access-control-allow-origin")]).toEqual([200, origin]);
  const preflight = { origin, "access-control-request-method": "POST" };
  const may = await own.request(target(group.key), preflight, undefined, "OPTIONS");
  expect([may.status, may.field("x-request-id")]).toEqual([204, expect.stringMatching(/^req_/)]);
  for (const strange of ["https://other.example", `${origin}.evil.example`, "http://page.example"])
    expect((await own.request(target(group.key), { origin: strange }, body)).status).toBe(403);
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

describe("P196: a body that may name a second model gets 400 if a list of models, an alias or a limit in USD applies", () => {
  test("a model in the path and another one in the body get 400", async () => {
    const { target, body } = ask("content");
    const named = { ...body, model: "other-model" };
    const answer = await world.request(target, keyFields("content", narrow.key), named);
    expect([answer.status, narrow.channel().seen.length]).toEqual([400, 0]);
  });

  test.each([alias, globs, models, limited, total, session, grouped])(
    "a second model in the body gets 400 in the group $name",
    async (group) => {
      for (const body of DOUBLE) {
        const before = group.channel().seen.length;
        const answer = await world.request("/v1/messages", keyFields("messages", group.key), body);
        expect([body, answer.status, group.channel().seen.length - before]).toEqual([body, 400, 0]);
      }
    },
  );
});
