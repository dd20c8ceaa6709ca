import { describe, expect, test } from "bun:test";
import { findAcceptFault, startHandshake } from "../../../../src/lib/http1/websocket/handshake.ts";
import { type Field, Fields } from "../../../../src/lib/http/fields.ts";

/** The example of RFC 6455, section 1.3. */
const KEY = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

const replace = (fields: readonly Field[], name: string, value: string | null): Field[] =>
  fields.flatMap((field) => (field[0] !== name ? [field] : value === null ? [] : [[name, value] as const]));

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
