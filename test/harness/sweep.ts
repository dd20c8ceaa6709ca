// Loaded before all tests (bunfig.toml): removes what they leave behind when the last of them has ended.

import { afterAll } from "bun:test";
import { rmSync } from "node:fs";
import { SWEPT } from "./temp.ts";

afterAll(() => rmSync(SWEPT, { recursive: true, force: true }));
