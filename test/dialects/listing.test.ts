import { describe, expect, test } from "bun:test";
import { chat } from "../../src/dialects/formats/chat.ts";
import { content } from "../../src/dialects/formats/content.ts";
import type { Dialect, ModelEntry } from "../../src/dialects/dialect.ts";
import { dialectOf } from "../../src/dialects/index.ts";
import { messages } from "../../src/dialects/formats/messages.ts";
import { responses } from "../../src/dialects/formats/responses.ts";
import { GatewayError } from "../../src/lib/errors.ts";

const relay = dialectOf("relay");
const MODELS: ModelEntry[] = ["a", "b", "c", "d", "e"].map((id) => ({ id, raw: null }));

interface Listed {
  readonly data?: readonly { readonly id: string }[];
  readonly models?: readonly { readonly name: string }[];
  readonly has_more?: boolean;
  readonly first_id?: string | null;
  readonly last_id?: string | null;
  readonly nextPageToken?: string;
}

const list = (dialect: Dialect, query = "", models = MODELS): Listed =>
  JSON.parse(dialect.listBody(models, new URLSearchParams(query)));
const ids = (listed: Listed) => listed.data?.map(({ id }) => id).join("") ?? "";

describe("messages lists", () => {
  test("have one page if the query asks for no page", () => {
    expect(list(messages)).toMatchObject({ has_more: false, first_id: "a", last_id: "e" });
    expect(list(messages, "", [])).toEqual({ data: [], has_more: false, first_id: null, last_id: null });
    expect(list(messages, "limit=0").data).toHaveLength(5);
    expect(list(messages, "limit=x").data).toHaveLength(5);
  });

  test.each([
    ["limit=2", "ab", true],
    ["limit=2&after_id=b", "cd", true],
    ["limit=2&after_id=d", "e", false],
    ["limit=2&after_id=e", "", false],
    ["limit=5", "abcde", false],
    ["limit=2&before_id=d", "bc", true],
    ["limit=2&before_id=b", "a", false],
    ["limit=2&before_id=a", "", false],
    ["before_id=d", "abc", false],
  ])("%s: %s", (query, expected, hasMore) => {
    const page = list(messages, query);
    expect(ids(page)).toBe(expected);
    expect(page.has_more).toBe(hasMore);
  });

  test("refuse to continue from a model that is gone", () => {
    expect(() => list(messages, "after_id=x")).toThrow(GatewayError);
    expect(() => list(messages, "before_id=x")).toThrow(GatewayError);
  });

  test("add missing fields to a record and keep the upstream's own", () => {
    expect(JSON.parse(messages.modelBody({ id: "m", raw: null }))).toEqual({
      type: "model",
      id: "m",
      display_name: "m",
      created_at: "1970-01-01T00:00:00Z",
    });
    const raw = {
      type: "model",
      id: "m",
      display_name: "M",
      created_at: "2026-01-01T00:00:00Z",
      max_tokens: 9,
    };
    expect(messages.modelBody({ id: "m", raw })).toBe(JSON.stringify(raw));
    expect(messages.modelBody({ id: "alias", raw })).toBe(JSON.stringify({ ...raw, id: "alias" }));
  });
});

describe("responses and chat lists", () => {
  test("have one page", () => {
    expect(JSON.parse(responses.listBody(MODELS.slice(0, 1), new URLSearchParams("limit=1")))).toEqual({
      object: "list",
      data: [{ id: "a", object: "model", created: 0, owned_by: "gateway" }],
    });
    expect(chat.listBody(MODELS, new URLSearchParams())).toBe(
      responses.listBody(MODELS, new URLSearchParams()),
    );
    const raw = { id: "m", object: "model", created: 7, owned_by: "openai", x: 1 };
    expect(responses.modelBody({ id: "m", raw })).toBe(JSON.stringify(raw));
  });

  test("give Codex, which sends its version, only the instructions that the upstream sent", () => {
    const reported = { slug: "b", base_instructions: "…" };
    const listed = list(responses, "client_version=0.169.0", [
      { id: "a", raw: null },
      { id: "b", raw: reported },
    ]);
    expect(listed).toMatchObject({ object: "list", models: [reported] });
    expect(ids(listed)).toBe("ab");
  });
});

describe("content lists", () => {
  test.each([
    ["", "abcde", undefined],
    ["pageSize=2", "ab", "b"],
    ["pageSize=2&pageToken=b", "cd", "d"],
    ["pageSize=2&pageToken=d", "e", undefined],
    ["pageSize=2&pageToken=", "ab", "b"],
  ])("%j: %s", (query, expected, next) => {
    const page = list(content, query);
    expect(page.models?.map(({ name }) => name.replace("models/", "")).join("")).toBe(expected);
    expect(page.nextPageToken).toBe(next);
  });

  test("add missing fields to a record and keep the upstream's own", () => {
    expect(JSON.parse(content.modelBody({ id: "m", raw: null }))).toEqual({
      name: "models/m",
      displayName: "m",
      supportedGenerationMethods: ["generateContent", "countTokens"],
    });
    const raw = {
      name: "models/m",
      displayName: "M",
      supportedGenerationMethods: ["embedContent"],
      topK: 64,
    };
    expect(content.modelBody({ id: "m", raw })).toBe(JSON.stringify(raw));
    expect(content.modelBody({ id: "alias", raw })).toBe(JSON.stringify({ ...raw, name: "models/alias" }));
  });
});

test("clients of every dialect can read the relay's list", () => {
  const listed = list(relay, "limit=1");
  expect(listed).toMatchObject({ object: "list", has_more: false, first_id: "a", last_id: "e" });
  expect(listed.data?.[0]).toEqual(
    expect.objectContaining({
      id: "a",
      object: "model",
      type: "model",
      display_name: "a",
      created: 0,
      owned_by: "gateway",
    }),
  );
  expect(listed.models?.map(({ name }) => name)).toEqual(
    ["a", "b", "c", "d", "e"].map((id) => `models/${id}`),
  );
});

describe("an upstream's list", () => {
  const read = (dialect: Dialect, body: unknown) => {
    const { models, nextQuery } = dialect.readList(JSON.stringify(body));
    return [models.map(({ id }) => id).join(), nextQuery];
  };

  test("is read page by page", () => {
    const page = { data: [{ id: "a" }, { id: "b" }], has_more: true, first_id: "a", last_id: "b&c" };
    expect(read(messages, page)).toEqual(["a,b", "limit=1000&after_id=b%26c"]);
    expect(read(messages, { ...page, has_more: false })).toEqual(["a,b", null]);
    const models = [{ name: "models/a" }, { name: "models/x/b" }, { name: "tunedModels/c" }];
    expect(read(content, { models, nextPageToken: "t=" })).toEqual([
      "a,x/b,tunedModels/c",
      "pageSize=1000&pageToken=t%3D",
    ]);
    expect(read(content, { models })).toEqual(["a,x/b,tunedModels/c", null]);
    expect(read(responses, { object: "list", data: [{ id: "a", object: "model" }] })).toEqual(["a", null]);
  });

  test("is read in the shape of any dialect, without records that have no name", () => {
    expect(read(relay, { models: [{ slug: "a" }, {}, null, "x", { id: "" }, { id: 7 }] })).toEqual([
      "a",
      null,
    ]);
    expect(read(relay, [{ id: "a" }])).toEqual(["a", null]);
    expect(read(responses, { data: [], has_more: true })).toEqual(["", null]);
    expect(read(content, { data: [{ id: "a" }], models: [] })).toEqual(["a", null]);
  });

  test("keeps each record whole", () => {
    const row = { id: "a", object: "model", created: 1, owned_by: "o", extra: { x: [1] } };
    const { models } = responses.readList(JSON.stringify({ data: [row] }));
    expect(models).toEqual([{ id: "a", raw: row }]);
  });

  test.each(["", "<html>", "null", "{}", `{"data":{}}`, `{"error":{"message":"no"}}`])(
    "that is not one is reported: %j",
    (body) => {
      expect(() => messages.readList(body)).toThrow(GatewayError);
    },
  );

  test("can be one of the gateway's own lists", () => {
    for (const dialect of [messages, responses, content, relay]) {
      const { models, nextQuery } = dialect.readList(dialect.listBody(MODELS, new URLSearchParams()));
      expect([models.map(({ id }) => id).join(""), nextQuery]).toEqual(["abcde", null]);
    }
  });
});

test("a channel's credential is in the header that its platform expects", () => {
  expect(messages.sign("c")).toEqual(["x-api-key", "c"]);
  expect(responses.sign("c")).toEqual(["authorization", "Bearer c"]);
  expect(chat.sign("c")).toEqual(["authorization", "Bearer c"]);
  expect(content.sign("c")).toEqual(["x-goog-api-key", "c"]);
  expect(relay.sign("c")).toEqual(["authorization", "Bearer c"]);
  // Without its version the messages platform refuses even a list.
  expect(messages.ownRequestFields).toEqual([["anthropic-version", "2023-06-01"]]);
});
