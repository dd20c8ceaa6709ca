// The contract's promises about endpoints, keys, headers and model names.

import { describe, expect, test } from "bun:test";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { ask, type Dialect, stream, whole } from "../world/answers.ts";
import { rawRequest } from "../../harness/raw.ts";
import type { Fields } from "../world/upstream.ts";
import { bearer, type BuiltConfig, openOwnWorld, keyFields, useWorld, type World } from "../world/world.ts";

const world = useWorld({ config: { vendor: "acme" } });
const messages = world.group("messages", {
  keys: { off: { disabled: true }, old: { expires: "2026-01-01" } },
});
const responses = world.group("responses", {
  platform: "responses",
  channels: { main: { aliases: { far: "far-model" } } },
});
const content = world.group("content", {
  platform: "content",
  channels: { main: { aliases: { quick: "quick-model" } } },
});
const relay = world.group("relay", { platform: "relay" });
const groups = { messages, responses, content, relay };
const files = world.group("files", { group: { other_paths: ["/v1/files"] } });
const betaFiles = world.group("beta-files", {
  platform: "content",
  group: { other_paths: ["/v1beta/files"] },
});
const relayFiles = world.group("relay-files", { platform: "relay", group: { other_paths: ["/v1/files"] } });
const limited = ["usd_per_day", "usd_per_month", "usd_total", "usd_per_session"].map((limit) =>
  world.group(`limited-${limit.slice(4)}`, {
    group: { other_paths: ["/v1/files"] },
    key: { limits: { [limit]: 5, unpriced: "allow" } },
  }),
);
const limitedGroup = world.group("limited-group", {
  group: { other_paths: ["/v1/files"], limits: { usd_total: 5, unpriced: "allow" } },
});
const laterOnly = world.group("later-only", {
  channels: { main: {}, second: { priority: 2, models: ["test-*"] } },
  group: { other_paths: ["/v1/files"] },
});
const paced = world.group("paced", {
  group: { other_paths: ["/v1/files"] },
  key: { limits: { requests_per_minute: 5 } },
});
const only = world.group("only", {
  channels: { main: { models: ["test-*"] } },
  group: { other_paths: ["/v1/files"] },
});
const named = world.group("named", {
  channels: {
    first: { models: ["test-model", "claude-*", "big-*-x-*-y"], aliases: { fast: "test-model" } },
    second: { models: ["other-model"], priority: 2 },
  },
});
const listed = world.group("listed", { channels: { first: {}, second: { priority: 2 } } });
const apart = world.group("apart", { channels: { first: {}, second: { priority: 2 } } });
const aliases = world.group("aliases", {
  channels: {
    main: {
      aliases: {
        "big-*": "other-model",
        "big-one-*": "test-model",
        "b*-with-a-long-end": "test-model",
        "big-one": "exact-model",
        plain: "test-model",
      },
    },
  },
});
const fallback = world.group("fallback", {
  channels: { main: { models: ["test-model"], aliases: { fast: "test-model" } } },
  group: { default_model: "test-model" },
});
const hidden = world.group("hidden", {
  channels: { main: { models: ["hidden-model", "test-model"] } },
  group: { default_model: "test-model" },
});
const unlisted = world.group("unlisted", {
  channels: { first: { aliases: { "odd-*": "far-model" } }, second: { priority: 2 } },
  group: { default_model: "test-model" },
});
const converted = world.group("converted", {
  channels: { main: { platform: "chat" } },
  group: { convert: true, default_model: "test-model" },
});
const all = world.group("all", { key: { metrics: "all" } });
const plain = world.group("plain");

const POST = { a: 1 };
const CONTENT = { contents: [] };
const VERBS = [
  ["streamGenerateContent", CONTENT],
  ["generateContent", CONTENT],
  ["countTokens", CONTENT],
  ["embedContent", { content: { parts: [] } }],
  ["batchEmbedContents", { requests: [] }],
] as const;

/** Each row has a method, a path, the platform whose key it needs, and a body. */
const ENDPOINTS: readonly (readonly [string, string, keyof typeof groups, object?])[] = [
  ["POST", "/v1/messages", "messages", ask("messages").body],
  ["POST", "/v1/messages/count_tokens", "messages", ask("messages").body],
  ["GET", "/v1/models", "messages"],
  ["GET", "/v1/models/test-model", "messages"],
  ["POST", "/v1/responses", "responses", ask("responses").body],
  ["POST", "/v1/responses/compact", "responses", ask("responses").body],
  ["POST", "/v1/responses/input_tokens", "responses", ask("responses").body],
  ["GET", "/v1/responses/resp_1", "responses"],
  ["DELETE", "/v1/responses/resp_1", "responses"],
  ["GET", "/v1/responses/resp_1/input_items", "responses"],
  ["POST", "/v1/responses/resp_1/cancel", "responses", {}],
  ["POST", "/v1/chat/completions", "responses", ask("chat").body],
  ["POST", "/v1/embeddings", "responses", { model: "test-model", input: "Hello" }],
  ["GET", "/v1/models", "responses"],
  ["GET", "/v1/models/test-model", "responses"],
  ...VERBS.map(([verb, body]) => ["POST", `/v1beta/models/test-model:${verb}`, "content", body] as const),
  ...VERBS.map(([verb, body]) => ["POST", `/v1/models/test-model:${verb}`, "content", body] as const),
  ["GET", "/v1beta/models", "content"],
  ["GET", "/v1beta/models/test-model", "content"],
  ["GET", "/relay/models", "relay"],
  ["GET", "/relay/v1/models", "relay"],
  ["GET", "/relay/v1beta/models", "relay"],
  ["POST", "/relay/v1/messages", "relay", ask("messages").body],
  ["POST", "/relay/v1/messages/count_tokens", "relay", ask("messages").body],
  ...VERBS.map(([verb, body]) => ["POST", `/relay/v1beta/models/test-model:${verb}`, "relay", body] as const),
  ...VERBS.map(([verb, body]) => ["POST", `/relay/v1/models/test-model:${verb}`, "relay", body] as const),
];

test("P1: the seven endpoints of docs/interface.md take keys of their platform and refuse keys of other platforms", async () => {
  const interfaces: readonly (readonly [string, readonly string[], object?])[] = [
    ["/v1/messages", ["messages"], ask("messages").body],
    ["/v1/responses", ["responses"], ask("responses").body],
    ["/v1/chat/completions", ["responses"], ask("chat").body],
    ["/v1beta/models/test-model:streamGenerateContent?alt=sse", ["content"], ask("content").body],
    ["/v1/models", ["messages", "responses", "content"]],
    ["/v1beta/models", ["content"]],
    ["/relay/models", ["relay"]],
  ];
  for (const [target, platforms, body] of interfaces) {
    for (const [platform, { key }] of Object.entries(groups)) {
      const fields = target.includes("v1beta") ? { "x-acme-api-key": key } : bearer(key);
      const answer = await world.request(target, fields, body);
      expect([target, platform, answer.status]).toEqual([
        target,
        platform,
        platforms.includes(platform) ? 200 : 403,
      ]);
    }
  }
});

describe("P60: the endpoints of the contract's table are served", () => {
  test.each(ENDPOINTS.map((row) => [...row, undefined] as const))(
    "%s %s is served for a key of %s",
    async (...row) => {
      const [method, path, platform, body] = row;
      const fields = { "x-gateway-key": groups[platform].key };
      const { seen } = groups[platform].channel();
      const before = seen.length;
      const answer = await world.request(`${path}?x=1`, fields, body, method);
      expect(answer.text).not.toContain('"error"');
      expect(answer.status).toBe(200);
      // Chat Completions are converted for a responses channel. The gateway answers model lists itself.
      const sent = path.includes("/chat/") ? "/v1/responses" : `${path.replace("/relay", "")}?x=1`;
      const isList = /\/models(?:$|\/[^:]*$)/.test(path);
      expect(seen.slice(before).map((each) => `${each.method} ${each.path}`)).toEqual(
        isList ? [] : [`${method} ${sent}`],
      );
    },
  );

  test.each(["/", "/relay/", "/api/hello", "/relay/api/hello", "/healthz", "/metrics", "/console"])(
    "the gateway's own %s needs no key",
    async (path) => {
      expect((await world.request(path)).status).toBe(200);
    },
  );

  test.each(["/v1/alpha/search", "/v1/images/generations", "/v1/images/edits"])(
    "%s gets 404 if the group's channel is not at OpenAI's own address",
    async (path) => {
      expect((await world.request(path, bearer(responses.key), { model: "test-model" })).status).toBe(404);
    },
  );
});

test("P60: relay paths begin with relay_prefix, and a base URL may have a path and a version", async () => {
  const set = (own: World) =>
    own.group("far", { platform: "relay", channels: { main: {}, deep: { priority: 2 } } });
  const config = ({ channels, groups, keys }: BuiltConfig) => {
    const [main, deep] = Object.keys(channels);
    const longer = { ...channels[deep!], base_url: `${String(channels[deep!]!["base_url"])}/path/v1/` };
    return {
      relay_prefix: "far-away",
      channels: { [main!]: channels[main!], [deep!]: longer },
      groups,
      keys,
    };
  };
  const [own, group] = await openOwnWorld({ config }, set);
  const { body } = ask("messages");
  group.channel().next({ status: 500, body: {} });
  expect((await own.request("/far-away/v1/messages", bearer(group.key), body)).status).toBe(200);
  expect(group.channel().seen.map(({ path }) => path)).toEqual(["/v1/messages"]);
  expect(group.channel("deep").seen.map(({ path }) => path)).toEqual(["/path/v1/messages"]);
  expect((await own.request("/relay/v1/messages", bearer(group.key), body)).status).toBe(404);
});

test("P61: a path that is not listed gets 404, and a wrong method on a listed path gets 405 with Allow", async () => {
  const strange = await world.request("/v1/strange", bearer(messages.key), POST);
  expect(strange.status).toBe(404);
  for (const [method, path, platform] of ENDPOINTS) {
    const fields = { "x-gateway-key": groups[platform].key };
    const wrong = path.includes("resp_1") ? ["PATCH"] : ["PATCH", "PUT", "DELETE"];
    for (const verb of [...wrong, method === "POST" ? "GET" : "OPTIONS"]) {
      const other = await world.request(path, fields, POST, verb);
      const isAllowed = other.field("allow")?.split(", ").includes(method);
      expect([verb, path, other.status, isAllowed]).toEqual([verb, path, 405, true]);
    }
    const deeper = await world.request(`${path.replace(/^\/relay/, "")}/x/strange`, fields, POST);
    if (!/:|models/.test(path)) expect([path, deeper.status]).toEqual([path, 404]);
  }
  for (const path of ["/", "/relay/api/hello", "/healthz", "/metrics"]) {
    const own = await world.request(path, {}, POST);
    expect([path, own.status, own.field("allow")]).toEqual([path, 405, "GET, HEAD"]);
  }
  expect(messages.channel().seen.filter(({ path }) => path.includes("strange"))).toEqual([]);
});

test("P63: GET and POST to a path of other_paths, or to a path below it, go upstream with the channel's credential", async () => {
  const get = await world.request("/v1/files/abc?limit=2", keyFields("messages", files.key));
  const post = await world.request("/v1/files", keyFields("messages", files.key), { purpose: "test" });
  const beyond = await world.request("/v1/filesystem", keyFields("messages", files.key));
  expect([get.status, post.status, beyond.status]).toEqual([200, 200, 404]);
  const seen = files.channel().seen.slice(-2);
  expect(seen.map(({ method, path }) => `${method} ${path}`)).toEqual([
    "GET /v1/files/abc?limit=2",
    "POST /v1/files",
  ]);
  expect(seen[1]!.text).toBe('{"purpose":"test"}');
  expect(await world.line(post)).toMatchObject({ endpoint: "other", path: "/v1/files", basis: "unknown" });
  for (const each of seen) expect(each.field("x-api-key")).toBe(files.credentialOf());
  for (const method of ["DELETE", "PUT", "PATCH"]) {
    const { status } = await world.request("/v1/files/abc", keyFields("messages", files.key), {}, method);
    expect([method, [404, 405].includes(status), files.channel().seen.length]).toEqual([method, true, 2]);
  }
});

test.each([
  ["content", "/v1beta/files/a", betaFiles, "/v1beta/files/a"],
  ["relay", "/relay/v1/files/a", relayFiles, "/v1/files/a"],
] as const)("P63: a %s group forwards the paths in other_paths", async (_, target, group, path) => {
  expect((await world.request(target, { "x-gateway-key": group.key })).status).toBe(200);
  expect(group.channel().seen.map((seen) => seen.path)).toEqual([path]);
  expect(group.channel().seen[0]!.fields.flat().join("\n")).toContain(group.credentialOf());
});

test.each([...limited, limitedGroup, only, laterOnly])(
  "P64: a path of other_paths gets 403 if a limit in USD applies or a channel has `models`: $name",
  async (group) => {
    const answer = await world.request("/v1/files", keyFields("messages", group.key));
    expect(answer.status).toBe(403);
    expect(group.channel().seen).toEqual([]);
  },
);

test("P64: a path of other_paths is forwarded where a limit on requests applies", async () => {
  const answer = await world.request("/v1/files", keyFields("messages", paced.key));
  expect(answer.status).toBe(200);
  expect(paced.channel().seen).toHaveLength(1);
});

/** Each row has the endpoint's dialect, its platform, and the headers from which it reads a key. */
const KEY_HEADERS: readonly (readonly [Dialect, keyof typeof groups, (key: string) => readonly Fields[]])[] =
  [
    ["messages", "messages", (key) => [{ "x-api-key": key }, bearer(key)]],
    ["responses", "responses", (key) => [bearer(key)]],
    ["chat", "responses", (key) => [bearer(key)]],
    ["content", "content", (key) => [{ "x-acme-api-key": key }, bearer(key)]],
  ];

test.each(KEY_HEADERS)(
  "P65: %s endpoints read the key from their own headers",
  async (dialect, of, headers) => {
    const { target, body } = ask(dialect);
    const strange = await world.request(target, { "x-strange-key": groups[of].key }, body);
    expect(strange.status).toBe(401);
    const own = headers(groups[of].key);
    for (const fields of [
      bearer(groups[of].key),
      { "x-api-key": groups[of].key },
      { "x-acme-api-key": groups[of].key },
    ]) {
      const { status } = await world.request(target, fields, body);
      expect([fields, status]).toEqual([
        fields,
        own.some((each) => Bun.deepEquals(each, fields)) ? 200 : 401,
      ]);
    }
  },
);

test("P66: GET /v1/models accepts two more key headers, and content paths accept ?key=", async () => {
  for (const { key } of [messages, responses, content])
    for (const fields of [{ "x-api-key": key }, { "x-acme-api-key": key }])
      for (const path of ["/v1/models", "/v1/models/test-model"])
        expect((await world.request(path, fields)).status).toBe(200);
  const { target, body } = ask("content");
  expect((await world.request(`${target}?key=${content.key}`, {}, body)).status).toBe(200);
  expect((await world.request(target, bearer(content.key), body)).status).toBe(200);
  for (const [query, fields] of [
    [`?key=${content.key}`, {}],
    // The key in `Authorization` comes before the one in the query.
    [`?key=${relay.key}`, bearer(content.key)],
  ] as const)
    expect((await world.request(`/v1beta/models${query}`, fields)).status).toBe(200);
  expect((await world.request(`/v1/messages?key=${messages.key}`, {}, ask("messages").body)).status).toBe(
    401,
  );
});

test("P67: relay paths accept the key headers of messages and content", async () => {
  const headers: readonly Fields[] = [
    { "x-api-key": relay.key },
    { "x-acme-api-key": relay.key },
    bearer(relay.key),
  ];
  for (const fields of headers) {
    const generate = "/relay/v1beta/models/test-model:generateContent";
    const { body } = ask("content");
    if (!("x-acme-api-key" in fields))
      expect((await world.request("/relay/v1/messages", fields, ask("messages").body)).status).toBe(200);
    if (!("x-api-key" in fields)) expect((await world.request(generate, fields, body)).status).toBe(200);
    expect((await world.request(`${generate}?key=${relay.key}`, {}, body)).status).toBe(200);
    for (const path of ["/relay/models", "/relay/v1/models"])
      expect((await world.request(path, fields)).status).toBe(200);
  }
});

test("P68: x-gateway-key is accepted everywhere and is the only key that counts", async () => {
  for (const [method, path, platform, body] of ENDPOINTS) {
    const both = { "x-gateway-key": groups[platform].key, "x-api-key": "sk-unknown" };
    expect((await world.request(path, both, body, method)).status).toBe(200);
    for (const own of ["sk-unknown", ""]) {
      const wrong = { ...bearer(groups[platform].key), "x-gateway-key": own };
      expect((await world.request(path, wrong, body, method)).status).toBe(401);
    }
  }
});

test("P69: of a request's headers, the first with a known key counts, and Authorization comes before the others", async () => {
  const { target, body } = ask("messages");
  const unknownFirst = { ...bearer("sk-unknown-0123456789"), "x-api-key": messages.key };
  expect((await world.request(target, unknownFirst, body)).status).toBe(200);
  const both = await world.request(target, { "x-api-key": plain.key, ...bearer(messages.key) }, body);
  expect((await world.line(both))["key"]).toBe("messages");
  for (const [name, words] of Object.entries({ off: "is disabled", old: "expired at" })) {
    const known = { ...bearer(messages.keyOf(name)), "x-api-key": messages.key };
    expect((await world.request(target, known, body)).text).toContain(words);
  }
  const list = await world.request("/v1/models", { "x-api-key": named.key, ...bearer(messages.key) });
  expect(list.text).not.toContain('"fast"');
});

const ODD_BODY = `{ "messages" : [{"role":"user","model":"fast","content":"Gr\\u00fc\u00dfe \u{1F44B}"}],\n\t"model":"test-model","x":1.0e2,"max_tokens":5 }`;

test("P70: a request body goes upstream byte for byte", async () => {
  await world.request("/v1/messages", keyFields("messages", plain.key), ODD_BODY);
  expect(plain.channel().seen.at(-1)!.text).toBe(ODD_BODY);
  for (const [target, group] of [
    ["/v1/messages/count_tokens", messages],
    ["/v1/responses", responses],
    ["/v1/responses/compact", responses],
    ["/v1/embeddings", responses],
    ["/v1beta/models/test-model:generateContent", content],
    ["/relay/v1/messages", relay],
  ] as const) {
    await world.request(target, { "x-gateway-key": group.key }, ODD_BODY);
    expect([target, group.channel().seen.at(-1)!.text]).toEqual([target, ODD_BODY]);
  }
  const aliased = ODD_BODY.replace("test-model", "fast");
  await world.request("/v1/messages", keyFields("messages", named.key), aliased);
  expect(named.channel("first").seen.at(-1)!.text).toBe(ODD_BODY);
});

test.each([
  ["gzip", gzipSync(ODD_BODY)],
  ["x-gzip", gzipSync(ODD_BODY)],
  ["zstd", zstdCompressSync(ODD_BODY)],
  ["br", brotliCompressSync(ODD_BODY)],
  ["deflate", deflateSync(ODD_BODY)],
])("P71: an unchanged body with the encoding %s goes upstream as it arrived", async (encoding, bytes) => {
  const fields = { ...keyFields("messages", plain.key), "content-encoding": encoding };
  const answer = await world.request("/v1/messages", fields, new Uint8Array(bytes));
  expect(answer.status).toBe(200);
  const seen = plain.channel().seen.at(-1)!;
  expect(seen.field("content-encoding")).toBe(encoding);
  expect(seen.bytes.equals(bytes)).toBe(true);
});

const FORWARDED: Fields = {
  "anthropic-version": "2023-06-01",
  "anthropic-beta": "a-2026,b-2026",
  "user-agent": "tool/1.0",
  "x-unknown-of-tomorrow": "value; with=signs",
  accept: "application/json",
  // The names of the next fields resemble names in KEPT_BACK.
  originator: "codex_cli_rs",
  sector: "7",
  "x-gateways": "2",
  "openai-beta": "responses=v1",
};
const KEPT_BACK: Fields = {
  connection: "keep-alive, x-hop",
  "x-hop": "1",
  te: "trailers",
  "proxy-authorization": "Basic abc",
  "openai-organization": "org_client",
  "openai-project": "proj_client",
  "chatgpt-account-id": "account_client",
  "x-goog-user-project": "proj_client",
  "anthropic-workspace-id": "workspace_client",
  authorization: "Bearer of-another-gateway",
  "x-goog-api-key": "of-another",
  "api-key": "of-another",
  origin: "http://127.0.0.1",
  referer: "http://127.0.0.1/x",
  cookie: "a=b",
  "sec-fetch-mode": "cors",
  "sec-ch-ua": "x",
  "x-gateway-label": "label",
  "x-gateway-session": "session",
};

test("P72: every request header goes upstream, except for those that the contract lists", async () => {
  const fields = { ...keyFields("messages", plain.key), ...FORWARDED, ...KEPT_BACK };
  expect((await world.request("/v1/messages", fields, ask("messages").body)).status).toBe(200);
  const seen = plain.channel().seen.at(-1)!;
  for (const [name, value] of Object.entries(FORWARDED))
    expect([name, seen.field(name)]).toEqual([name, value]);
  for (const [name, value] of Object.entries(KEPT_BACK).slice(1))
    expect([name, seen.field(name)]).not.toEqual([name, value]);
  expect(seen.field("x-api-key")).toBe(plain.credentialOf());
});

test("P73: the upstream's status and every byte of its body come back", async () => {
  const odd = `{"id":"msg_1",  "type":"message","role":"assistant","model":"test-model","content":[{"type":"text","text":"\\u0041 é"}],"usage":{"input_tokens":1,"output_tokens":1},"stop_reason":"end_turn"}\n\n`;
  // This could be the beginning of a key, but the body ends here: it is passed on unmasked.
  const open = `: sk-${"A".repeat(30)}`;
  plain
    .channel()
    .next({ status: 203, body: odd }, { status: 400, body: `{ "error": {"message":"odd"} }${open}` });
  const good = await plain.ask("messages");
  expect([good.status, good.text]).toEqual([203, odd]);
  const bad = await plain.ask("messages");
  expect([bad.status, bad.text]).toEqual([400, `{ "error": {"message":"odd"} }${open}`]);
  const pieces = [
    ": sign of life\n\n",
    'event: message_start\ndata: {"type":"message_start","message":{"model":"test-model","usage":{"input_tokens":1,"output_tokens":1}}}\r\n\r\n',
    'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    open,
  ];
  plain.channel().next({ status: 203, pieces });
  const passed = await plain.ask("messages", { stream: true });
  expect([passed.status, passed.text]).toEqual([203, pieces.join("")]);
  for (const [dialect, group] of [
    ["responses", responses],
    ["content", content],
  ] as const) {
    const body = JSON.stringify(whole(dialect, { text: "\u00e9" }), null, 1).replace("\u00e9", "\\u00e9");
    const events = stream(dialect).map((event) => event.replace("data: {", 'data: { "x": 1.0,'));
    group.channel().next({ status: 203, body }, { pieces: events });
    const own = { "x-gateway-key": group.key };
    const answer = await group.ask(dialect, {}, own);
    const streamed = await group.ask(dialect, { stream: true }, own);
    expect([answer.status, answer.text, streamed.text]).toEqual([203, body, events.join("")]);
  }
});

test("P74: the upstream's headers come back, except for those that the contract lists", async () => {
  const kept = {
    "anthropic-ratelimit-requests-remaining": "99",
    "x-of-tomorrow": "value; with=signs",
    "request-id": "req_up",
    "retry-after": "3",
    "openai-processing-ms": "5",
    // The names of the next fields resemble names in `dropped`.
    "content-disposition": "inline",
    accessory: "1",
    "x-gateways": "2",
    "openai-version": "2020-10-01",
    "x-gateway-adjusted": "of-another-gateway",
  };
  const dropped = {
    "set-cookie": "a=b",
    "alt-svc": 'h3=":443"',
    "strict-transport-security": "max-age=1",
    "anthropic-organization-id": "org_upstream",
    "openai-organization": "org_upstream",
    "access-control-allow-origin": "*",
    "access-control-expose-headers": "*",
    "openai-project": "proj_upstream",
    "x-openai-organization": "org_upstream",
    "anthropic-workspace-id": "workspace_upstream",
    "set-cookie2": "a=b",
    "clear-site-data": '"*"',
    nel: "{}",
    refresh: "0; url=/",
    "report-to": "{}",
    "reporting-endpoints": 'a="https://x.example"',
    "service-worker-allowed": "/",
    "content-security-policy": "default-src *",
    "cross-origin-resource-policy": "cross-origin",
    "keep-alive": "timeout=99",
    connection: "keep-alive, x-hop",
    "x-hop": "1",
    "x-echo": `token ${plain.credentialOf()}`,
  };
  // The client gets the gateway's own id as `x-request-id` (P75).
  plain.channel().next({ fields: { ...kept, ...dropped, "x-request-id": "req_theirs" } });
  const answer = await plain.ask("messages");
  expect(answer.field("x-upstream-request-id")).toBe("req_theirs");
  for (const [name, value] of Object.entries(kept)) expect([name, answer.field(name)]).toEqual([name, value]);
  for (const [name, value] of Object.entries(dropped))
    expect([name, answer.field(name)]).not.toEqual([name, value]);
  expect(answer.bytes.toString()).not.toContain(plain.credentialOf());
});

test("P75: every response has x-request-id, the id of its ledger line", async () => {
  const answers = [
    await plain.ask("messages"),
    await plain.ask("messages", { stream: true }),
    await world.request("/v1/messages", {}, POST),
    await world.request("/v1/strange"),
    await world.request("/healthz"),
    await world.request("/"),
    await world.request("/api/hello"),
    await world.request("/metrics"),
    await world.request("/relay/models", bearer(relay.key)),
    await world.request("/v1/files", keyFields("messages", files.key)),
    await world.request("/v1/messages", keyFields("messages", plain.key), POST, "PATCH"),
    await world.request("/v1/models", { ...bearer(plain.key), host: "evil.example" }),
    await converted.ask("messages"),
  ];
  const ids = answers.map((answer) => answer.field("x-request-id") ?? "");
  for (const id of ids) expect(id).toMatch(/^req_\w+$/);
  expect(new Set(ids).size).toBe(ids.length);
  expect((await world.line(answers[0]!))["id"]).toBe(ids[0]);
});

test("P76: a messages client gets the upstream's id in the header request-id, or else the gateway's id", async () => {
  plain.channel().next({ fields: { "request-id": "req_of_upstream" } }, {}, { status: 400, body: {} });
  expect((await plain.ask("messages")).field("request-id")).toBe("req_of_upstream");
  converted.channel().next({ fields: { "x-request-id": "req_of_upstream" } });
  expect((await converted.ask("messages")).field("request-id")).toBe("req_of_upstream");
  const others = [
    await plain.ask("messages"),
    await plain.ask("messages"),
    await world.request("/v1/messages", {}, {}),
    await converted.ask("messages", { stream: true }),
    await world.request("/v1/messages/count_tokens", bearer(converted.key), ask("messages").body),
    await world.request("/v1/models", bearer(plain.key)),
    await world.request("/v1/messages", bearer(plain.key), {}, "PATCH"),
  ];
  expect(others.map(({ status }) => status)).toEqual([200, 400, 401, 200, 200, 200, 405]);
  for (const answer of others) expect(answer.field("request-id")).toBe(answer.field("x-request-id"));
});

const idsOf = (text: string): string[] => JSON.parse(text).data.map(({ id }: { id: string }) => id);

test("P77: a model list has the channels' models, filtered, with aliases, without duplicates, in the dialect's shape", async () => {
  const list = await world.request("/v1/models", bearer(named.key));
  expect(idsOf(list.text).toSorted()).toEqual(["fast", "other-model", "test-model"]);
  const google = await world.request("/v1beta/models", { "x-acme-api-key": content.key });
  const names = JSON.parse(google.text).models.map(({ name }: { name: string }) => name);
  expect(names.toSorted()).toEqual(["models/other-model", "models/quick", "models/test-model"]);
  const two = await world.request("/v1/models", bearer(listed.key));
  expect(idsOf(two.text)).toHaveLength(2);
  const aliased = await world.request("/v1/models", bearer(aliases.key));
  expect(idsOf(aliased.text).toSorted()).toEqual(["big-one", "other-model", "plain", "test-model"]);
  const filtered = await world.request("/v1/models", bearer(only.key));
  expect(idsOf(filtered.text)).toEqual(["test-model"]);
  // The list has the upstream's current models, from each page of the upstream's list.
  const newer = ["newer-1", "newer-2", "newer-3"];
  for (const group of [listed, content]) {
    group.channel().models = newer;
    const current = await world.request("/v1/models", { "x-gateway-key": group.key });
    for (const id of newer) expect(current.text).toContain(id);
    expect(current.text).toContain(group === content ? '"models":[' : '"data":[');
  }
  // The entry of a model that no upstream lists also has every member.
  const { data, ...around } = JSON.parse(aliased.text);
  expect(around).toEqual({ has_more: false, first_id: data[0].id, last_id: data.at(-1).id });
  const own = { type: "model", display_name: "big-one", created_at: expect.any(String) };
  expect(data).toContainEqual({ id: "big-one", ...own });
  const ofResponses = JSON.parse((await world.request("/v1/models", bearer(responses.key))).text);
  const made = { id: "far", object: "model", created: 0, owned_by: "gateway" };
  expect(ofResponses).toEqual({ object: "list", data: expect.arrayContaining([made]) });
  const supportedGenerationMethods = ["generateContent", "countTokens"];
  expect(JSON.parse(google.text).models).toContainEqual({
    name: "models/quick",
    displayName: "quick",
    supportedGenerationMethods,
  });
});

test("P1, P77: a relay group lists the models of messages and content, whether its upstream has one list or two", async () => {
  const { models } = relay.channel();
  relay.channel().models = (path) =>
    path.startsWith("/v1beta") ? ["of-content"] : path.startsWith("/v1/") ? ["of-messages"] : null;
  const list = await world.request("/relay/models", bearer(relay.key));
  expect(idsOf(list.text).toSorted()).toEqual(["of-content", "of-messages"]);
  // An upstream may also have one list for both dialects.
  relay.channel().models = (path) => (path.startsWith("/models") ? ["of-both"] : null);
  const one = await world.request("/relay/v1beta/models", bearer(relay.key));
  relay.channel().models = models;
  expect(one.text).toContain('"models/of-both"');
});

test("P78: a listed model goes to a channel that lists it", async () => {
  apart.channel("first").models = ["test-model"];
  apart.channel("second").models = ["second-model"];
  await world.request("/v1/models", bearer(apart.key));
  await apart.ask("messages", { model: "test-model" });
  await apart.ask("messages", { model: "second-model" });
  expect(apart.channel("first").seen.map(({ text }) => JSON.parse(text).model)).not.toContain("second-model");
  expect(apart.channel("second").seen.map(({ text }) => JSON.parse(text).model)).toEqual(["second-model"]);
});

test("P79: a channel that has `models` gets no request for a model that is not among them", async () => {
  const other = await named.ask("messages", { model: "other-model" });
  const strange = await named.ask("messages", { model: "strange-model" });
  const longer = await named.ask("messages", { model: "test-model-mini" });
  const unlike = await named.ask("messages", { model: "big-1-y" });
  expect([other.status, strange.status, longer.status, unlike.status]).toEqual([200, 404, 404, 404]);
  expect((await named.ask("messages", { model: "big-1-x-2-y" })).status).toBe(200);
  const { body } = ask("messages", { model: "strange-model" });
  const counted = await world.request("/v1/messages/count_tokens", bearer(named.key), body);
  expect(counted.status).toBe(404);
  const seen = named.channel("first").seen.map(({ text }) => JSON.parse(text).model);
  expect(seen.filter((model) => model !== "test-model")).toEqual(["big-1-x-2-y"]);
});

test.each([
  ["big-one", "exact-model"],
  ["big-one-two", "test-model"],
  ["big-two", "other-model"],
  ["big-two-with-a-long-end", "other-model"],
  ["plain", "test-model"],
])("P80: the most specific alias replaces the model: %s becomes %s", async (model, upstreams) => {
  expect((await aliases.ask("messages", { model })).status).toBe(200);
  expect(JSON.parse(aliases.channel().seen.at(-1)!.text).model).toBe(upstreams);
});

test("P81: default_model replaces a model only if no channel lists it and neither an alias nor `models` names it", async () => {
  for (const model of ["strange-model", "test-model", "fast"]) await fallback.ask("messages", { model });
  const seen = fallback.channel().seen.map(({ text }) => JSON.parse(text).model);
  expect(seen).toEqual(["test-model", "test-model", "test-model"]);
  unlisted.channel("second").models = ["rare-model"];
  for (const model of ["other-model", "strange-model", "odd-1"]) await unlisted.ask("messages", { model });
  const others = unlisted.channel().seen.map(({ text }) => JSON.parse(text).model);
  expect(others).toEqual(["other-model", "test-model", "far-model"]);
  // The upstream lists neither the default nor the model that `models` names.
  await world.request("/v1/models", bearer(hidden.key));
  await hidden.ask("messages", { model: "hidden-model" });
  expect(hidden.channel().seen.at(-1)!.text).toContain('"hidden-model"');
});

test("P82: x-gateway-adjusted names the model that default_model or an alias with * chose", async () => {
  const adjusted = async (group: typeof plain, model: string) =>
    (await group.ask("messages", { model })).field("x-gateway-adjusted");
  expect(await adjusted(fallback, "strange-model")).toBe("model=test-model");
  expect(await adjusted(aliases, "big-two")).toBe("model=other-model");
  expect(await adjusted(aliases, "plain")).toBeUndefined();
  expect(await adjusted(fallback, "test-model")).toBeUndefined();
  const both = await converted.ask("messages", { model: "strange-model", top_k: 5 });
  expect(both.field("x-gateway-adjusted")).toBe("model=test-model, top_k");
});

test("P83: with a key, /metrics shows that key's series, or all series if the key has `metrics: all`; without a key it shows no names or amounts", async () => {
  await world.line(await plain.ask("messages"));
  await world.line(await all.ask("messages"));
  const text = (await world.request("/metrics", bearer(plain.key))).text;
  expect(text).toContain('key="plain"');
  expect(text).not.toContain('key="all"');
  for (const name of ["x-api-key", "x-acme-api-key"])
    expect((await world.request("/metrics", { [name]: plain.key })).text).toContain('key="plain"');
  expect(text).toContain("usd");
  const every = (await world.request("/metrics", bearer(all.key))).text;
  expect(every).toContain('key="plain"');
  expect(every).toContain('key="all"');
  const nobody = (await world.request("/metrics")).text;
  expect(nobody).toContain("gateway_");
  expect(nobody).not.toContain("key=");
  expect(nobody).not.toContain("usd");
  const config = { listen: { host: "0.0.0.0", port: 0 } };
  const set = (own: World) => own.group("wide");
  const [own, { key }] = await openOwnWorld({ config }, set);
  const answers = [await own.request("/metrics"), await own.request("/metrics", bearer(key))];
  expect(answers.map(({ status }) => status)).toEqual([401, 200]);
  expect(answers[0]!.text).not.toContain("gateway_");
});

test("P84: the headers x-gateway-label, -session and -tool of a request are in the client field of its line", async () => {
  const fields = {
    "x-gateway-label": "my project",
    "x-gateway-session": "run-1",
    "x-gateway-tool": "script",
    "user-agent": "python-requests/2.32",
  };
  const line = await world.line(await plain.ask("messages", {}, fields));
  expect(line["client"]).toMatchObject({ label: "my project", session: "run-1", tool: "script" });
  const theirs = await world.line(await plain.ask("messages", {}, { ...fields, "session-id": "theirs" }));
  expect(theirs["client"]["session"]).toBe("theirs");
  const own = {
    ...fields,
    "x-claude-code-session-id": "own-session",
    "user-agent": "claude-cli/2.1.0 (external, cli)",
  };
  const named = await world.line(await plain.ask("messages", {}, own));
  expect(named["client"]).toMatchObject({ label: "my project", session: "own-session", tool: "claude-code" });
});

test("P62: a path is compared and forwarded in its normal form", async () => {
  for (const target of [
    "/v1/./messages",
    "/v1/x/../messages",
    "/v1/%2e/messages",
    "//v1/messages",
    "/v1/messages/",
  ]) {
    const [request, before] = [
      { target, fields: bearer(plain.key), body: ask("messages").body },
      plain.channel().seen.length,
    ];
    const { status } = await rawRequest(world.port, request);
    const seen = plain
      .channel()
      .seen.slice(before)
      .map(({ path }) => path);
    expect([target, status, seen]).toEqual([target, 200, ["/v1/messages"]]);
  }
  const fields = keyFields("messages", files.key);
  const answer = await rawRequest(world.port, { target: "/v1/x/../files/%2e/a-b", fields });
  expect([answer.status, files.channel().seen.at(-1)!.path]).toEqual([200, "/v1/files/a-b"]);
  const stored = { target: "/v1/responses/resp%5f1%2D%3D", fields: bearer(groups.responses.key) };
  expect((await rawRequest(world.port, stored)).status).toBe(200);
  expect(groups.responses.channel().seen.at(-1)!.path).toBe("/v1/responses/resp_1-=");
  const out = await rawRequest(world.port, { target: "/v1/files/../strange", fields });
  expect(out.status).toBe(404);
});
