// Loaded before all tests (bunfig.toml). Variables that the machine's user has set must not leak into the tests or their
// child processes: a proxy would even get requests to loopback. The time zone is UTC, and the language English. Tests of
// another zone or language set it themselves. When the last test has ended, the tests' files are removed.

import { afterAll } from "bun:test";
import { removeFolder } from "../../src/lib/files/own-file.ts";
import { SWEPT } from "./temp.ts";

const NOT_OURS =
  /^(?:\w*_proxy|(?:anthropic|claude|codex|gateway|gemini|google|openai)_(?!test_)\w+|(?:force|no)_color|xdg_\w+|lang(?:uage)?|lc_\w+)$/i;

for (const name of Object.keys(process.env)) if (NOT_OURS.test(name)) delete process.env[name];
process.env["TZ"] = "UTC";
// GATEWAY_TEST_RUNTIME may name a command that starts an emulated runtime. Child processes are then started with it.
process.execPath = process.env["GATEWAY_TEST_RUNTIME"] || process.execPath;

afterAll(() => {
  try {
    removeFolder(SWEPT);
  } catch (error) {
    // On Windows, the files of a killed process cannot be removed for a moment.
    if (process.platform !== "win32") throw error;
  }
});

/** Without any timer, the runner would ask for the time again and again while it waits. */
setInterval(() => {}, 2 ** 30);
