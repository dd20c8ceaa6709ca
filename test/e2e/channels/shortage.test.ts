// The gateway runs out of open files, and so of connections: it says so, blames no channel, and works as before once there
// are enough. Clients that come meanwhile wait in the kernel.

import { expect, test } from "bun:test";
import { makeConfig, startGateway } from "../../harness/gateway.ts";
import { openRaw, parseAnswer, type RawAnswer, type RawConnection, writeRequest } from "../../harness/raw.ts";
import { startUpstream } from "../../lib/http/peers.ts";
import { makeRequest } from "../world.ts";
import { PROGRAM } from "../../harness/program.ts";

const FILES = 64;
const COMMAND = ["sh", "-c", `ulimit -n ${FILES}; exec "$0" "$@"`, ...PROGRAM];
const ANSWER = JSON.stringify({
  type: "message",
  model: "claude-haiku-4-5",
  content: [{ type: "text", text: "Hi" }],
  stop_reason: "end_turn",
  usage: { input_tokens: 1, output_tokens: 1 },
});

async function ask(client: RawConnection, request: Parameters<typeof writeRequest>[0]): Promise<RawAnswer> {
  const before = client.bytes().length;
  const read = (bytes: Buffer): RawAnswer | null => parseAnswer(bytes.subarray(before));
  client.send(writeRequest(request));
  return read(await client.until((bytes) => read(bytes)?.complete === true))!;
}

test.skipIf(process.platform === "win32")(
  "a request for which no file is left gets 503 with the reason, and once there are files, all are served",
  async () => {
    await using upstream = await startUpstream((socket) => {
      const head = `content-type: application/json\r\ncontent-length: ${ANSWER.length}\r\nconnection: close`;
      socket.end(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n${ANSWER}`);
    });
    const gateway = await startGateway({
      config: makeConfig({ url: `http://127.0.0.1:${upstream.port}` }),
      command: COMMAND,
    });
    try {
      const client = await openRaw(gateway.port);
      expect((await ask(client, makeRequest("messages"))).status).toBe(200);
      const crowd = await Promise.all(Array.from({ length: 3 * FILES }, () => openRaw(gateway.port)));
      let answer = await ask(client, makeRequest("messages"));
      while (answer.status === 200) answer = await ask(client, makeRequest("messages"));
      expect([answer.status, answer.field("retry-after")]).toEqual([503, "5"]);
      expect(JSON.parse(answer.text).error.message).toMatch(
        /^The channel "messages" was not called: .* raise its limit \(ulimit -n\)$/,
      );
      const page = (await ask(client, { target: "/metrics" })).text;
      expect(page).toContain('gateway_channel_state{channel="messages",state="resting"} 0');
      expect(page).toContain('gateway_channel_state{channel="messages",state="unavailable"} 0');
      await gateway.noticed("ulimit -n");

      const last = crowd.pop()!;
      const waiting = ask(last, makeRequest("messages"));
      for (const each of crowd) each.close();
      expect([200, 503]).toContain((await waiting).status);
      while ((await ask(last, makeRequest("messages"))).status !== 200) await Bun.sleep(1);
    } finally {
      await gateway.stop();
    }
  },
);
