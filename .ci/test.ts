// `npm test` builds the executable, runs the tests with it, and removes it. `npm run test:fast` runs the tests that are not
// slow, on the source. Both say what was skipped.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { describeSkipped, findProblem } from "../test/harness/needs.ts";

/** Tests that start processes or a browser, or measure time. */
const SLOW = [
  "test/{cli,e2e,promises,repository,simulate,web}/**",
  "test/**/{many-writers,file-lock}.test.ts",
];

const BUILD = join(import.meta.dir, "build.ts");

const words = process.argv.slice(2);
const isFast = words[0] === "--fast";
/** A test that hangs fails after this time. The slowest one takes a tenth of it on a quiet machine. */
const TIMEOUT_MS = isFast ? 20_000 : 60_000;
const ignored = isFast ? SLOW.map((pattern) => `--path-ignore-patterns=${pattern}`) : [];
/** At least four workers: for half of their time, tests wait for sockets, files and a browser. */
const workers = Math.max(4, availableParallelism());
const flags = [
  `--parallel=${workers}`,
  // Without it, each file loads and compiles the source again, which takes a seventh of the whole time.
  "--no-isolate",
  `--timeout=${TIMEOUT_MS}`,
  ...ignored,
  ...words.slice(isFast ? 1 : 0),
];

/** An interrupt also reaches the tests. This process waits for their end, and ends then. */
process.on("SIGINT", () => {});

function start(executable: string, command: readonly string[], stderr: "inherit" | "pipe") {
  const env = { ...process.env, GATEWAY_TEST_EXECUTABLE: executable };
  if (process.stderr.isTTY && env.NO_COLOR === undefined) env["FORCE_COLOR"] = "1";
  return Bun.spawn([process.execPath, ...command], { env, stdio: ["inherit", "inherit", stderr] });
}

/** A test that ends the process (`process.exit(0)` in a command) also ends the runner with status 0: only the totals at
 *  the end say that all tests ran. */
async function runToTheSum(executable: string, command: readonly string[]): Promise<number> {
  const child = start(executable, command, "pipe");
  const decoder = new TextDecoder();
  let end = "";
  for await (const bytes of child.stderr as ReadableStream<Uint8Array>) {
    process.stderr.write(bytes);
    end = (end + decoder.decode(bytes, { stream: true })).slice(-4096);
  }
  const status = await child.exited;
  if (status !== 0 || /^Ran \d+ tests? across \d+ files?\./m.test(Bun.stripANSI(end))) return status;
  console.error("The tests ended without totals: one of them has ended the process.");
  return 1;
}

/** The browser's files take longest and start first, so that no worker is left alone with them at the end. The runner
 *  follows the times only if it knows the time of each file. */
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
    const status = executable === given ? 0 : await start("", [BUILD, executable], "inherit").exited;
    const timings = writeTimings(join(folder, "timings.json"));
    return status === 0 ? await runToTheSum(executable, ["test", `--timings=${timings}`, ...flags]) : status;
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
