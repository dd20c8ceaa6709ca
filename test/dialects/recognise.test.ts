import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { errorFields } from "../../src/dialects/errors.ts";
import { listDialect, recognise, type Recognition } from "../../src/dialects/index.ts";

const NAMING = { relayPrefix: "relay", vendor: "goog" };

function ask(
  method: string,
  target: string,
  fields: Readonly<Record<string, string>> = {},
  naming = NAMING,
): Recognition {
  return recognise({ method, target, field: (name) => fields[name] }, naming);
}

/** What a request is taken for, in one line. */
function see(method: string, target: string, fields: Readonly<Record<string, string>> = {}): string {
  const found = ask(method, target, fields);
  if (found.kind === "own") return found.page;
  if (found.kind !== "target") return `${found.error.status} ${found.dialect.name}`;
  const { endpoint, path, model } = found.target;
  const named = model === null ? "" : ` ${model.id}`;
  return `${endpoint.dialect.name} ${endpoint.purpose} ${endpoint.platforms.join("|")} ${path}${named}`;
}

describe("every endpoint of the contract", () => {
  test.each([
    ["POST", "/v1/messages", "messages generate messages /v1/messages"],
    ["POST", "/v1/messages/count_tokens", "messages count messages /v1/messages/count_tokens"],
    ["POST", "/v1/responses", "responses generate responses /v1/responses"],
    ["POST", "/v1/responses/compact", "responses generate responses /v1/responses/compact"],
    ["POST", "/v1/responses/input_tokens", "responses count responses /v1/responses/input_tokens"],
    ["GET", "/v1/responses/resp_1-a", "responses resource responses /v1/responses/resp_1-a"],
    ["DELETE", "/v1/responses/resp_1", "responses resource responses /v1/responses/resp_1"],
    // As gateways make them that write their own route into the id: base64, padded.
    [
      "GET",
      `/v1/responses/resp_${"bGl0".repeat(80)}Og==`,
      `responses resource responses /v1/responses/resp_${"bGl0".repeat(80)}Og==`,
    ],
    [
      "GET",
      "/v1/responses/resp_1/input_items",
      "responses resource responses /v1/responses/resp_1/input_items",
    ],
    ["POST", "/v1/responses/resp_1/cancel", "responses resource responses /v1/responses/resp_1/cancel"],
    ["POST", "/v1/chat/completions", "chat generate responses /v1/chat/completions"],
    ["POST", "/v1/embeddings", "responses embed responses /v1/embeddings"],
    ["POST", "/embeddings/", "responses embed responses /v1/embeddings"],
    ["GET", "/v1/models", "responses list messages|responses|content /v1/models"],
    ["GET", "/v1/models/m", "responses model messages|responses|content /v1/models/m m"],
    ["GET", "/v1beta/models", "content list content /v1beta/models"],
    ["GET", "/v1beta/models/m", "content model content /v1beta/models/m m"],
    ["GET", "/relay/models", "messages list relay /models"],
    ["GET", "/relay/v1/models", "messages list relay /v1/models"],
    ["GET", "/relay/v1beta/models", "content list relay /v1beta/models"],
    ["POST", "/relay/v1/messages", "messages generate relay /v1/messages"],
    ["POST", "/relay/v1/messages/count_tokens", "messages count relay /v1/messages/count_tokens"],
  ])("%s %s", (method, target, expected) => expect(see(method, target)).toBe(expected));

  describe.each(["/v1beta", "/v1", "/relay/v1beta", "/relay/v1"])("below %s", (base) => {
    const platform = base.startsWith("/relay") ? "relay" : "content";
    const upstream = base.replace("/relay", "");
    test.each([
      ["streamGenerateContent", "generate", true],
      ["generateContent", "generate", false],
      ["countTokens", "count", false],
      ["embedContent", "embed", false],
      ["batchEmbedContents", "embed", false],
    ])("%s", (verb, purpose, stream) => {
      const target = `${base}/models/gemini-3.5-flash:${verb}`;
      expect(see("POST", target)).toBe(
        `content ${purpose} ${platform} ${upstream}/models/gemini-3.5-flash:${verb} gemini-3.5-flash`,
      );
      const found = ask("POST", target);
      if (found.kind !== "target") throw new Error(found.kind);
      expect(found.target.stream).toBe(stream);
      expect(found.target.endpoint.label).toBe(`${base}/models/{id}:${verb}`);
    });
  });

  test.each([
    ["GET", "/", "root"],
    ["HEAD", "/", "root"],
    ["HEAD", "/?x=1", "root"],
    ["GET", "/api/hello", "hello"],
    ["HEAD", "/api/hello", "hello"],
    ["GET", "/healthz", "healthz"],
    ["GET", "/metrics", "metrics"],
    ["HEAD", "/metrics", "metrics"],
    ["HEAD", "/relay/api/hello", "hello"],
    ["HEAD", "/relay/", "root"],
  ])("%s %s is the gateway's own", (method, target, page) => expect(see(method, target)).toBe(page));
});

test("content paths say whether the answer streams; otherwise the body says it", () => {
  const stream = (method: string, target: string) => {
    const found = ask(method, target);
    return found.kind === "target" ? found.target.stream : undefined;
  };
  expect(stream("POST", "/v1/messages")).toBeNull();
  expect(stream("POST", "/v1/chat/completions")).toBeNull();
  expect(stream("GET", "/v1/responses/resp_1")).toBeNull();
  expect(stream("POST", "/v1/messages/count_tokens")).toBe(false);
  expect(stream("GET", "/v1/models")).toBe(false);
});

describe("where a key can be", () => {
  test.each([
    ["POST", "/v1/messages", "bearer,x-api-key"],
    ["POST", "/v1/responses", "bearer"],
    ["POST", "/v1/chat/completions", "bearer"],
    ["POST", "/v1beta/models/m:generateContent", "bearer,vendor-header,query"],
    ["GET", "/v1beta/models", "bearer,vendor-header,query"],
    ["GET", "/v1/models", "bearer,x-api-key,vendor-header,query"],
    ["GET", "/relay/models", "bearer"],
    ["POST", "/relay/v1/messages", "bearer,x-api-key"],
    ["POST", "/relay/v1beta/models/m:generateContent", "bearer,vendor-header,query"],
  ])("%s %s: %s", (method, target, expected) => {
    const found = ask(method, target);
    expect(found.kind === "target" && found.target.endpoint.keySources.join()).toBe(expected);
  });
});

describe("a path that a client built by mistake is corrected if it can mean one thing only", () => {
  test.each([
    ["POST", "/v1/messages/", "/v1/messages"],
    ["POST", "/v1/v1/messages", "/v1/messages"],
    ["POST", "/v1/v1/messages/count_tokens/", "/v1/messages/count_tokens"],
    ["POST", "/messages", "/v1/messages"],
    ["POST", "/messages/count_tokens", "/v1/messages/count_tokens"],
    ["POST", "/responses", "/v1/responses"],
    ["POST", "/responses/compact", "/v1/responses/compact"],
    ["GET", "/responses/resp_1", "/v1/responses/resp_1"],
    ["POST", "/chat/completions", "/v1/chat/completions"],
    ["POST", "/v1/v1/chat/completions", "/v1/chat/completions"],
    ["GET", "/models", "/v1/models"],
    ["GET", "/models/m", "/v1/models/m"],
    ["GET", "/v1/models/", "/v1/models"],
    ["GET", "/v1/v1/models/m/", "/v1/models/m"],
    ["POST", "/models/m:generateContent", "/v1/models/m:generateContent"],
    ["POST", "/v1/v1beta/models/m:generateContent", "/v1beta/models/m:generateContent"],
    ["POST", "/v1beta/v1beta/models/m:generateContent/", "/v1beta/models/m:generateContent"],
    ["POST", "/relay/messages", "/v1/messages"],
    ["POST", "/relay/v1/v1/messages/", "/v1/messages"],
    ["GET", "/relay/models/", "/v1/models"],
    ["POST", "//v1/messages", "/v1/messages"],
    ["POST", "///v1/messages", "/v1/messages"],
    ["POST", "//v1/v1/messages", "/v1/messages"],
    ["POST", "//messages", "/v1/messages"],
    ["POST", "//v1beta/models/m:generateContent", "/v1beta/models/m:generateContent"],
    ["POST", "/relay//v1/messages", "/v1/messages"],
    ["POST", "//relay//v1beta/models/m:generateContent", "/v1beta/models/m:generateContent"],
  ])("%s %s", (method, target, path) => {
    const found = ask(method, target);
    expect(found.kind === "target" && found.target.path).toBe(path);
  });
});

describe("a model's id in a path", () => {
  test.each([
    ["gemini-3.5-flash", "gemini-3.5-flash"],
    ["publishers/google/models/gemini", "publishers/google/models/gemini"],
    ["meta/llama-4:free", "meta/llama-4:free"],
    ["meta%2Fllama-4%3Afree", "meta/llama-4:free"],
    ["claude@20260101", "claude@20260101"],
    ["a%20b", "a b"],
    ["x:generateContent", "x:generateContent"],
  ])("%s", (raw, id) => {
    const found = ask("POST", `/v1beta/models/${raw}:countTokens?a=b`);
    if (found.kind !== "target" || found.target.model === null) throw new Error(found.kind);
    const { path, model } = found.target;
    expect(model.id).toBe(id);
    expect(path.slice(model.start, model.end)).toBe(raw);
    expect(path).toBe(`/v1beta/models/${raw}:countTokens`);
    const single = see("GET", `/relay/v1/models/${raw}`);
    expect(single).toBe(
      id.endsWith(":generateContent") ? "405 messages" : `messages model relay /v1/models/${raw} ${id}`,
    );
  });

  test("may be followed by a verb with an escaped colon", () => {
    for (const colon of ["%3A", "%3a"]) {
      const found = ask("POST", `/v1beta/models/a:b${colon}generateContent`);
      expect(found.kind === "target" && found.target.path).toBe("/v1beta/models/a:b:generateContent");
    }
  });
});

describe("hostile paths reach no upstream", () => {
  test.each([
    ["POST", "/v1beta/models/..:generateContent"],
    ["POST", "/v1beta/models/.:generateContent"],
    ["POST", "/v1beta/models/../files:generateContent"],
    ["POST", "/v1beta/models/a/../../files:generateContent"],
    ["POST", "/v1beta/models/a/./b:generateContent"],
    ["POST", "/v1beta/models/%2e%2e:generateContent"],
    ["POST", "/v1beta/models/%2E%2E%2Ffiles:generateContent"],
    ["POST", "/v1beta/models/a%2f..%2fb:generateContent"],
    ["POST", "/v1beta/models/%252e%252e%252ffiles:generateContent"],
    ["POST", "/v1beta/models/a%5c..%5cb:generateContent"],
    ["POST", "/v1beta/models/a\\..\\b:generateContent"],
    ["POST", "/v1beta/models/..;/files:generateContent"],
    ["POST", "/v1beta/models/a//b:generateContent"],
    ["POST", "/v1beta/models//a:generateContent"],
    ["POST", "/v1beta/models/%2Fa:generateContent"],
    ["POST", "/v1beta/models/a/:generateContent"],
    ["POST", "/v1beta/models/a%00:generateContent"],
    ["POST", "/v1beta/models/a%0d%0ahost:x:generateContent"],
    ["POST", "/v1beta/models/a%3Fkey=b:generateContent"],
    ["POST", "/v1beta/models/a%23b:generateContent"],
    ["POST", "/v1beta/models/a#b:generateContent"],
    ["POST", "/v1beta/models/a%:generateContent"],
    ["POST", "/v1beta/models/%c3%28:generateContent"],
    ["POST", "/v1beta/models/é:generateContent"],
    ["POST", "/v1beta/models/:generateContent"],
    ["POST", "/v1beta/models/a:generateContent:"],
    ["POST", "/v1beta/models/a:generatecontent"],
    ["POST", "/v1beta/models/a:generate%43ontent"],
    ["POST", "/v1beta/models/a:predict"],
    ["POST", `/v1beta/models/${"a".repeat(300)}:generateContent`],
    ["GET", "/v1/models/.."],
    ["GET", "/v1/models/%2e%2e"],
    ["GET", "/v1/models/a//b"],
    ["GET", "/v1/responses/.."],
    ["GET", "/v1/responses/%2e%2e"],
    ["GET", "/v1/responses/a%2fb"],
    ["GET", "/v1/responses/a.b"],
    ["GET", "/v1/responses/a/b"],
    ["GET", "/v1/responses/a/input_items/b"],
    ["GET", "/v1/responses//input_items"],
    ["GET", "/v1/responses/compact"],
    ["POST", "/v1/responses/a/cancel/.."],
    ["POST", "/v1//messages"],
    ["POST", "/v1/messages//"],
    ["POST", "/v1/./messages"],
    ["POST", "/v1/x/../messages"],
    ["POST", "/v1/%6dessages"],
    ["POST", "/V1/messages"],
    ["POST", "\\v1\\messages"],
    ["POST", "/v1/messages%20"],
    ["POST", "/v1/v1/v1/messages"],
    ["POST", "/relay/relay/v1/messages"],
    ["POST", "/relay/../v1/messages"],
    ["POST", "/relay/v1/responses"],
    ["POST", "/relay/v1/chat/completions"],
    ["POST", "/relayed/v1/messages"],
    ["POST", "http://elsewhere/v1/messages"],
    ["POST", ""],
    ["POST", "*"],
  ])("%s %s", (method, target) => expect(ask(method, target).kind).toBe("unknown"));

  test("whatever the request, the path that goes upstream is one of the table", () => {
    const known =
      /^\/(v1\/(messages(\/count_tokens)?|responses(\/[\w-]+(\/input_items|\/cancel)?)?|chat\/completions|models)|v1beta\/models|models)$|^\/v1(beta)?\/models\/[^?#\\;\s]+$/;
    const piece = fc.constantFrom(
      "/",
      "/v1",
      "/v1beta",
      "/models",
      "/messages",
      "/responses",
      "/relay",
      "..",
      ".",
      "%2e",
      "%2f",
      "%25",
      "\\",
      ":",
      ":generateContent",
      "%3A",
      "a",
      "?",
      "#",
      ";",
      "//",
      "%00",
      "é",
      "chat/completions",
    );
    fc.assert(
      fc.property(
        fc.constantFrom("GET", "POST", "DELETE"),
        fc.array(piece, { maxLength: 8 }),
        (method, pieces) => {
          const found = ask(method, pieces.join(""));
          if (found.kind !== "target") return;
          expect(found.target.path).toMatch(known);
          const decoded = decodeURIComponent(found.target.path);
          expect(decoded.split("/").slice(1)).not.toContain("");
          expect(decoded).not.toMatch(/(^|\/)\.\.?(\/|$)/);
        },
      ),
      { numRuns: 3000 },
    );
  });
});

describe("a path that is no endpoint gets an error in the dialect of its platform", () => {
  test.each([
    ["POST", "/v1/messages/batches", {}, "404 messages"],
    ["POST", "/v1/chat/other", {}, "404 chat"],
    ["POST", "/v1beta/files", {}, "404 content"],
    ["POST", "/v1beta1/publishers/x", {}, "404 content"],
    ["POST", "/v1/models/m:unheardOf", {}, "404 content"],
    ["POST", "/relay/v1/complete", {}, "404 messages"],
    ["POST", "/relay/v1beta/files", {}, "404 content"],
    ["GET", "/relay/x", { "x-goog-api-key": "k" }, "404 content"],
    ["GET", "/v1/files", {}, "404 responses"],
    ["GET", "/v1/files", { "anthropic-version": "2023-06-01" }, "404 messages"],
    ["GET", "/v1/files", { "x-goog-api-key": "k" }, "404 content"],
    ["GET", "/x", { "x-api-key": "k" }, "404 messages"],
  ])("%s %s %j: %s", (method, target, fields, expected) =>
    expect(see(method, target, fields)).toBe(expected),
  );

  test("the error of an unknown path says so, and what to check", () => {
    const found = ask("GET", "/nope");
    expect(found.kind === "unknown" && found.error.message).toBe(
      "Unknown path: this gateway has no endpoint GET /nope. Check the base URL in the client's settings.",
    );
  });
});

describe("clients with a wrong base URL get an error in their own dialect, whatever the prefix", () => {
  test.each([
    ["POST", "/relay/v1/responses", {}, "404 responses"],
    ["POST", "/relay/responses", {}, "404 responses"],
    ["POST", "/relay/v1/responses/compact", {}, "404 responses"],
    ["GET", "/relay/v1/responses/resp_1", {}, "404 responses"],
    ["POST", "/relay/v1/chat/completions", {}, "404 chat"],
    ["POST", "/relay/chat/completions", {}, "404 chat"],
    ["POST", "/relay/v1/embeddings", { "user-agent": "OpenAI/JS 6.1.0" }, "404 responses"],
    ["POST", "/elsewhere/v1/responses", {}, "404 responses"],
    ["POST", "/elsewhere/v1/messages", {}, "404 messages"],
    ["POST", "/elsewhere/v1beta/models/m:generateContent", {}, "404 content"],
  ])("%s %s %j: %s", (method, target, fields, expected) =>
    expect(see(method, target, fields)).toBe(expected),
  );

  test("Codex, which tries a WebSocket first, goes on to the request that gets the error", () => {
    const fields = { upgrade: "websocket", connection: "Upgrade", originator: "codex_exec" };
    expect(see("GET", "/relay/v1/responses", fields)).toBe("426 responses");
    expect(see("GET", "/relay/responses", fields)).toBe("426 responses");
    expect(see("GET", "/elsewhere/v1/responses", fields)).toBe("426 responses");
  });
});

describe("a path with another method gets 405 in its dialect, and the methods that it accepts", () => {
  test.each([
    ["GET", "/v1/messages", "messages", "POST"],
    ["HEAD", "/v1/messages", "messages", "POST"],
    ["PUT", "/messages", "messages", "POST"],
    ["OPTIONS", "/v1/messages/count_tokens", "messages", "POST"],
    ["DELETE", "/v1/responses", "responses", "POST"],
    ["GET", "/v1/responses", "responses", "POST"],
    ["GET", "/v1/chat/completions", "chat", "POST"],
    ["POST", "/v1/responses/resp_1", "responses", "GET, DELETE"],
    ["HEAD", "/v1/responses/resp_1", "responses", "GET, DELETE"],
    ["GET", "/v1/responses/resp_1/cancel", "responses", "POST"],
    ["POST", "/v1/models", "responses", "GET, HEAD"],
    ["DELETE", "/v1/models/m", "responses", "GET, HEAD"],
    ["POST", "/v1beta/models/m", "content", "GET, HEAD"],
    ["GET", "/v1beta/models/m:generateContent", "content", "POST"],
    ["PATCH", "/v1beta/models/m:streamGenerateContent", "content", "POST"],
    ["POST", "/relay/models", "messages", "GET, HEAD"],
    ["GET", "/relay/v1/messages", "messages", "POST"],
    ["PUT", "/healthz", "responses", "GET, HEAD"],
    ["POST", "/", "responses", "GET, HEAD"],
  ])("%s %s: %s, %s", (method, target, dialect, allow) => {
    const found = ask(method, target);
    if (found.kind !== "unknown") throw new Error(found.kind);
    const { error } = found;
    expect([error.status, found.dialect.name, error.allow.join(", ")]).toEqual([405, dialect, allow]);
    expect(error.message).toContain(`does not accept ${method}. Use ${allow.replaceAll(", ", " or ")}.`);
    expect(errorFields(error)).toContainEqual(["allow", allow]);
  });

  test("lists and the gateway's own pages answer HEAD like GET", () => {
    for (const path of [
      "/v1/models",
      "/v1/models/m",
      "/v1beta/models",
      "/relay/models",
      "/relay/v1/models",
    ]) {
      expect(see("HEAD", path)).toBe(see("GET", path));
    }
    for (const path of ["/", "/api/hello", "/healthz", "/metrics"])
      expect(ask("HEAD", path).kind).toBe("own");
  });
});

test("a WebSocket on /v1/responses is answered 426, with or without the version", () => {
  const fields = { upgrade: "WebSocket", connection: "Upgrade" };
  expect(see("GET", "/v1/responses", fields)).toBe("426 responses");
  expect(see("GET", "/responses", fields)).toBe("426 responses");
  expect(see("GET", "/v1/responses?x=1", fields)).toBe("426 responses");
  expect(see("GET", "/v1/messages", fields)).toBe("405 messages");
});

describe("three platforms share /v1/models", () => {
  test.each<[Record<string, string>, string, string]>([
    [{}, "", "responses"],
    [{ authorization: "Bearer k" }, "", "responses"],
    [{ "anthropic-version": "2026-10-21", authorization: "Bearer k" }, "", "messages"],
    [{ "x-api-key": "k" }, "", "messages"],
    [{ "x-goog-api-key": "k" }, "", "content"],
    [{ "x-goog-api-key": "k", "x-api-key": "k" }, "", "content"],
    [{}, "?key=k", "content"],
    [{}, "?limit=1&key=k", "content"],
    [{}, "?monkey=k", "responses"],
  ])("%j %s: %s", (fields, query, name) => {
    expect<string>(ask("GET", `/v1/models${query}`, fields).dialect.name).toBe(name);
    expect<string>(ask("GET", `/v1/models/m${query}`, fields).dialect.name).toBe(name);
  });

  test("its list has the shape of the key's group, other lists have the shape of their path", () => {
    const shape = (target: string, platform: "messages" | "content" | "relay") => {
      const found = ask("GET", target);
      return found.kind === "target" ? listDialect(found.target.endpoint, platform).name : null;
    };
    expect(shape("/v1/models", "messages")).toBe("messages");
    expect(shape("/v1/models", "content")).toBe("content");
    expect(shape("/v1beta/models", "content")).toBe("content");
    expect(shape("/relay/v1beta/models", "relay")).toBe("content");
    expect(shape("/relay/models", "relay")).toBe("messages");
  });
});

describe("the query is forwarded without the key and otherwise unchanged", () => {
  test.each([
    ["", ""],
    ["?", "?"],
    ["?beta=true", "?beta=true"],
    ["?alt=sse", "?alt=sse"],
    ["?key=sk-1", ""],
    ["?key", ""],
    ["?key=sk-1&alt=sse", "?alt=sse"],
    ["?alt=sse&key=sk-1", "?alt=sse"],
    ["?alt=sse&key=sk-1&key=sk-2&b=%20+%2f", "?alt=sse&b=%20+%2f"],
    ["?%6bey=sk-1&a", "?a"],
    ["?%6B%65%79=sk-1", ""],
    ["?a=%zz&b=key=1", "?a=%zz&b=key=1"],
    ["?monkey=1&keys=2&KEY=3", "?monkey=1&keys=2&KEY=3"],
    ["?a=1&&b=2&", "?a=1&&b=2&"],
    ["?a=1?key=2", "?a=1?key=2"],
  ])("%j becomes %j", (query, expected) => {
    const found = ask("POST", `/v1/messages${query}`);
    expect(found.kind === "target" && found.query).toBe(expected);
  });
});

test("the relay's prefix and the vendor come from the config", () => {
  const naming = { relayPrefix: "anti", vendor: "acme" };
  expect(ask("POST", "/anti/v1/messages", {}, naming).kind).toBe("target");
  expect(ask("POST", "/relay/v1/messages", {}, naming).kind).toBe("unknown");
  expect(ask("GET", "/v1/models", { "x-acme-api-key": "k" }, naming).dialect.name).toBe("content");
  expect(ask("GET", "/v1/models", { "x-goog-api-key": "k" }, naming).dialect.name).toBe("responses");
  const found = ask("GET", "/anti/models", {}, naming);
  expect(found.kind === "target" && found.target.endpoint.label).toBe("/anti/models");
});
