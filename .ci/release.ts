// `bun .ci/release.ts VERSION [--dry-run]`: checks, sets the version, builds the executables with their checksums, writes
// dist/RELEASE.md, the npm packages, the Homebrew formula and the Scoop manifest, commits and tags. Nothing is changed before every check has passed. It pushes nothing.

import { readFile, writeFile } from "node:fs/promises";
import { makePackages, type Owner, readOwner, requireOwner, writeManifests } from "./packages.ts";

const VERSION_FORM = /^\d+\.\d+\.\d+$/;
const VERSION_FILES = ["package.json", "package-lock.json", "src/lib/version.ts"] as const;

/** The text below `## [VERSION] - DATE`, up to the next version. Throws with what is missing. */
export function findSection(changelog: string, version: string): string {
  const lines = changelog.split("\n");
  const start = lines.findIndex((line) => line.startsWith(`## [${version}]`));
  if (start < 0)
    throw new Error(`CHANGELOG.md has no section "## [${version}] - DATE": rename "Unreleased".`);
  if (!/ - \d{4}-\d{2}-\d{2}$/.test(lines[start] ?? ""))
    throw new Error(`CHANGELOG.md: the section of ${version} has no date: "## [${version}] - 2026-11-21".`);
  const length = lines.slice(start + 1).findIndex((line) => line.startsWith("## ["));
  const end = length < 0 ? lines.length : start + 1 + length;
  const text = lines
    .slice(start + 1, end)
    .join("\n")
    .trim();
  if (text === "") throw new Error(`CHANGELOG.md: the section of ${version} is empty.`);
  return text;
}

/** Throws unless `version` can follow `current`. The same version may be released if it has no tag yet. */
export function checkVersion(version: string, current: string, tags: readonly string[]): void {
  if (!VERSION_FORM.test(version)) throw new Error(`"${version}" is not a version such as 0.2.0.`);
  if (Bun.semver.order(version, current) < 0)
    throw new Error(`${version} is older than the current version, ${current}.`);
  if (tags.includes(`v${version}`)) throw new Error(`The tag v${version} exists already.`);
}

/** Throws while the README says that nothing can be installed. */
export function checkReadme(readme: string): void {
  if (readme.includes("There is no release yet"))
    throw new Error('README.md says "There is no release yet": write there how to install one.');
}

/** Puts the new version into the text of a file. Throws if the file does not have the expected form. */
export function setVersion(file: string, text: string, version: string): string {
  const form = file.endsWith(".ts") ? /(VERSION = ")\d+\.\d+\.\d+(")/g : /("version": ")\d+\.\d+\.\d+(")/g;
  // The lock file has the version twice, before the versions of the packages.
  let left = file.endsWith("package-lock.json") ? 2 : 1;
  const changed = text.replace(form, (found, before: string, after: string) => {
    if (left === 0) return found;
    left -= 1;
    return before + version + after;
  });
  if (left > 0) throw new Error(`${file} does not contain the version where it is expected.`);
  return changed;
}

export function writeReleaseNotes(
  version: string,
  section: string,
  { checksums, owner }: { readonly checksums: string; readonly owner: Owner },
): string {
  const check = `minisign -Vm SHA256SUMS -P ${owner.public_key}`;
  // The page of a release does not resolve relative links, so they become full addresses.
  const linked = section.replaceAll(
    "](docs/",
    `](https://github.com/${owner.repository}/blob/v${version}/docs/`,
  );
  return `# gateway ${version}\n\n${linked}\n\n## Checksums (SHA-256)\n\nThey are signed: \`${check}\`\n\n\`\`\`\n${checksums.trim()}\n\`\`\`\n`;
}

/** The command that signs the checksums, with a key that only the owner has. */
export const describeSigning = (version: string): string =>
  `minisign -S -t "gateway ${version}" -m dist/SHA256SUMS`;

async function runCommand(...words: readonly string[]): Promise<string> {
  const child = Bun.spawn([...words], { stdout: "pipe", stderr: "inherit" });
  const [text, status] = await Promise.all([child.stdout.text(), child.exited]);
  if (status !== 0) throw new Error(`${words.join(" ")} failed with status ${status}.`);
  return text;
}

async function build(version: string, section: string): Promise<void> {
  for (const file of VERSION_FILES)
    await writeFile(file, setVersion(file, await readFile(file, "utf8"), version));
  await runCommand(process.execPath, ".ci/build.ts", "--all");
  const checksums = await readFile("dist/SHA256SUMS", "utf8");
  const owner = await readOwner();
  const notes = writeReleaseNotes(version, section, { checksums, owner });
  await writeFile("dist/RELEASE.md", notes);
  await writeManifests(owner, version, checksums);
  await makePackages(owner, version, "dist", "dist/npm");
}

async function release(version: string, isDryRun: boolean): Promise<void> {
  if ((await runCommand("git", "status", "--porcelain")) !== "")
    throw new Error("The working tree has changes: commit or stash them first.");
  const { version: current }: { version: string } = JSON.parse(await readFile("package.json", "utf8"));
  checkVersion(version, current, (await runCommand("git", "tag", "--list")).split("\n"));
  requireOwner(await readOwner());
  checkReadme(await readFile("README.md", "utf8"));
  const section = findSection(await readFile("CHANGELOG.md", "utf8"), version);
  if (isDryRun) return console.log(`${version} can be released:\n\n${section}`);
  try {
    await build(version, section);
  } catch (error) {
    await runCommand("git", "checkout", "--", ...VERSION_FILES);
    throw error;
  }
  if ((await runCommand("git", "status", "--porcelain")) !== "")
    await runCommand("git", "commit", "--all", "--message", `Release ${version}`);
  await runCommand("git", "tag", "--annotate", `v${version}`, "--message", `gateway ${version}`);
  console.log(
    `tagged v${version}. Next: ${describeSigning(version)}, git push --follow-tags, and attach dist/ to the release.`,
  );
}

if (import.meta.main) {
  const [version = "", flag] = process.argv.slice(2);
  try {
    if (flag !== undefined && flag !== "--dry-run")
      throw new Error(`Unknown flag ${flag}: --dry-run only checks.`);
    await release(version, flag === "--dry-run");
  } catch (error) {
    console.error(`release: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
}
