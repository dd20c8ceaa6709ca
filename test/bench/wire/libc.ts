// The C library of the machine, called without a compiler.

import { dlopen, type FFIFunction } from "bun:ffi";

export const MAC = process.platform === "darwin";

export function openLibc<const Functions extends Record<string, FFIFunction>>(functions: Functions) {
  const names = MAC ? ["libSystem.B.dylib"] : ["libc.so.6", "libc.so", `libc.musl-${process.arch}.so.1`];
  for (const name of names) {
    try {
      return dlopen(name, functions).symbols;
    } catch {
      // Try the next name; Windows has none of them.
    }
  }
  throw new Error("The benchmark needs Linux or macOS: on Windows run it under WSL.");
}
