import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readStalls } from "../../bench/stalls/noted-stalls.ts";
import { makeTempFolder } from "../../harness/temp.ts";

const WATCHDOG = join(import.meta.dir, "../../bench/stalls/watchdog.ts");

/** Work for 200 ms of CPU time, between turns of the event loop. */
const PROGRAM = `
function workTooLong() {
  const { user } = process.cpuUsage();
  for (let sum = 0; process.cpuUsage().user - user < 200_000;) sum += Math.sqrt(sum + 1);
  setTimeout(() => process.exit(0), 100);
}
setTimeout(workTooLong, 50);
`;

test("the watchdog of the soak and the benchmark names the function that blocks the event loop", async () => {
  using folder = makeTempFolder();
  mkdirSync(folder.join("src"));
  const program = folder.join("src/program.ts");
  writeFileSync(program, PROGRAM);
  const stalls = folder.join("stalls");
  const child = Bun.spawn([process.execPath, "--preload", WATCHDOG, program], {
    env: { ...process.env, STALLS: stalls },
    stdout: "inherit",
    stderr: "inherit",
  });
  expect(await child.exited).toBe(0);
  const [longest] = readStalls(stalls);
  expect(longest?.ms).toBeGreaterThan(100);
  expect(longest?.names).toContain("workTooLong");
});
