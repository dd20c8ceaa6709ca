// Who may call what: every endpoint with every platform, every state of a
// key, and every place for a key. Each refusal has the endpoint's own shape.

import { PLATFORMS } from "../../../src/config/schema.ts";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { keyOf, type Platform } from "../../harness/gateway.ts";
import type { Exchanged, RequestLines } from "../../harness/raw.ts";
import { bearer, CONTENTS, type DialectName, MESSAGE, openWorld, type World } from "../world.ts";

type Source = "bearer" | "x-api-key" | "vendor" | "query";

interface Row {
  readonly name: string;
  readonly ask: RequestLines;
  readonly platforms: readonly Platform[];
  readonly shape: DialectName;
  readonly sources: readonly Source[];
}

const SOURCES = ["bearer", "x-api-key", "vendor", "query"] as const;
const MESSAGES_KEYS: readonly Source[] = ["bearer", "x-api-key"];
const CONTENT_KEYS: readonly Source[] = ["bearer", "vendor", "query"];
const RESPONSE = { model: "gpt-5.4", input: "Hello", store: true };
const CHAT = { model: "gpt-5.4", messages: MESSAGE.messages };
const EMBEDDED = { content: { parts: [{ text: "Hello" }] } };
const BATCH = { requests: [{ model: "models/e", ...EMBEDDED }] };

const VERBS: readonly (readonly [string, object])[] = [
  ["generateContent", CONTENTS],
  ["streamGenerateContent?alt=sse", CONTENTS],
  ["streamGenerateContent", CONTENTS],
  ["countTokens", CONTENTS],
  ["embedContent", EMBEDDED],
  ["batchEmbedContents", BATCH],
];

function post(target: string, body: object, of: Omit<Row, "name" | "ask">): Row {
  return { name: `POST ${target}`, ask: { method: "POST", target, body }, ...of };
}

function get(target: string, of: Omit<Row, "name" | "ask">, method = "GET"): Row {
  return { name: `${method} ${target}`, ask: { method, target }, ...of };
}

function listContentRows(prefix: string, platforms: readonly Platform[]): Row[] {
  const of = { platforms, shape: "content", sources: CONTENT_KEYS } as const;
  const list = get(`${prefix}/v1beta/models`, of);
  const single = get(`${prefix}/v1beta/models/gemini-2.5-pro`, of);
  const verbs = ["/v1beta", "/v1"].flatMap((version) =>
    VERBS.map(([verb, body]) => post(`${prefix}${version}/models/gemini-2.5-pro:${verb}`, body, of)),
  );
  return [list, single, ...verbs];
}

const EMBEDDING = { model: "text-embedding-3-small", input: "Hello" };
const MESSAGES = { platforms: ["messages"], shape: "messages", sources: MESSAGES_KEYS } as const;
const RESPONSES = { platforms: ["responses"], shape: "responses", sources: ["bearer"] } as const;
const SHARED = {
  platforms: ["messages", "responses", "content"],
  shape: "responses",
  sources: SOURCES,
} as const;
const RELAY = { platforms: ["relay"], shape: "messages", sources: MESSAGES_KEYS } as const;

/** `{id}` stands for a response that the upstream has stored. */
const ROWS: readonly Row[] = [
  post("/v1/messages", MESSAGE, MESSAGES),
  post("/v1/messages/count_tokens", MESSAGE, MESSAGES),
  post("/v1/responses", RESPONSE, RESPONSES),
  post("/v1/responses/compact", RESPONSE, RESPONSES),
  post("/v1/responses/input_tokens", RESPONSE, RESPONSES),
  get("/v1/responses/{id}", RESPONSES),
  get("/v1/responses/{id}/input_items", RESPONSES),
  post("/v1/chat/completions", CHAT, { ...RESPONSES, shape: "chat" }),
  post("/v1/embeddings", EMBEDDING, RESPONSES),
  get("/v1/models", SHARED),
  ...listContentRows("", ["content"]),
  post("/relay/v1/messages", MESSAGE, RELAY),
  post("/relay/v1/messages/count_tokens", MESSAGE, RELAY),
  get("/relay/models", { ...RELAY, sources: ["bearer"] }),
  get("/relay/v1/models", { ...RELAY, sources: SOURCES }),
  ...listContentRows("/relay", ["relay"]),
];

const SECRETS = {
  unknown: "sk-nobody-has-this",
  disabled: "sk-disabled",
  expired: "sk-expired",
  inactive: "sk-inactive",
  malformed: "not a key",
};

/** Each platform also has a disabled key, an expired key, and a key of a group whose plan has ended. */
function addSpoiltKeys(url: string): Record<string, unknown> {
  const each = <T>(make: (platform: Platform) => T): T[] => PLATFORMS.map(make);
  const channel = (platform: Platform): object => ({
    platform,
    base_url: url,
    credential: "credential-of-the-channel",
  });
  const group = (platform: Platform): object => ({ platform, multiplier: "1", channels: [platform] });
  return {
    channels: Object.fromEntries(each((platform) => [platform, channel(platform)])),
    groups: Object.fromEntries([
      ...each((platform) => [platform, group(platform)]),
      ...each((platform) => [`${platform}-max`, { ...group(platform), exclusive: true }]),
    ]),
    plans: { max: { groups: each((platform) => `${platform}-max`), active: true, until: "2020-01-01" } },
    keys: [
      ...each((name) => ({ name, group: name, secret: keyOf(name) })),
      ...each((name) => ({
        name: `${name}-off`,
        group: name,
        secret: `${SECRETS.disabled}-${name}`,
        disabled: true,
      })),
      ...each((name) => ({
        name: `${name}-old`,
        group: name,
        secret: `${SECRETS.expired}-${name}`,
        expires: "2020-01-01",
      })),
      ...each((name) => ({
        name: `${name}-max`,
        group: `${name}-max`,
        secret: `${SECRETS.inactive}-${name}`,
      })),
    ],
  };
}

let world: World;
let stored = "";
beforeAll(async () => {
  world = openWorld(addSpoiltKeys);
  const answer = await world.ask({ target: "/v1/responses", fields: bearer("responses"), body: RESPONSE });
  stored = JSON.parse(answer.text).id;
});
afterAll(() => world.stop());

function aim(row: Row, fields: Record<string, string>, query = ""): RequestLines {
  const target = row.ask.target.replace("{id}", stored);
  const mark = target.includes("?") ? "&" : "?";
  return { ...row.ask, target: query === "" ? target : `${target}${mark}${query}`, fields };
}

/** The refusal's message; fails if the shape is not the dialect's. */
function readRefusal(answer: Exchanged, shape: DialectName): { message: string; kind: string } {
  expect(answer.field("content-type")).toBe("application/json");
  const body = JSON.parse(answer.text);
  const id = answer.field("x-request-id");
  switch (shape) {
    case "messages":
      expect(body).toEqual({
        type: "error",
        error: { type: expect.any(String), message: expect.any(String) },
        request_id: id,
      });
      return { message: body.error.message, kind: body.error.type };
    case "responses":
    case "chat":
      expect(Object.keys(body.error)).toEqual(["message", "type", "param", "code"]);
      return { message: body.error.message, kind: body.error.code };
    case "content":
      expect(body.error.code).toBe(answer.status);
      return { message: body.error.message, kind: body.error.status };
  }
}

/** As in the contract's table: messages type, responses code, content status. */
const KINDS = {
  401: { messages: "authentication_error", responses: "invalid_api_key", content: "UNAUTHENTICATED" },
  403: { messages: "permission_error", responses: "model_not_found", content: "PERMISSION_DENIED" },
  404: { messages: "not_found_error", responses: "model_not_found", content: "NOT_FOUND" },
} as const;

function kindOf(status: keyof typeof KINDS, shape: DialectName): string {
  return KINDS[status][shape === "chat" ? "responses" : shape];
}

/** The endpoint that a refusal suggests for a key of another platform. */
const LIST_OF = {
  messages: "GET /v1/models",
  responses: "GET /v1/models",
  content: "GET /v1beta/models",
  relay: "GET /relay/models",
} as const;

describe("every endpoint", () => {
  test.each(ROWS.map((row) => [row.name, row] as const))("%s is for keys of its platform", async (_, row) => {
    for (const platform of PLATFORMS) {
      const before = world.upstream.requests.length + world.upstream.listRequests.length;
      const answer = await world.ask(aim(row, bearer(platform)));
      const asked = world.upstream.requests.length + world.upstream.listRequests.length - before;
      if (row.platforms.includes(platform)) {
        expect([platform, answer.status]).toEqual([platform, 200]);
        continue;
      }
      expect([platform, answer.status]).toEqual([platform, 403]);
      const { message, kind } = readRefusal(answer, row.shape);
      expect(kind).toBe(kindOf(403, row.shape));
      expect(message).toContain(`group "${platform}"`);
      expect(message).toContain(`needs a key of a ${row.platforms.join(" or ")} group`);
      expect(message).toMatch(/With this key, call (POST|GET) \//);
      const lists = row.name.includes("models") && !row.name.startsWith("POST");
      if (lists) expect(message).toContain(`With this key, call ${LIST_OF[platform]}.`);
      for (const fitting of row.platforms) expect(message).toContain(`"${fitting}"`);
      expect(answer.field("x-should-retry")).toBe("false");
      expect(asked).toBe(0);
    }
  });

  const spoilt = (row: Row): [string, Record<string, string>, number, string][] => {
    const [platform] = row.platforms;
    const send = (secret: string): Record<string, string> => ({ authorization: `Bearer ${secret}` });
    return [
      ["missing", {}, 401, "The request has no key"],
      ["malformed", { authorization: SECRETS.malformed }, 401, "The request has no key"],
      ["empty", { authorization: "Bearer " }, 401, "The request has no key"],
      ["unknown", send(SECRETS.unknown), 401, "does not know this key"],
      ["disabled", send(`${SECRETS.disabled}-${platform}`), 401, `"${platform}-off" is disabled`],
      ["expired", send(`${SECRETS.expired}-${platform}`), 401, "expired at 2020-01-01"],
      ["inactive", send(`${SECRETS.inactive}-${platform}`), 403, "plan"],
    ];
  };

  test.each(ROWS.map((row) => [row.name, row] as const))(
    "%s refuses words that are not keys",
    async (_, row) => {
      const before = world.upstream.requests.length + world.upstream.listRequests.length;
      for (const [state, fields, status, words] of spoilt(row)) {
        const answer = await world.ask(aim(row, fields));
        expect([state, answer.status]).toEqual([state, status]);
        const { message, kind } = readRefusal(answer, row.shape);
        expect(message).toContain(words);
        const isOpenai = row.shape === "responses" || row.shape === "chat";
        if (state === "inactive" && isOpenai) expect(kind).toBe("plan_inactive");
        else expect(kind).toBe(kindOf(status === 401 ? 401 : 403, row.shape));
        expect(answer.field("x-should-retry")).toBe("false");
        expect(message).not.toContain("sk-nobody");
      }
      expect(world.upstream.requests.length + world.upstream.listRequests.length).toBe(before);
    },
  );

  test("a key is read from every place that an endpoint accepts, and from no other", async () => {
    for (const row of ROWS) {
      const [platform] = row.platforms;
      const secret = keyOf(platform!);
      const places: Record<Source, [Record<string, string>, string]> = {
        bearer: [{ authorization: `bearer ${secret}` }, ""],
        "x-api-key": [{ "x-api-key": secret }, ""],
        vendor: [{ "x-goog-api-key": secret }, ""],
        query: [{}, `key=${secret}`],
      };
      for (const source of SOURCES) {
        const answer = await world.ask(aim(row, ...places[source]));
        const expected = row.sources.includes(source) ? 200 : 401;
        expect([row.name, source, answer.status]).toEqual([row.name, source, expected]);
      }
    }
  });
});

describe("paths", () => {
  test("an unknown path is a 404 in its dialect, with or without a key", async () => {
    for (const [target, shape] of [
      ["/v1/messages/batches", "messages"],
      ["/v1beta/models/m:unknownVerb", "content"],
      ["/nothing/here", "responses"],
    ] as const) {
      for (const fields of [{}, bearer("messages")]) {
        const answer = await world.ask({ method: "POST", target, fields });
        expect(answer.status).toBe(404);
        expect(readRefusal(answer, shape)).toMatchObject({ kind: kindOf(404, shape) });
      }
    }
  });

  test("another method is a 405 that names the accepted ones", async () => {
    const answer = await world.ask({ method: "PUT", target: "/relay/v1/messages" });
    expect([answer.status, answer.field("allow"), answer.field("x-should-retry")]).toEqual([
      405,
      "POST",
      "false",
    ]);
    expect(readRefusal(answer, "messages").message).toContain("does not accept PUT");
  });

  test.each([
    ["/messages?beta=true", "messages", MESSAGE, "/v1/messages?beta=true"],
    ["/chat/completions", "responses", CHAT, "/v1/responses"],
    ["/relay//v1/v1/messages/", "relay", MESSAGE, "/v1/messages"],
    ["/v1beta/models/google/gemma-3%3Afree:generateContent", "content", CONTENTS, null],
  ] as const)("the path %s is understood", async (target, platform, body, upstreamTarget) => {
    const traced = await world.trace({ target, fields: bearer(platform), body });
    expect(traced.answer.status).toBe(200);
    if (upstreamTarget !== null) expect(traced.received!.target).toBe(upstreamTarget);
    else expect(traced.record.model).toBe("google/gemma-3:free");
  });

  test("a list answers HEAD like GET, without the body, and costs nothing", async () => {
    for (const [platform, target] of [
      ["messages", "/v1/models"],
      ["responses", "/v1/models/gpt-5.4"],
      ["content", "/v1beta/models"],
      ["relay", "/relay/models"],
    ] as const) {
      const full = await world.ask({ target, fields: bearer(platform) });
      const request = { method: "HEAD", target, fields: { ...bearer(platform), connection: "close" } };
      const { answer, lines } = await world.trace(request);
      expect([target, answer.status, answer.text]).toEqual([target, 200, ""]);
      expect(answer.field("content-length")).toBe(String(Buffer.byteLength(full.text)));
      expect(answer.field("content-type")).toBe(full.field("content-type"));
      expect(lines).toEqual([]);
      const refused = await world.ask({ method: "HEAD", target, fields: { connection: "close" } });
      expect([refused.status, refused.text]).toEqual([401, ""]);
    }
  });

  test("the gateway's own pages need no key and show no secret", async () => {
    for (const target of ["/", "/api/hello", "/healthz", "/metrics", "/relay", "/relay/api/hello"]) {
      const answer = await world.ask({ target });
      expect([target, answer.status]).toEqual([target, 200]);
      expect(answer.text).not.toContain("sk-");
      expect(answer.text).not.toContain("credential");
      const head = await world.ask({ method: "HEAD", target, fields: { connection: "close" } });
      expect([target, head.status, head.text]).toEqual([target, 200, ""]);
    }
  });
});

describe("naming", () => {
  test("the relay's prefix and the vendor of the config are those of clients, not of upstreams", async () => {
    const own = openWorld(() => ({ relay_prefix: "far-away", vendor: "acme" }), { anyCredential: true });
    const content = { target: "/v1beta/models/m:generateContent", body: CONTENTS };
    const relayed = { target: "/far-away/v1/messages", fields: bearer("relay"), body: MESSAGE };
    expect((await own.ask(relayed)).status).toBe(200);
    expect((await own.ask({ ...relayed, target: "/relay/v1/messages" })).status).toBe(404);
    expect((await own.ask({ target: "/far-away/models", fields: bearer("relay") })).status).toBe(200);
    const traced = await own.trace({ ...content, fields: { "x-acme-api-key": keyOf("content") } });
    expect(traced.answer.status).toBe(200);
    expect(traced.received!.field("x-goog-api-key")).toBe("credential-of-the-channel");
    expect(traced.received!.field("x-acme-api-key")).toBeUndefined();
    await own.ask({ target: "/v1beta/models", fields: { "x-acme-api-key": keyOf("content") } });
    const list = own.upstream.listRequests.at(-1)!;
    expect(list.field("x-goog-api-key")).toBe("credential-of-the-channel");
    expect(list.field("x-acme-api-key")).toBeUndefined();
    const refused = await own.ask({ ...content, fields: { "x-goog-api-key": keyOf("content") } });
    expect(refused.status).toBe(401);
    expect(refused.text).toContain("x-acme-api-key");
    await own.stop();
  });

  test("a base URL may end with a version or a path of its own", async () => {
    const own = openWorld(
      (url) => ({
        channels: Object.fromEntries(
          PLATFORMS.map((platform, index) => [
            platform,
            {
              platform,
              base_url: `${url}${["/v1", "/v1/", "/v1beta", "/deep/path/"][index]}`,
              credential: "x",
            },
          ]),
        ),
      }),
      { anyCredential: true },
    );
    const targets = await Promise.all(
      [
        { target: "/v1/messages", fields: bearer("messages"), body: MESSAGE },
        { target: "/v1/responses", fields: bearer("responses"), body: RESPONSE },
        { target: "/v1beta/models/m:generateContent", fields: bearer("content"), body: CONTENTS },
        { target: "/relay/v1/messages", fields: bearer("relay"), body: MESSAGE },
      ].map(async (ask) => own.ask(ask)),
    );
    expect(targets.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(own.upstream.requests.map(({ target }) => target).toSorted()).toEqual([
      "/deep/path/v1/messages",
      "/v1/messages",
      "/v1/responses",
      "/v1beta/models/m:generateContent",
    ]);
    await own.stop();
  });
});
