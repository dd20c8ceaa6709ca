// The layers of what a request costs. A file of its own, because floor.ts must run without the compiler, which calls of the
// system's library need.

export const LAYERS = [
  { name: "copied", tells: "bytes copied between two sockets" },
  { name: "bun", tells: "requests and answers passed on by Bun.serve and fetch" },
  { name: "passed", tells: "requests and answers read and written by lib/http1" },
  { name: "asked", tells: "and the key checked, fields chosen, the model read" },
  { name: "charged", tells: "and usage metered and priced" },
  { name: "ledgered", tells: "and journal and ledger kept" },
] as const;
