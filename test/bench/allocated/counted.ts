// A gateway from source that prints the size of its heap at each line on stdin. Run it without a collector: then the heap
// only grows, by what was allocated.
//   BUN_JSC_useGC=0 bun counted.ts MAIN serve …

import { heapStats } from "bun:jsc";

const [main = ""] = process.argv.splice(2, 1);
process.stdin.on("data", () => void process.stdout.write(`heap: ${heapStats().heapCapacity}\n`));
await import(main);
