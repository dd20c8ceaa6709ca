// What a connection does with a call that it cannot send: the case for which no upstream can be arranged through
// the client, which asks the system first.

import { expect, test } from "bun:test";
import type { Socket } from "bun";
import { PendingExchange } from "../../../../src/lib/http1/client/pending-exchange.ts";
import type { Peer } from "../../../../src/lib/http1/client/dial.ts";
import { UpstreamConnection } from "../../../../src/lib/http1/client/upstream-connection.ts";
import { outbound, readAll, startUpstream } from "../peers.ts";

test("a call of which a reused connection took no byte goes to another connection, unsent and unreported", async () => {
  await using upstream = await startUpstream((socket) => {
    socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
  });
  const released = Promise.withResolvers<void>();
  const moved: PendingExchange[] = [];
  const owner = {
    release: () => released.resolve(),
    forget() {},
    retry: (call: PendingExchange) => void moved.push(call),
  };
  const closed = Promise.withResolvers<void>();
  const socket: Socket<Peer> = await Bun.connect<Peer>({
    hostname: "127.0.0.1",
    port: upstream.port,
    socket: {
      data: (_, bytes) => wire.receive(bytes),
      close: (_, error) => {
        wire.closed(error);
        closed.resolve();
      },
    },
  });
  const wire = new UpstreamConnection(socket, owner);
  const request = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n";
  const first = new PendingExchange(outbound(upstream.origin, { method: "POST" }), request);
  wire.carry(first);
  expect((await readAll(await first.head)).toString()).toBe("ok");
  await released.promise;
  for (const peer of upstream.sockets) peer.resetAndDestroy();
  let resent = 0;
  const second = new PendingExchange(
    outbound(upstream.origin, { method: "POST", onResend: () => void resent++ }),
    request,
  );
  wire.carry(second);
  await closed.promise;
  expect([moved, second.sent, resent, upstream.requests.length]).toEqual([[second], false, 0, 1]);
});
