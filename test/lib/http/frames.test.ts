// Tests frames of RFC 6455 in the style of the Autobahn suite: every kind of frame and every violation, cut anywhere.

import { describe, expect, test } from "bun:test";
import { type Closing, isSendable, type Payload } from "../../../src/lib/http/web-socket.ts";
import { FrameReader, writeClose, writeMessage, writePong } from "../../../src/lib/http/frames.ts";
import { MemoryBudget } from "../../../src/lib/memory/memory-budget.ts";
import { readFrames, writeFrame } from "../../harness/frames.ts";

interface Read {
  readonly messages: { kind: Payload["kind"]; text: string }[];
  readonly pings: string[];
  readonly closings: Closing[];
}

const decode = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

async function read(
  frames: Uint8Array,
  { piece = frames.length || 1, memory = new MemoryBudget(1) } = {},
): Promise<Read> {
  const result = { messages: [] as Read["messages"], pings: [] as string[], closings: [] as Closing[] };
  const copy = Buffer.from(frames);
  let at = 0;
  const next = (): Promise<Buffer | null> =>
    Promise.resolve(at < copy.length ? copy.subarray(at, (at += piece)) : null);
  const reader = new FrameReader(memory, next, Buffer.alloc(0));
  for (let got = await reader.next(); got !== null; got = await reader.next()) {
    if ("message" in got) result.messages.push({ kind: got.message.kind, text: decode(got.message.bytes) });
    else if ("ping" in got) result.pings.push(decode(got.ping));
    else {
      result.closings.push(got.closing);
      break;
    }
  }
  return result;
}

/** Reads a masked frame of the client, as a server would. */
function unmask(frame: Uint8Array): { opcode: number; payload: Buffer } {
  const read: { opcode: number; payload: Buffer }[] = [];
  readFrames((opcode, payload) => void read.push({ opcode, payload }))(frame);
  return read[0] ?? { opcode: 0, payload: Buffer.alloc(0) };
}

/** Writes a frame byte by byte, so that it can be wrong. */
function frame(first: number, payload: Uint8Array | string, mask: readonly number[] | null = null): Buffer {
  const bytes = Buffer.from(payload);
  const bit = mask === null ? 0 : 0x80;
  const long = Buffer.alloc(8);
  long.writeBigUInt64BE(BigInt(bytes.length));
  const isShort = bytes.length < 65_536;
  const size = isShort ? [bit | 126, ...long.subarray(6)] : [bit | 127, ...long];
  const length = bytes.length < 126 ? [bit | bytes.length] : size;
  const hidden = mask === null ? bytes : bytes.map((byte, at) => byte ^ mask[at % 4]!);
  return Buffer.concat([Buffer.from([first, ...length, ...(mask ?? [])]), hidden]);
}

const close = (code: number): Buffer => frame(0x88, Buffer.from([code >> 8, code & 255]));

const MASK = [0x12, 0x9a, 0x00, 0xff];

describe("a message on a WebSocket arrives as it was written", () => {
  test.each([0, 1, 4, 125, 126, 127, 128, 65_535, 65_536, 65_537, 300_000])(
    "a message of %d bytes comes through as it was written, in pieces of any size",
    async (size) => {
      const bytes = Buffer.from("y".repeat(size));
      expect(unmask(writeMessage({ kind: "text", bytes })).payload.equals(bytes)).toBe(true);
      const written = writeFrame(1, bytes);
      for (const piece of [1, 2, 3, 7, 1000, written.length]) {
        if (piece < 7 && size > 70_000) continue;
        const { messages, closings } = await read(written, { piece });
        expect(closings).toEqual([]);
        expect(messages).toEqual([{ kind: "text", text: bytes.toString() }]);
      }
    },
  );

  test("a message in fragments is joined, also with pings and pongs between them", async () => {
    const whole = Buffer.concat([
      frame(0x01, "é€".slice(0, 1)),
      frame(0x89, "one"),
      frame(0x00, ""),
      frame(0x8a, "unasked"),
      frame(0x00, "😀"),
      frame(0x80, "end"),
      frame(0x82, Buffer.from([0, 255])),
    ]);
    for (let piece = 1; piece <= whole.length; piece += 1) {
      const { messages, pings, closings } = await read(whole, { piece });
      expect(closings).toEqual([]);
      expect(messages.map(({ kind }) => kind)).toEqual(["text", "binary"]);
      expect(messages[0]?.text).toBe("é😀end");
      expect(pings).toEqual(["one"]);
    }
  });

  test("a message whose characters are cut between fragments is valid", async () => {
    const [first = 0, second = 0, third = 0] = Buffer.from("€");
    const whole = Buffer.concat([
      frame(0x01, Buffer.from([first])),
      frame(0x80, Buffer.from([second, third])),
    ]);
    expect((await read(whole)).messages).toEqual([{ kind: "text", text: "€" }]);
  });

  test("a message may be as long as the limit, and not one byte longer", async () => {
    const half = Buffer.alloc(32 << 20);
    expect((await read(Buffer.concat([frame(0x02, half), frame(0x80, half)]))).closings).toEqual([]);
    const tooLong = Buffer.concat([frame(0x02, half), frame(0x00, half), frame(0x80, "1")]);
    expect((await read(tooLong)).closings[0]?.code).toBe(1009);
    // A frame that announces too many bytes is refused at its head, and nothing of it is kept.
    expect((await read(Buffer.from([0x81, 127, 0, 0, 0, 1, 0, 0, 0, 0]))).closings[0]?.code).toBe(1009);
  });
});

test("a large message waits until there is memory for it, and keeps the memory until the next message is asked for", async () => {
  const memory = new MemoryBudget(1);
  const open = (): FrameReader => {
    const bytes = [frame(0x82, Buffer.alloc(2 << 20))];
    return new FrameReader(memory, () => Promise.resolve(bytes.pop() ?? null), Buffer.alloc(0));
  };
  const [one, two] = [open(), open()];
  await one.next();
  const waiting = two.next();
  const turned = new Promise((resolve) => setImmediate(resolve, "waits"));
  expect(await Promise.race([waiting, turned])).toBe("waits");
  await one.next();
  expect(await waiting).toHaveProperty("message");
  two.release();
  expect(memory.usedBytes).toBe(0);
});

describe("a violation of RFC 6455 ends the connection", () => {
  const cases: readonly (readonly [string, Uint8Array, number])[] = [
    ["the first reserved bit", frame(0xc1, "a"), 1002],
    ["the second reserved bit", frame(0xa1, "a"), 1002],
    ["the third reserved bit", frame(0x91, "a"), 1002],
    ...[3, 4, 5, 6, 7, 11, 12, 13, 14, 15].map(
      (opcode) => [`opcode ${opcode}`, frame(0x80 | opcode, "a"), 1002] as const,
    ),
    ["a continuation of nothing", frame(0x80, "a"), 1002],
    ["a continuation after a whole message", Buffer.concat([frame(0x81, "a"), frame(0x80, "b")]), 1002],
    ["a text inside a message", Buffer.concat([frame(0x01, "a"), frame(0x81, "b")]), 1002],
    ["a binary inside a message", Buffer.concat([frame(0x01, "a"), frame(0x82, "b")]), 1002],
    ["a ping in fragments", frame(0x09, "a"), 1002],
    ["a close in fragments", frame(0x08, ""), 1002],
    ["a ping of 126 bytes", frame(0x89, "a".repeat(126)), 1002],
    ["a close of 126 bytes", frame(0x88, "a".repeat(126)), 1002],
    ["a masked frame of a server", frame(0x81, "a", MASK), 1002],
    ["a length of 63 bits", Buffer.from([0x81, 127, 0x7f, 255, 255, 255, 255, 255, 255, 255]), 1009],
    ["a length with the highest bit", Buffer.from([0x82, 127, 255, 255, 255, 255, 255, 255, 255, 255]), 1009],
    ["a text that is not UTF-8", frame(0x81, Buffer.from([0xce, 0xba, 0xe1, 0xbd])), 1007],
    ["a text with a surrogate", frame(0x81, Buffer.from([0xed, 0xa0, 0x80])), 1007],
    ["a text with an overlong character", frame(0x81, Buffer.from([0xc0, 0xaf])), 1007],
    ["a text beyond Unicode", frame(0x81, Buffer.from([0xf4, 0x90, 0x80, 0x80])), 1007],
    ["a close of one byte", frame(0x88, "a"), 1002],
    ...[0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535].map(
      (code) => [`close code ${code}`, close(code), 1002] as const,
    ),
    ["a close reason that is not UTF-8", frame(0x88, Buffer.from([3, 232, 0xff])), 1007],
  ];
  test.each(cases)("the connection ends with the right close code after %s", async (_, bytes, code) => {
    for (const piece of [1, 2, bytes.length])
      expect((await read(bytes, { piece })).closings[0]?.code).toBe(code);
  });

  test("a message of very many fragments, each of which costs memory, ends the connection", async () => {
    const many = Buffer.concat([frame(0x01, ""), ...Array.from({ length: 65_536 }, () => frame(0x00, ""))]);
    expect((await read(many)).closings[0]?.code).toBe(1009);
  });
});

describe("a close frame is read and written as RFC 6455 says", () => {
  test.each([1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999])(
    "a close frame with code %d carries the code and the reason",
    async (code) => {
      expect(isSendable(code)).toBe(true);
      const { payload } = unmask(writeClose({ code, reason: "because €" }));
      const { closings } = await read(writeFrame(8, payload), { piece: 1 });
      expect(closings).toEqual([{ code, reason: "because €" }]);
    },
  );

  test("a close frame without a code counts as 1005, and a code that may not be sent is left out", async () => {
    for (const code of [1005, 1006, 1015, 0])
      expect(unmask(writeClose({ code, reason: "lost" })).payload).toHaveLength(0);
    expect((await read(frame(0x88, ""))).closings).toEqual([{ code: 1005, reason: "" }]);
  });

  test("a close frame cuts a long reason between characters", async () => {
    const { payload } = unmask(writeClose({ code: 1000, reason: "€".repeat(100) }));
    expect(payload.subarray(2).toString()).toBe("€".repeat(41));
  });

  test("a close frame ends reading: what follows is ignored, however wrong it is", async () => {
    const whole = Buffer.concat([close(1000), frame(0x81, "late"), frame(0xff, "x")]);
    for (let piece = 1; piece <= whole.length; piece += 1) {
      const { closings, messages } = await read(whole, { piece });
      expect([closings, messages]).toEqual([[{ code: 1000, reason: "" }], []]);
    }
  });
});

test.each([0x89, 0x8a, 0x00, 0x81])("timers run during a flood of frames (first byte %d)", async (first) => {
  let turns = 0;
  const other = setInterval(() => (turns += 1), 0);
  const flood = Buffer.alloc(100_000, frame(first, ""));
  await read(first === 0 ? Buffer.concat([frame(0x01, ""), flood]) : flood);
  clearInterval(other);
  expect(turns).toBeGreaterThan(20);
});

test("a pong carries the ping's bytes", async () => {
  expect(unmask(writePong(Buffer.from("abc")))).toEqual({ opcode: 0xa, payload: Buffer.from("abc") });
});
