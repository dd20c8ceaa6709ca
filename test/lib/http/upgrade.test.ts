import { expect, test } from "bun:test";
import { createClient } from "../../../src/lib/http/client.ts";
import { faultOf, outbound, startUpstream } from "./peers.ts";

/** Null: the one that fits the key. */
const REPLY: readonly (readonly [string, string | null])[] = [
  ["upgrade", "websocket"],
  ["connection", "Upgrade"],
  ["sec-websocket-accept", null],
];

const replace = (name: string, value: string): (readonly [string, string | null])[] => [
  ...REPLY.filter(([other]) => other !== name),
  [name, value],
];

/** What happens to a handshake that is answered so. */
async function shake(fields: typeof REPLY): Promise<unknown> {
  const keys: string[] = [];
  await using upstream = await startUpstream((socket, { head }) => {
    const key = /sec-websocket-key: (.*)/.exec(head)?.[1] ?? "";
    keys.push(key);
    const accept = new Bun.CryptoHasher("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`);
    const fit = accept.digest("base64");
    const lines = fields.map(([name, value]) => `${name}: ${value ?? fit}\r\n`).join("");
    socket.write(`HTTP/1.1 101 x\r\n${lines}\r\n`);
  });
  const client = createClient();
  const sent = client.send(outbound(upstream.origin, { maxMessageBytes: 1 << 20 }));
  const fault = await faultOf(sent.answer.then(({ socket }) => expect(socket?.open).toBe(true)));
  sent.cancel();
  client.close();
  expect(keys[0]).toMatch(/^[\w+/]{22}==$/);
  return fault?.kind ?? null;
}

test("a 101 that fits the key opens a WebSocket", async () => {
  expect(await shake(REPLY)).toBeNull();
});

test.each([
  ["no accept", REPLY.slice(0, 2)],
  ["the accept of another key", replace("sec-websocket-accept", "AAAAAAAAAAAAAAAAAAAAAAAAAAA=")],
  ["another protocol", replace("upgrade", "h2c")],
  ["no connection", REPLY.filter(([name]) => name !== "connection")],
  ["an extension", replace("sec-websocket-extensions", "permessage-deflate")],
  ["a subprotocol", replace("sec-websocket-protocol", "chat")],
])("a 101 with %s is refused", async (_, fields) => {
  expect(await shake(fields)).toBe("malformed");
});
