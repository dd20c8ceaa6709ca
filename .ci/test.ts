// `npm test` and `npm run test:fast`: builds the executable, runs the tests with it, removes it, and says what was skipped.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeSkipped, findProblem } from "../test/harness/needs.ts";

/** What starts processes or a browser, or measures. */
const SLOW = ["test/{cli,e2e,repository,simulate,web}/**", "test/**/{crash,many-writers,file-lock}.test.ts"];

const BUILD = join(import.meta.dir, "build.ts");

const words = process.argv.slice(2);
const isFast = words[0] === "--fast";
/** A test that hangs fails after this time. The slowest one takes a tenth of it on a quiet machine. */
const TIMEOUT_MS = isFast ? 20_000 : 60_000;
const ignored = isFast ? SLOW.map((pattern) => `--path-ignore-patterns=${pattern}`) : [];
const flags = ["--parallel", `--timeout=${TIMEOUT_MS}`, ...ignored, ...words.slice(isFast ? 1 : 0)];

/** An interrupt reaches the tests too. They end first. */
process.on("SIGINT", () => {});

function run(executable: string, ...command: readonly string[]): Promise<number> {
  const env = { ...process.env, GATEWAY_TEST_EXECUTABLE: executable };
  return Bun.spawn([process.execPath, ...command], { env, stdio: ["inherit", "inherit", "inherit"] }).exited;
}

async function runBuilt(): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "gateway-tests-"));
  try {
    const executable = join(folder, "gateway");
    const status = await run("", BUILD, executable);
    return status === 0 ? await run(executable, "test", ...flags) : status;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const problem = findProblem();
if (problem !== null) {
  console.error(problem);
  process.exit(1);
}
const given = process.env["GATEWAY_TEST_EXECUTABLE"] ?? "";
const status = given === "" && !isFast ? await runBuilt() : await run(given, "test", ...flags);
console.log(describeSkipped());
process.exit(status);
