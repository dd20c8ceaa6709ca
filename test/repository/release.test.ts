import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { checkVersion, findSection, setVersion } from "../../.ci/release.ts";
import { VERSION } from "../../src/lib/version.ts";

const read = (file: string): string => readFileSync(join(import.meta.dir, "../..", file), "utf8");

test("a release takes its version's dated section of the changelog", () => {
  const changelog =
    "## [Unreleased]\n\n- later\n\n## [0.2.0] - 2026-12-01\n\n- second\n\n## [0.1.0]\n\n- undated\n";
  expect(findSection(changelog, "0.2.0")).toBe("- second");
  expect(() => findSection(changelog, "0.3.0")).toThrow("has no section");
  expect(() => findSection(changelog, "0.1.0")).toThrow("has no date");
  expect(findSection(read("CHANGELOG.md"), VERSION)).not.toBe("");
});

test.each([
  ["0.1.0", "0.1.1", "is older"],
  ["0.9.0", "0.10.0", "is older"],
  ["0.2.0", "0.2.0", "exists already"],
  ["v0.3.0", "0.2.0", "is not a version"],
])("the version %j after %s is refused: %s", (version, current, message) => {
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
