import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { requireOwner } from "../../.ci/packages.ts";
import {
  checkReadme,
  checkVersion,
  describeSigning,
  findSection,
  setVersion,
  writeReleaseNotes,
} from "../../.ci/release.ts";
import { MACHINE, PROGRAM } from "../harness/program.ts";
import { VERSION } from "../../src/lib/version.ts";

const read = (file: string): string => readFileSync(join(import.meta.dir, "../..", file), "utf8");

test("the notes of a release are its section of the changelog, and this section needs a date", () => {
  const changelog =
    "## [Unreleased]\n\n- later\n\n## [0.2.0] - 2026-12-01\n\n- second\n\n## [0.1.0]\n\n- undated\n";
  expect(findSection(changelog, "0.2.0")).toBe("- second");
  expect(() => findSection(changelog, "0.3.0")).toThrow("has no section");
  expect(() => findSection(changelog, "0.1.0")).toThrow("has no date");
  expect(findSection(read("CHANGELOG.md"), VERSION)).not.toBe("");
});

test("a release needs a README that says how to install it", () => {
  expect(() => checkReadme("There is no release yet.")).toThrow("There is no release yet");
  expect(() => checkReadme("npm install --global @somebody/gateway")).not.toThrow();
});

test.each([
  ["0.1.0", "0.1.1", "is older"],
  ["0.9.0", "0.10.0", "is older"],
  ["0.2.0", "0.2.0", "exists already"],
  ["v0.3.0", "0.2.0", "is not a version"],
])("the version %j after %s is refused because it %s", (version, current, message) => {
  expect(() => checkVersion(version, current, ["v0.2.0"])).toThrow(message);
  expect(() => checkVersion("0.10.0", "0.9.0", [])).not.toThrow();
});

test.each(["package.json", "package-lock.json", "src/lib/version.ts"])(
  "a release sets the version of %s, and changes nothing else",
  (file) => {
    const text = read(file);
    expect(text).toContain(VERSION);
    expect(setVersion(file, text, "9.8.7").replaceAll("9.8.7", VERSION)).toBe(text);
  },
);

test("P198: a release needs a public key, tells its owner how to sign it, and its notes say how to check it", () => {
  const owner = { npm: "@somebody/gateway", repository: "somebody/gateway", public_key: "RWQkey" };
  expect(() => requireOwner({ ...owner, public_key: null })).toThrow("no public_key");
  expect(() => requireOwner(owner)).not.toThrow();
  expect(describeSigning("0.3.0")).toBe('minisign -S -t "gateway 0.3.0" -m dist/SHA256SUMS');
  const notes = writeReleaseNotes("0.3.0", "[More](docs/more.md)", { checksums: "00  gateway", owner });
  expect(notes).toContain("minisign -Vm SHA256SUMS -P RWQkey");
  expect(notes).toContain("(https://github.com/somebody/gateway/blob/v0.3.0/docs/more.md)");
});

test("P197: executables for Linux and Windows are built, and tried in emulators where needed", () => {
  const [build, emulate, run] = [read(".ci/build.ts"), read(".ci/emulate.ts"), read(".ci/run")];
  const foreign = ["linux-arm64", "linux-x64-musl", "linux-arm64-musl", "windows-x64"];
  for (const target of ["linux-x64", ...foreign]) expect(build).toContain(`"bun-${target}"`);
  for (const target of foreign) expect(emulate).toContain(`"${target}": {`);
  expect(run).toContain("npx bun .ci/emulate.ts");
  const tests = [...emulate.matchAll(/"(test\/[^"]+)"/g)].map(([, path = ""]) => path);
  expect(tests.length).toBeGreaterThan(5);
  expect(tests.filter((path) => !existsSync(join(import.meta.dir, "../..", path)))).toEqual([]);
});

test("P197: the executable starts without a terminal, a home folder or the user's variables", () => {
  const { stdout, exitCode } = Bun.spawnSync([...PROGRAM, "--version"], { env: MACHINE, cwd: "/" });
  expect([exitCode, stdout.toString().trim()]).toEqual([0, VERSION]);
});
