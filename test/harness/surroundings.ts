// Loaded before all tests (bunfig.toml): settings of the machine for its users' own tools must not leak into the tests or
// their child processes. A proxy would get requests to loopback, too. The time zone is UTC, and the language English:
// tests of other zones or languages name them. When the last test has ended, the tests' files are removed.

import { afterAll } from "bun:test";
import { removeFolder } from "../../src/lib/files/own-file.ts";
import { SWEPT } from "./temp.ts";

const NOT_OURS =
  /^(?:\w*_proxy|(?:anthropic|claude|codex|gateway|gemini|google|openai)_(?!test_)\w+|(?:force|no)_color|xdg_\w+|lang(?:uage)?|lc_\w+)$/i;

for (const name of Object.keys(process.env)) if (NOT_OURS.test(name)) delete process.env[name];
process.env["TZ"] = "UTC";
// A command that starts an emulated runtime, if one is given.
process.execPath = process.env["GATEWAY_TEST_RUNTIME"] || process.execPath;

afterAll(() => {
  try {
    removeFolder(SWEPT);
  } catch (error) {
    // Windows keeps the open files of a killed process for a moment.
    if (process.platform !== "win32") throw error;
  }
});

/** While nothing else keeps the event loop waiting, the runner would ask for the time again and again. */
setInterval(() => {}, 2 ** 30);
