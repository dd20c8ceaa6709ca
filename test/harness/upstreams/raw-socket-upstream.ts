// An upstream whose WebSocket frames are written by hand, because no proper server sends them.

import type { Socket } from "bun";
import { acceptKey, writeClose, writeText } from "../frames.ts";

export interface RawSocketUpstream {
  readonly url: string;
  readonly sockets: Socket[];
  stop(): void;
}

interface Script {
  /** Bytes that the upstream sends in one packet with its 101. */
  readonly early?: Uint8Array;
  /** Header fields of the 101. */
  readonly fields?: string;
  /** Called with what arrives after the handshake. */
  readonly receive?: (socket: Socket, chunk: Buffer) => void;
  readonly opened?: (socket: Socket) => void;
}

export function textFrame(event: unknown): Uint8Array {
  return writeText(JSON.stringify(event));
}

export function closeFrame(code: number, reason: string): Uint8Array {
  return writeClose(code, reason);
}

export function startRawSocketUpstream(script: Script): RawSocketUpstream {
  const sockets: Socket[] = [];
  const heads = new Map<Socket, string>();
  const server = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open: (socket) => {
        sockets.push(socket);
        heads.set(socket, "");
      },
      data: (socket, chunk) => {
        const before = heads.get(socket);
        if (before === undefined) return script.receive?.(socket, chunk);
        const head = before + chunk.toString("latin1");
        heads.set(socket, head);
        if (!head.includes("\r\n\r\n")) return;
        heads.delete(socket);
        const key = /^sec-websocket-key: (.*)\r$/im.exec(head)?.[1] ?? "";
        const fields = `upgrade: websocket\r\nsec-websocket-accept: ${acceptKey(key)}\r\n`;
        const reply = `HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\n${fields}${script.fields ?? ""}\r\n`;
        socket.write(Buffer.concat([Buffer.from(reply), script.early ?? Buffer.alloc(0)]));
        script.opened?.(socket);
      },
      error: () => {},
    },
  });
  return { url: `http://127.0.0.1:${server.port}/v1`, sockets, stop: () => server.stop(true) };
}
