import { describe, expect, test } from "bun:test";
import {
  acceptHandshake,
  findAcceptFault,
  findHandshakeFault,
  startHandshake,
} from "../../../../src/lib/http1/websocket/handshake.ts";
import { type Field, Fields } from "../../../../src/lib/http/fields.ts";

const head = (fields: readonly Field[]) => ({
  fields,
  field: (name: string) => fields.find(([other]) => other === name)?.[1],
});

/** The example of RFC 6455, section 1.3. */
const KEY = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
const REQUEST: readonly Field[] = [
  ["upgrade", "websocket"],
  ["connection", "Upgrade"],
  ["sec-websocket-version", "13"],
  ["sec-websocket-key", KEY],
];

const replace = (fields: readonly Field[], name: string, value: string | null): Field[] =>
  fields.flatMap((field) => (field[0] !== name ? [field] : value === null ? [] : [[name, value] as const]));

describe("a client's handshake", () => {
  test("gets the answer of the RFC's example", () => {
    expect(findHandshakeFault({ method: "GET", ...head(REQUEST) })).toBeNull();
    expect(acceptHandshake(head(REQUEST))).toEqual([
      ["upgrade", "websocket"],
      ["sec-websocket-accept", ACCEPT],
    ]);
  });

  test("may be in any case, among other tokens", () => {
    const odd = replace(replace(REQUEST, "upgrade", "h2c, WebSocket"), "connection", "keep-alive, UPGRADE");
    expect(findHandshakeFault({ method: "GET", ...head(odd) })).toBeNull();
  });

  test.each([
    ["upgrade", null],
    ["upgrade", "h2c"],
    ["connection", null],
    ["connection", "close"],
    ["sec-websocket-version", null],
    ["sec-websocket-version", "12"],
    ["sec-websocket-key", null],
    ["sec-websocket-key", "short"],
    ["sec-websocket-key", `${KEY}A`],
  ])("with %s: %j is refused", (name, value) => {
    expect(findHandshakeFault({ method: "GET", ...head(replace(REQUEST, name, value)) })).toContain(
      name.includes("-") ? name.slice("sec-websocket-".length).slice(1) : name.slice(1),
    );
  });

  test("a client's handshake by POST, or with two keys, is refused", () => {
    expect(findHandshakeFault({ method: "POST", ...head(REQUEST) })).toContain("GET");
    const twice = head([...REQUEST, ["sec-websocket-key", KEY]]);
    expect(findHandshakeFault({ method: "GET", ...twice })).toContain("Key");
  });
});

describe("a server's 101", () => {
  const REPLY: readonly Field[] = [
    ["upgrade", "websocket"],
    ["connection", "Upgrade"],
    ["sec-websocket-accept", ACCEPT],
  ];

  test("is accepted if it fits the key", () => {
    expect(findAcceptFault(Fields.of(REPLY), KEY)).toBeNull();
  });

  test.each([
    ["no accept", replace(REPLY, "sec-websocket-accept", null)],
    ["the accept of another key", replace(REPLY, "sec-websocket-accept", "AAAAAAAAAAAAAAAAAAAAAAAAAAA=")],
    ["another protocol", replace(REPLY, "upgrade", "h2c")],
    ["no connection", replace(REPLY, "connection", null)],
    ["an extension", [...REPLY, ["sec-websocket-extensions", "permessage-deflate"] as const]],
    ["a subprotocol", [...REPLY, ["sec-websocket-protocol", "chat"] as const]],
  ])("with %s is refused", (_, fields) => {
    expect(findAcceptFault(Fields.of(fields), KEY)).not.toBeNull();
  });
});

test("each handshake has its own key, and offers no extension", () => {
  const [one, two] = [startHandshake(), startHandshake()];
  expect(one.key).not.toBe(two.key);
  expect(one.fields.map(([name]) => name)).toEqual(["upgrade", "sec-websocket-version", "sec-websocket-key"]);
});
