// `npm run test:tools`: starts the newest release of each tool that the registry has, and the one before, through
// `gateway run`. It is no part of `npm test`, because its result changes with the registry. `npm run test:tools -- pi qwen`
// tries these only.

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PACKAGES: Readonly<Record<string, string>> = {
  claude: "@anthropic-ai/claude-code",
  codex: "@openai/codex",
  gemini: "@google/gemini-cli",
  opencode: "opencode-ai",
  qwen: "@qwen-code/qwen-code",
  copilot: "@github/copilot",
  pi: "@earendil-works/pi-coding-agent",
  continue: "@continuedev/cli",
  cline: "cline",
};
/** These scripts fetch the program for this machine; npm does not run them by itself. */
const SCRIPTS: Readonly<Record<string, string>> = { claude: "install.cjs", opencode: "postinstall.mjs" };

interface Outcome {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function runCommand(cwd: string, ...command: readonly string[]): Promise<Outcome> {
  const child = Bun.spawn([...command], { cwd, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr, status] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ]);
  return { status, stdout, stderr };
}

async function ask(folder: string, ...words: readonly string[]): Promise<unknown> {
  const { status, stdout } = await runCommand(folder, "npm", "view", ...words, "--json");
  return status === 0 && stdout.trim() !== "" ? JSON.parse(stdout) : null;
}

/** The last two releases, the newest first. */
async function listReleases(folder: string, name: string): Promise<string[]> {
  const versions = await ask(folder, name, "versions");
  const releases = Array.isArray(versions) ? versions.filter((each) => /^\d+\.\d+\.\d+$/.test(each)) : [];
  return releases.toSorted(Bun.semver.order).toReversed().slice(0, 2);
}

/** Why this release is not tried; null: it is installed. */
async function install(folder: string, tool: string, version: string): Promise<string | null> {
  const release = `${PACKAGES[tool]}@${version}`;
  const wanted = await ask(folder, release, "engines.node");
  const { stdout } = await runCommand(folder, "node", "--version");
  const node = stdout.trim().slice(1);
  if (typeof wanted === "string" && !Bun.semver.satisfies(node, wanted))
    return `needs Node ${wanted}, and this machine has ${node}`;
  const { status, stderr } = await runCommand(
    folder,
    "npm",
    "install",
    "--loglevel=error",
    "--no-audit",
    "--no-fund",
    release,
  );
  if (status !== 0)
    return `could not be installed: ${/npm error notarget (.*)|npm error (?!code)(.*)/.exec(stderr)?.[0] ?? stderr}`;
  const script = SCRIPTS[tool];
  if (script === undefined) return null;
  const path = join(folder, "node_modules", PACKAGES[tool] ?? "", script);
  return (await runCommand(folder, "node", path)).status === 0 ? null : `${script} failed`;
}

const wanted = process.argv.slice(2);
const tools = Object.keys(PACKAGES).filter((tool) => wanted.length === 0 || wanted.includes(tool));
const root = mkdtempSync(join(tmpdir(), "gateway-tools-"));
const seen: string[] = [];
let hasFailed = false;
try {
  const sets = ["newest", "before"].map((name) => join(root, name));
  for (const folder of sets) {
    mkdirSync(folder);
    await Bun.write(join(folder, "package.json"), "{}");
  }
  for (const tool of tools) {
    const releases = await listReleases(root, PACKAGES[tool] ?? "");
    for (const [index, folder] of sets.entries()) {
      const version = releases[index];
      const problem = version === undefined ? "has no release" : await install(folder, tool, version);
      seen.push(`${tool} ${version ?? ""}: ${problem === null ? "tried" : `SKIPPED, it ${problem}`}`);
      console.log(seen.at(-1));
    }
  }
  for (const folder of sets) {
    const env = { ...process.env, REAL_CLIS: folder };
    const files = ["tools", "sessions", "kept-loop"].map((name) => `test/e2e/real-clis/${name}.test.ts`);
    const command = [process.execPath, "test", "--timeout", "240000", ...files];
    const status = await Bun.spawn(command, { env, stdio: ["ignore", "inherit", "inherit"] }).exited;
    if (status !== 0) hasFailed = true;
  }
} finally {
  rmSync(root, { recursive: true, force: true });
}
const hasTried = seen.some((line) => line.endsWith(": tried"));
const result = hasFailed
  ? "A tool failed."
  : hasTried
    ? "Every tool that was tried works."
    : "No tool was tried.";
console.log(["", ...seen, result].join("\n"));
process.exit(hasFailed || !hasTried ? 1 : 0);
