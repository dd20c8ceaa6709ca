// A CPU profile of the gateway while one scenario runs.

import { mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Bench } from "./bench.ts";
import { SCENARIOS } from "./scenarios.ts";
import { MAIN, planGateway } from "./targets.ts";

const PROFILE_MS = 5000;

/** Leaves a profile for a browser's developer tools and one to read in the folder; says where. */
export async function profile(name: string, bench: Bench): Promise<string> {
  const scenario = SCENARIOS.find((candidate) => candidate.name === name);
  if (scenario === undefined)
    throw new Error(`"${name}" has no profile: ${SCENARIOS.map((each) => each.name).join(", ")} have.`);
  const folder = mkdtempSync(join(tmpdir(), "gateway-profile-"));
  const flags = ["--cpu-prof", "--cpu-prof-md", `--cpu-prof-dir=${folder}`];
  const target = await planGateway("gateway", [process.execPath, ...flags, MAIN], bench.cores).start(
    bench.upstream.port,
  );
  await scenario.run(target, { ...bench, ms: PROFILE_MS });
  await target.stop();
  return `${readdirSync(folder)
    .map((file) => join(folder, file))
    .join("\n")}\n`;
}
