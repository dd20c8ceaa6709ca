// `npm run test:tools`: starts each tool's newest release in the registry, and the release before it, through
// `gateway run`. It compares what the newest release, and one that is two months older, send with the gateway and without.
// The newest release also does a long task on models of other providers.
// It is not part of `npm test`, because its result changes with the registry. `npm run test:tools -- pi qwen` tries these
// only, and `--write` brings the tables of releases and of differences in docs/tools.md up to date.

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TOOLS } from "../src/cli/tools/tools.ts";

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
/** These scripts put the program for this machine in its place; npm does not run them by itself. The program needs no Node. */
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

const TWO_MONTHS_MS = 60 * 86_400_000;

/** The newest release, the one before, and the newest that is two months older. */
async function listReleases(folder: string, name: string): Promise<(string | undefined)[]> {
  const times = Object.entries((await ask(folder, name, "time")) ?? {});
  const releases = times.flatMap(([version, time]) => {
    const at = Date.parse(String(time));
    return /^\d+\.\d+\.\d+$/.test(version) ? [{ version, at }] : [];
  });
  const sorted = releases.toSorted((a, b) => Bun.semver.order(b.version, a.version));
  const [newest, before] = sorted;
  const older = sorted.find(({ at }) => newest !== undefined && at <= newest.at - TWO_MONTHS_MS);
  return [newest, before, older].map((release) => release?.version);
}

/** Installs a release. Returns why it is not tried, or null if it is installed. */
async function install(folder: string, tool: string, version: string): Promise<string | null> {
  const release = `${PACKAGES[tool]}@${version}`;
  const wanted = await ask(folder, release, "engines.node");
  const { stdout } = await runCommand(folder, "node", "--version");
  const node = stdout.trim().slice(1);
  const needsNode = SCRIPTS[tool] === undefined && typeof wanted === "string";
  const isOld = needsNode && !Bun.semver.satisfies(node, wanted);
  // The registry also has Node itself. A Node installed here is the first that the tools find.
  const more = isOld ? [`node-${process.platform}-${process.arch}@${wanted.replaceAll(/>=\s*/g, "^")}`] : [];
  const quiet = ["--loglevel=error", "--no-audit", "--no-fund"];
  const { status, stderr } = await runCommand(folder, "npm", "install", ...quiet, ...more, release);
  if (status !== 0 && isOld) return `needs Node ${wanted}, this machine has ${node}, and npm did not get it`;
  if (status !== 0)
    return `could not be installed: ${/npm error notarget (.*)|npm error (?!code)(.*)/.exec(stderr)?.[0] ?? stderr}`;
  const script = SCRIPTS[tool];
  if (script === undefined) return null;
  const path = join(folder, "node_modules", PACKAGES[tool] ?? "", script);
  return (await runCommand(folder, "node", path)).status === 0 ? null : `${script} failed`;
}

const words = process.argv.slice(2);
const wanted = words.filter((word) => !word.startsWith("-"));
const tools = Object.keys(PACKAGES).filter((tool) => wanted.length === 0 || wanted.includes(tool));
const root = mkdtempSync(join(tmpdir(), "gateway-tools-"));
const seen: string[] = [];
const tried = new Map<string, string[]>();
let hasFailed = false;
try {
  const sets = ["newest", "before", "older"].map((name) => join(root, name));
  for (const folder of sets) {
    mkdirSync(folder);
    await Bun.write(join(folder, "package.json"), "{}");
  }
  for (const tool of tools) {
    const releases = await listReleases(root, PACKAGES[tool] ?? "");
    for (const [index, folder] of sets.entries()) {
      const version = releases[index];
      const problem = version === undefined ? "has no release" : await install(folder, tool, version);
      if (problem === null) tried.set(tool, [...(tried.get(tool) ?? []), version ?? ""]);
      seen.push(`${tool} ${version ?? ""}: ${problem === null ? "tried" : `SKIPPED, it ${problem}`}`);
      console.log(seen.at(-1));
    }
  }
  const works = ["tools", "sessions", "history"];
  for (const [index, folder] of sets.entries()) {
    const writes = index === 0 && words.includes("--write");
    const env = { ...process.env, REAL_CLIS: folder, ...(writes && { WRITE_DOCS: "1" }) };
    const names = [[...works, "compare", "converted", "replay"], works, ["compare"]][index] ?? [];
    const files = names.map((name) => `test/e2e/real-clis/${name}.test.ts`);
    const command = [process.execPath, "test", "--timeout", "900000", ...files];
    const status = await Bun.spawn(command, { env, stdio: ["ignore", "inherit", "inherit"] }).exited;
    if (status !== 0) hasFailed = true;
  }
} finally {
  rmSync(root, { recursive: true, force: true });
}
if (words.includes("--write") && !hasFailed) await writeReleases();
const result = hasFailed
  ? "A tool failed."
  : tried.size > 0
    ? "Every tool that was tried works."
    : "No tool was tried.";
console.log(["", ...seen, result].join("\n"));
process.exit(hasFailed || tried.size === 0 ? 1 : 0);

/** Writes the releases that were tried into the table of docs/tools.md. */
async function writeReleases(): Promise<void> {
  const path = join(import.meta.dir, "../docs/tools.md");
  let text = await Bun.file(path).text();
  for (const [tool, versions] of tried) {
    const title = TOOLS.get(tool)?.title ?? tool;
    text = text.replace(new RegExp(`^\\| ${title} \\| \\d.*$`, "m"), `| ${title} | ${versions.join(", ")} |`);
  }
  await Bun.write(path, text);
}
