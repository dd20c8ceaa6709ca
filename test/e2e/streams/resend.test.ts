// Upstreams whose connections end or send at the wrong moment: each paid request arrives once, and no bytes
// of one answer get into another.

import { describe, expect, setSystemTime, test } from "bun:test";
import type { Socket } from "node:net";
import { startUpstream, type SeenRequest, type Upstream } from "../../lib/http1/peers.ts";
import { inWorld, makeRequest, MESSAGE, onChannels, type World } from "../world.ts";

const answerWith = (text: string): string => {
  const body = JSON.stringify({
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: MESSAGE.model,
    content: [{ type: "text", text }],
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: { input_tokens: 3, output_tokens: 5 },
  });
  return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
};

/** The gateway in front of an upstream that follows a script. */
async function before(
  script: (socket: Socket, request: SeenRequest) => void,
  use: (world: World, requests: readonly SeenRequest[], upstream: Upstream) => Promise<void>,
  { onConnection, channel = {} }: { onConnection?: (socket: Socket) => void; channel?: object } = {},
): Promise<void> {
  await using upstream = await startUpstream(script, onConnection);
  const base_url = `http://127.0.0.1:${upstream.port}`;
  await inWorld(
    (world) => use(world, upstream.requests, upstream),
    () => onChannels({ ...channel })(base_url),
  );
}

describe("an upstream that receives a whole POST on a kept-alive connection", () => {
  const cases = [0, 50, 300].flatMap((ms) => [["closes", ms] as const, ["resets", ms] as const]);
  test.each(cases)(
    "an upstream that has received a whole POST and then %s it %p ms later gets it once, and the line says so",
    async (how, ms) => {
      const script = (socket: Socket, { turn }: SeenRequest): void => {
        if (turn === 1) socket.write(answerWith("well"));
        else setTimeout(() => (how === "closes" ? socket.end() : socket.resetAndDestroy()), ms);
      };
      await before(script, async (world, requests) => {
        expect((await world.trace(makeRequest("messages"))).answer.status).toBe(200);
        const { answer, lines } = await world.trace(makeRequest("messages"));
        expect(requests.map(({ turn, connection }) => [connection, turn])).toEqual([
          [1, 1],
          [1, 2],
        ]);
        expect(answer.status).toBe(502);
        expect(answer.field("x-should-retry")).not.toBe("false");
        expect(lines).toMatchObject([
          { basis: "unknown", charge_usd: null, attempts: [{ channel: "messages", error: "reset" }] },
        ]);
        expect(lines[0]).not.toHaveProperty("suspect");
      });
    },
  );
});

test("after the machine has slept, a request uses no connection from before", async () => {
  await before(
    (socket) => void socket.write(answerWith("well")),
    async (world, requests, upstream) => {
      await world.trace(makeRequest("messages"));
      const { connections } = upstream;
      setSystemTime(Date.now() + 3_600_000);
      try {
        expect((await world.trace(makeRequest("messages"))).answer.status).toBe(200);
      } finally {
        setSystemTime();
      }
      expect(requests).toHaveLength(2);
      expect(requests[1]?.connection).toBeGreaterThan(connections);
    },
  );
});
