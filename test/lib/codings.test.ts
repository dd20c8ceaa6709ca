import { describe, expect, test } from "bun:test";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { CodingError, decodeBody } from "../../src/lib/codings.ts";
import { BodyTooLarge } from "../../src/lib/http/exchange.ts";

const readFailure = (promise: Promise<unknown>) =>
  promise.then(
    () => null,
    (error: unknown) => error,
  );
const plain = new TextEncoder().encode(JSON.stringify({ model: "m", text: "hello ".repeat(2000) }));
const CODINGS: readonly [string, (bytes: Uint8Array) => Uint8Array][] = [
  ["gzip", gzipSync],
  ["x-gzip", gzipSync],
  ["GZIP", gzipSync],
  ["zstd", zstdCompressSync],
  ["br", brotliCompressSync],
  ["deflate", deflateSync],
];

describe.each(CODINGS)("%s", (coding, compress) => {
  test("is decoded up to the limit and not beyond", async () => {
    expect(Buffer.compare(await decodeBody(compress(plain), coding, plain.length), plain)).toBe(0);
    expect(await readFailure(decodeBody(compress(plain), coding, plain.length - 1))).toBeInstanceOf(
      BodyTooLarge,
    );
  });

  test("that is invalid is an error", async () => {
    expect(await readFailure(decodeBody(plain, coding, 1_000_000))).toBeInstanceOf(CodingError);
  });
});

test("a body without a coding keeps the same bytes", async () => {
  for (const coding of [undefined, "", "identity", " identity , "]) {
    expect(await decodeBody(plain, coding, 10)).toBe(plain);
  }
});

test("several codings are decoded from the last to the first", async () => {
  const twice = zstdCompressSync(gzipSync(plain));
  expect(Buffer.compare(await decodeBody(twice, "gzip, zstd", plain.length), plain)).toBe(0);
});

test("unknown codings and long chains of them are refused", async () => {
  expect(await readFailure(decodeBody(plain, "compress", 10))).toBeInstanceOf(CodingError);
  expect(await readFailure(decodeBody(plain, "gzip,gzip,gzip,gzip", 10))).toBeInstanceOf(CodingError);
});

test("a decompression bomb stops at the limit", async () => {
  const bomb = zstdCompressSync(Buffer.alloc(64 << 20));
  expect(bomb.length).toBeLessThan(10_000);
  expect(await readFailure(decodeBody(bomb, "zstd", 1 << 20))).toBeInstanceOf(BodyTooLarge);
});
