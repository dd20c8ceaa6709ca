// Writes and reads the WebSocket frames of test clients and test upstreams, without the gateway's own code.

export const FRAMES = { text: 0x1, close: 0x8, ping: 0x9, pong: 0xa } as const;

export function acceptKey(key: string): string {
  return Bun.CryptoHasher.hash("sha1", `${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`, "base64");
}

/** A client has to mask its frames. This mask consists of zeros, which change nothing. */
export function writeFrame(opcode: number, payload: Uint8Array, isClient = false): Buffer {
  const { length } = payload;
  const size = length < 126 ? 0 : length < 65_536 ? 2 : 8;
  const head = Buffer.alloc(2 + size + (isClient ? 4 : 0));
  head[0] = 0x80 | opcode;
  head[1] = (isClient ? 0x80 : 0) | (size === 0 ? length : size === 2 ? 126 : 127);
  if (size === 2) head.writeUInt16BE(length, 2);
  if (size === 8) head.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([head, payload]);
}

export function writeText(text: string, isClient = false): Buffer {
  return writeFrame(FRAMES.text, Buffer.from(text), isClient);
}

export function writeClose(code: number, reason: string): Buffer {
  const payload = Buffer.from(`  ${reason}`);
  payload.writeUInt16BE(code);
  return writeFrame(FRAMES.close, payload);
}

/** Returns a function that takes what a client sends, and calls `receive` with each whole frame. */
export function readFrames(receive: (opcode: number, payload: Buffer) => void): (bytes: Uint8Array) => void {
  let held: Buffer = Buffer.alloc(0);
  return (bytes) => {
    held = Buffer.concat([held, bytes]);
    for (let frame = takeFrame(held); frame !== null; frame = takeFrame(held)) {
      held = held.subarray(frame.end);
      receive(frame.opcode, frame.payload);
    }
  };
}

function takeFrame(held: Buffer): { opcode: number; payload: Buffer; end: number } | null {
  const short = (held[1] ?? 0) & 0x7f;
  const start = 6 + (short === 126 ? 2 : short === 127 ? 8 : 0);
  if (held.length < start) return null;
  const length = short < 126 ? short : short === 126 ? held.readUInt16BE(2) : Number(held.readBigUInt64BE(2));
  const end = start + length;
  if (held.length < end) return null;
  const mask = held.subarray(start - 4, start);
  const payload = Buffer.from(held.subarray(start, end).map((byte, at) => byte ^ (mask[at & 3] ?? 0)));
  return { opcode: (held[0] ?? 0) & 0x0f, payload, end };
}
