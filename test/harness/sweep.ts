// Loaded before all tests (bunfig.toml): removes their files when the last test has ended.

import { afterAll } from "bun:test";
import { rmSync } from "node:fs";
import { SWEPT } from "./temp.ts";

afterAll(() => rmSync(SWEPT, { recursive: true, force: true }));
