// `bun test/differ/make.ts 0.1.0=EXECUTABLE 0.1.1=EXECUTABLE 0.2.0=EXECUTABLE`: makes the stored ledgers, each with the
// executable of its version, and the snapshots of what the last executable prints.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { makeSmall, STORED } from "./ledgers.ts";
import { takeSnapshots } from "./snapshots.ts";

const words = process.argv.slice(2).map((word) => word.split("="));
const olds = words.map(([version = "", path = ""]) => ({ version, executable: resolve(path) }));
const folder = mkdtempSync(join(tmpdir(), "gateway-ledgers-"));
rmSync(STORED, { recursive: true, force: true });
await makeSmall(olds, STORED);
await takeSnapshots(olds.at(-1)!.executable, folder);
rmSync(folder, { recursive: true });
process.exit(0);
