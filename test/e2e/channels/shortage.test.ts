// The gateway runs out of open files, and so of connections: it says so, blames no channel,
// goes on accepting, and works as before once there are enough.

import { expect, test } from "bun:test";
import type { Socket } from "node:net";
import { type ChildGateway, makeConfig, startGateway } from "../../harness/gateway.ts";
import { openRaw, parseAnswer, type RawAnswer, type RawConnection, writeRequest } from "../../harness/raw.ts";
import { startUpstream } from "../../lib/http1/peers.ts";
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

const whole = (bytes: Buffer): boolean => parseAnswer(bytes)?.complete === true;

async function ask(client: RawConnection, request: Parameters<typeof writeRequest>[0]): Promise<RawAnswer> {
  client.send(writeRequest(request));
  return parseAnswer(await client.until(whole))!;
}

/** Connects until the gateway has no room and says so. */
async function crowd({ port }: ChildGateway): Promise<{ clients: RawConnection[]; refusal: RawAnswer }> {
  const clients: RawConnection[] = [];
  for (;;) {
    const client = await openRaw(port);
    const answer = await ask(client, { ...makeRequest("messages"), target: "/v1/messages/x" });
    if (answer.status !== 404) return { clients, refusal: answer };
    clients.push(client);
    expect(clients.length).toBeLessThan(FILES);
  }
}

/** Sends a request that gets no connection. */
async function knock({ port }: ChildGateway): Promise<unknown> {
  try {
    const client = await openRaw(port);
    client.send(writeRequest({ target: "/healthz" }));
    return await client.ended;
  } catch {
    return "reset";
  }
}

const notices = (gateway: ChildGateway): string[] =>
  gateway
    .stdout()
    .split("\n")
    .filter((line) => line.includes('"notice"') && line.includes("ulimit -n"));

test.skipIf(process.platform === "win32")(
  "clients are turned away when files run out, each with a reason, while those who were taken are served",
  async () => {
    const waiting: Socket[] = [];
    await using upstream = await startUpstream((socket) => void waiting.push(socket));
    const reply = (socket: Socket): void =>
      void socket.write(
        `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${ANSWER.length}\r\n\r\n${ANSWER}`,
      );
    const gateway = await startGateway({
      config: makeConfig({ url: `http://127.0.0.1:${upstream.port}` }),
      command: COMMAND,
    });
    try {
      const { clients, refusal } = await crowd(gateway);
      expect([refusal.status, refusal.field("retry-after"), refusal.field("connection")]).toEqual([
        503,
        "5",
        "close",
      ]);
      expect(refusal.field("x-request-id")).toStartWith("req_");
      const { type, error } = JSON.parse(refusal.text);
      expect([type, error.type]).toEqual(["error", "api_error"]);
      expect(error.message).toContain("raise its limit (ulimit -n)");

      // No connection waits unaccepted: that would never end, and would keep the processor busy.
      await Promise.all(Array.from({ length: 3 * FILES }, () => knock(gateway)));

      const isShort = (client: RawConnection): boolean => client.bytes().includes("was not called");
      for (const client of clients) {
        const [seen, length] = [waiting.length, client.bytes().length];
        client.send(writeRequest(makeRequest("messages")));
        const answered = client.until((bytes) => whole(bytes.subarray(length)));
        answered.catch(() => {});
        while (waiting.length === seen && !isShort(client))
          await Promise.race([answered, new Promise((resolve) => setImmediate(resolve))]);
        if (isShort(client)) break;
      }
      const short = clients.find(isShort)!;
      expect(waiting.length).toBeGreaterThan(4);
      const answer = parseAnswer(short.bytes().subarray(short.bytes().indexOf("HTTP/1.1 503")))!;
      expect([answer.status, answer.field("retry-after")]).toEqual([503, "5"]);
      expect(JSON.parse(answer.text).error.message).toMatch(
        /^The channel "messages" was not called: .* raise its limit \(ulimit -n\)$/,
      );
      expect(gateway.ledger()).toEqual([]);

      // An accepted client looks at the channels: none has a fault.
      const watcher = clients.at(-1)!;
      const length = watcher.bytes().length;
      watcher.send(writeRequest({ target: "/metrics" }));
      const page = (await watcher.until((bytes) => whole(bytes.subarray(length)))).toString();
      expect(page).toContain('gateway_channel_state{channel="messages",state="resting"} 0');
      expect(page).toContain('gateway_channel_state{channel="messages",state="unavailable"} 0');
      await gateway.noticed("ulimit -n");
      expect(notices(gateway)).toHaveLength(1);
      const before = watcher.bytes().length;
      watcher.send(
        writeRequest({ ...makeRequest("messages"), method: "GET", target: "/v1/models", body: "" }),
      );
      const list = parseAnswer(
        (await watcher.until((bytes) => whole(bytes.subarray(before)))).subarray(before),
      )!;
      expect([list.status, list.field("retry-after")]).toEqual([503, "5"]);
      expect(list.text).toContain("ulimit -n");

      for (const socket of waiting.splice(0)) reply(socket);
      for (const client of clients) client.close();
      await Promise.all(clients.map((client) => client.ended));
      const later = await openRaw(gateway.port);
      const asked = ask(later, makeRequest("messages"));
      while (waiting.length === 0) await Bun.sleep(1);
      waiting.splice(0).forEach(reply);
      expect((await asked).status).toBe(200);
      later.close();
    } finally {
      await gateway.stop();
    }
  },
);
