// `npm test` and `npm run test:fast`: builds the executable, runs the tests with it, removes it, and says what was skipped.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { describeSkipped, findProblem } from "../test/harness/needs.ts";

/** What starts processes or a browser, or measures. */
const SLOW = ["test/{cli,e2e,promises,repository,simulate,web}/**", "test/**/{many-writers,file-lock}.test.ts"];

const BUILD = join(import.meta.dir, "build.ts");

const words = process.argv.slice(2);
const isFast = words[0] === "--fast";
/** A test that hangs fails after this time. The slowest one takes a tenth of it on a quiet machine. */
const TIMEOUT_MS = isFast ? 20_000 : 60_000;
const ignored = isFast ? SLOW.map((pattern) => `--path-ignore-patterns=${pattern}`) : [];
/** Tests wait for sockets, files and a browser for half of their time. */
const workers = Math.max(4, availableParallelism());
const flags = [
  `--parallel=${workers}`,
  // To load and compile the source again for each file takes a seventh of the whole time.
  "--no-isolate",
  `--timeout=${TIMEOUT_MS}`,
  ...ignored,
  ...words.slice(isFast ? 1 : 0),
];

/** An interrupt reaches the tests too. They end first. */
process.on("SIGINT", () => {});

function run(executable: string, ...command: readonly string[]): Promise<number> {
  const env = { ...process.env, GATEWAY_TEST_EXECUTABLE: executable };
  return Bun.spawn([process.execPath, ...command], { env, stdio: ["inherit", "inherit", "inherit"] }).exited;
}

/** The browser's files take longest and start first, so that no worker is left alone with them at the end. The runner
 *  follows the times only if it knows that of each file. */
function writeTimings(path: string): string {
  const root = join(import.meta.dir, "..");
  const names = [...new Bun.Glob("test/**/*.test.{ts,tsx}").scanSync(root)].toSorted();
  const files = Object.fromEntries(names.map((name) => [name, name.startsWith("test/web/") ? 1000 : 1]));
  files["test/web/flows.test.ts"] = 2000;
  writeFileSync(path, JSON.stringify({ version: 1, files }));
  return path;
}

async function runTests(): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "gateway-tests-"));
  const given = process.env["GATEWAY_TEST_EXECUTABLE"] ?? "";
  const executable = given === "" && !isFast ? join(folder, "gateway") : given;
  try {
    const status = executable === given ? 0 : await run("", BUILD, executable);
    const timings = writeTimings(join(folder, "timings.json"));
    return status === 0 ? await run(executable, "test", `--timings=${timings}`, ...flags) : status;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const problem = findProblem();
if (problem !== null) {
  console.error(problem);
  process.exit(1);
}
const status = await runTests();
console.log(describeSkipped());
process.exit(status);
