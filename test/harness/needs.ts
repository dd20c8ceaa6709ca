// Things that a machine may lack. Tests that need them skip visibly, and the last line of `npm test`
// says so. If REQUIRE names such a thing (REQUIRE=recordings,browser), a run without it fails.

import { existsSync } from "node:fs";
import { join } from "node:path";

const SHARED = join(import.meta.dir, "../../../shared");
const BROWSERS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** The browser that CHROMIUM names, or else the first of BROWSERS that exists. */
export const browserProgram: string | undefined = [process.env["CHROMIUM"] ?? "", ...BROWSERS].find(
  (path) => path !== "" && existsSync(path),
);

interface Need {
  readonly isThere: boolean;
  /** What to do so that the tests that need it run on this machine. */
  readonly how: string;
}

const hasPrograms = (...names: string[]): boolean => names.every((name) => Bun.which(name) !== null);

const NEEDS = {
  recordings: {
    isThere: existsSync(join(SHARED, "fixtures/manifest.json")),
    how: "put recorded traffic into ../shared/fixtures",
  },
  vectors: {
    isThere: existsSync(join(SHARED, "reference/pricing-vectors.json")),
    how: "put pricing-vectors.json into ../shared/reference",
  },
  schemas: {
    isThere: existsSync(join(SHARED, "reference/openai-chat-responses.schemas.json")),
    how: "put openai-chat-responses.schemas.json into ../shared/reference",
  },
  browser: { isThere: browserProgram !== undefined, how: "install Chromium, or name one in CHROMIUM" },
  shells: { isThere: hasPrograms("zsh", "fish", "pwsh"), how: "install zsh, fish and PowerShell" },
  tools: {
    isThere: (process.env["REAL_CLIS"] ?? "") !== "",
    how: "npm run test:tools downloads the released tools",
  },
} as const satisfies Readonly<Record<string, Need>>;

const required = (process.env["REQUIRE"] ?? "").split(",").filter((name) => name !== "");

/** Says what is wrong with REQUIRE: it names an unknown thing, or one that this machine lacks. Null: nothing is wrong. */
export function findProblem(): string | null {
  for (const name of required) {
    const need = Object.entries(NEEDS).find(([each]) => each === name)?.[1];
    if (need === undefined)
      return `REQUIRE names "${name}", which is none of ${Object.keys(NEEDS).join(", ")}`;
    if (!need.isThere) return `REQUIRE names "${name}", which this machine lacks: ${need.how}`;
  }
  return null;
}

/** Whether this machine has the thing, for `test.skipIf`. Throws if REQUIRE names a thing that is missing. */
export function isThere(name: keyof typeof NEEDS): boolean {
  const problem = findProblem();
  if (problem !== null) throw new Error(problem);
  return NEEDS[name].isThere;
}

/** Returns the last line of a test run. */
export function describeSkipped(): string {
  const missing = Object.entries(NEEDS).filter(([, need]) => !need.isThere);
  const ways = missing.map(([name, { how }]) => `${name} (${how})`);
  return ways.length === 0
    ? "This machine has everything that tests need."
    : `Tests that need these were skipped: ${ways.join("; ")}.`;
}
