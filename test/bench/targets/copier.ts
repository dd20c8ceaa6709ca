// The least that this runtime can do: it copies bytes between a client's socket and an upstream socket that stays
// open as long. A separate program: copier.ts UPSTREAM_PORT. It prints its port on stdout.

import type { Socket } from "bun";

interface End {
  other: Socket<End> | null;
  /** Bytes that arrived before the other end was open. */
  early: Buffer[];
}

const upstreamPort = Number(process.argv[2]);
const copy = {
  data(socket: Socket<End>, bytes: Buffer): void {
    if (socket.data.other === null) socket.data.early.push(Buffer.from(bytes));
    else if (socket.data.other.write(bytes) < bytes.length) throw new Error("not taken whole");
  },
  close(socket: Socket<End>): void {
    socket.data.other?.end();
  },
};

const listener = Bun.listen<End>({
  hostname: "127.0.0.1",
  port: 0,
  socket: {
    ...copy,
    open(client) {
      client.data = { other: null, early: [] };
      void Bun.connect<End>({
        hostname: "127.0.0.1",
        port: upstreamPort,
        data: { other: client, early: [] },
        socket: {
          ...copy,
          open(upstream) {
            client.data.other = upstream;
            for (const bytes of client.data.early.splice(0)) upstream.write(bytes);
          },
        },
      });
    },
  },
});
process.stdout.write(`${listener.port}\n`);
