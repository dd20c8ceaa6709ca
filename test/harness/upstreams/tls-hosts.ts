// Hosts with names of their own, on loopback: a proxy that knows CONNECT, ends TLS for these hosts, and hands their
// requests to `onExchange`. Other hosts cannot be reached through the proxy.

import { connect, createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import type { Exchange } from "../../../src/lib/http/exchange.ts";
import { listen } from "../../../src/lib/http/serve.ts";
import { makeIdentity } from "./identity.ts";

export interface TlsHosts {
  /** The address of the proxy. */
  readonly url: string;
  /** The certificate that clients have to trust, as PEM text. */
  readonly authority: string;
  close(): void;
}

const LOOPBACK = "127.0.0.1";

export async function openTlsHosts(
  hosts: readonly string[],
  onExchange: (exchange: Exchange) => void,
): Promise<TlsHosts> {
  const { authority, certificate: cert, key } = makeIdentity(hosts, Date.now());
  const plain = listen({
    hostname: LOOPBACK,
    port: 0,
    onExchange,
    onError: reportError,
    maxMessageBytes: 64 << 20,
  });
  const open = new Set<Socket>();
  const join = (near: Socket, port: number): void => {
    const far = connect(port, LOOPBACK);
    for (const [one, other] of [[near, far] as const, [far, near] as const]) {
      open.add(one);
      one.pipe(other);
      one.on("error", () => other.destroy());
      one.on("close", () => {
        open.delete(one);
        other.destroy();
      });
    }
  };
  const ends = createTlsServer({ cert, key, ALPNProtocols: ["http/1.1"] }, (socket) =>
    join(socket, plain.port),
  );
  ends.on("tlsClientError", () => {});
  const tlsPort = await listenOn(ends);
  const proxy = createServer((socket) => {
    let head = "";
    socket.on("error", () => socket.destroy());
    const read = (chunk: Buffer): void => {
      head += chunk.toString("latin1");
      if (!head.includes("\r\n\r\n")) return;
      socket.off("data", read);
      const [, host = ""] = /^CONNECT ([\w.-]+):443 /.exec(head) ?? [];
      if (!hosts.includes(host))
        return void socket.end("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n");
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      join(socket, tlsPort);
    };
    socket.on("data", read);
  });
  const port = await listenOn(proxy);
  return {
    url: `http://${LOOPBACK}:${port}`,
    authority,
    close() {
      proxy.close();
      ends.close();
      plain.stopNow();
      for (const socket of open) socket.destroy();
    },
  };
}

function listenOn(server: Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, LOOPBACK, () => {
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : 0);
    });
  });
}
