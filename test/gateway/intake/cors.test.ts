// A key in the URL from a web page of another origin.

import { describe, expect, test } from "bun:test";
import { recognise } from "../../../src/dialects/index.ts";
import { checkConfigText } from "../../../src/config/file/load.ts";
import { admit } from "../../../src/gateway/intake/authenticate.ts";
import type { Field } from "../../../src/lib/http/fields.ts";
import { RecordedExchange } from "../scripted.ts";

const SECRET = "sk-0123456789abcdef";
const PAGE = "https://page.example";
const HOST: Field = ["host", "127.0.0.1:4141"];

function attempt(target: string, fields: readonly Field[], corsOrigins: readonly string[] = []): string {
  const config = {
    channels: { a: { platform: "content", base_url: "http://127.0.0.1:9", credential: "xxxx" } },
    groups: { g: { platform: "content", channels: ["a"] } },
    keys: [{ name: "k", group: "g", secret: SECRET }],
    cors_origins: corsOrigins,
  };
  const { catalog } = checkConfigText(JSON.stringify(config), "/nonexistent/gateway.yaml", {});
  const exchange = new RecordedExchange(target, [HOST, ...fields], {});
  const found = recognise(exchange, catalog);
  if (found.kind !== "target") throw new Error(`${target} is no endpoint`);
  const call = {
    id: "req_1",
    exchange,
    time: 0,
    arrived: 0,
    target: found.target,
    query: found.query,
    admitted: null,
  };
  try {
    return admit(call, catalog).name;
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : "unexpected";
  }
}

const IN_QUERY = `/v1beta/models/m:generateContent?key=${SECRET}`;
const IN_HEADER = "/v1beta/models/m:generateContent";

describe("a key in the URL", () => {
  test.each<[string, Field[]]>([
    ["of another origin", [["origin", PAGE]]],
    ["without an origin (a file or a sandbox)", [["origin", "null"]]],
    ["of another port", [["origin", "http://127.0.0.1:3000"]]],
    ["that the browser calls cross-site", [["sec-fetch-site", "cross-site"]]],
  ])("is refused from a page %s", (_name, fields) => {
    expect(attempt(IN_QUERY, fields)).toBe("origin_refused");
  });

  test.each<[string, Field[]]>([
    ["a program", []],
    [
      "a page of the gateway's own origin",
      [
        ["origin", "http://127.0.0.1:4141"],
        ["sec-fetch-site", "same-origin"],
      ],
    ],
    ["the address bar", [["sec-fetch-site", "none"]]],
  ])("is accepted from %s", (_name, fields) => {
    expect(attempt(IN_QUERY, fields)).toBe("k");
  });

  test.each([PAGE, "*"])("is accepted from an origin that cors_origins allows: %s", (allowed) => {
    expect(
      attempt(
        IN_QUERY,
        [
          ["origin", PAGE],
          ["sec-fetch-site", "cross-site"],
        ],
        [allowed],
      ),
    ).toBe("k");
  });

  test("is refused before it is known whether the key is valid", () => {
    expect(attempt(IN_QUERY.replace("sk-", "sk-x"), [["origin", PAGE]])).toBe("origin_refused");
  });
});

test("a key in a header is accepted from any page, because its browser asks for permission first", () => {
  expect(
    attempt(IN_HEADER, [
      ["origin", PAGE],
      ["x-goog-api-key", SECRET],
    ]),
  ).toBe("k");
  expect(
    attempt(IN_QUERY, [
      ["origin", PAGE],
      ["x-goog-api-key", SECRET],
    ]),
  ).toBe("k");
});
