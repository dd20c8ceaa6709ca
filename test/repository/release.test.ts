import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { checkVersion, findSection, setVersion, writeReleaseNotes } from "../../.ci/release.ts";
import { VERSION } from "../../src/lib/version.ts";

const ROOT = join(import.meta.dir, "../..");
const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");

const CHANGELOG = `# Changelog

## [Unreleased]

- later

## [0.2.0] - 2026-12-01

- second

### Fixed

- a fault

## [0.1.0] - 2026-11-21

- first

## [0.0.9]

- undated

## [0.0.8] - 2026-01-01
`;

describe("the changelog's section of a version", () => {
  test("ends where the next version begins", () => {
    expect(findSection(CHANGELOG, "0.2.0")).toBe("- second\n\n### Fixed\n\n- a fault");
    expect(findSection(CHANGELOG, "0.1.0")).toBe("- first");
  });

  test.each([
    ["0.3.0", "has no section"],
    ["0.2", "has no section"],
    ["0.0.9", "has no date"],
    ["0.0.8", "is empty"],
  ])("is missed for %s: %s", (version, message) => {
    expect(() => findSection(CHANGELOG, version)).toThrow(message);
  });

  test("exists for the current version", () => {
    expect(findSection(read("CHANGELOG.md"), VERSION)).not.toBe("");
    expect(read("CHANGELOG.md")).toContain("\n## [Unreleased]\n");
  });
});

describe("a version", () => {
  test("may be newer, or the current one without a tag", () => {
    expect(() => checkVersion("0.2.0", "0.1.9", ["v0.1.9"])).not.toThrow();
    expect(() => checkVersion("0.10.0", "0.9.0", [])).not.toThrow();
    expect(() => checkVersion("0.1.0", "0.1.0", [])).not.toThrow();
  });

  test.each([
    ["0.1.0", "0.1.1", "is older"],
    ["0.9.0", "0.10.0", "is older"],
    ["0.2.0", "0.2.0", "exists already"],
    ["v0.3.0", "0.2.0", "is not a version"],
    ["", "0.2.0", "is not a version"],
  ])("%j after %s is refused: %s", (version, current, message) => {
    expect(() => checkVersion(version, current, ["v0.2.0"])).toThrow(message);
  });
});

describe("the version is set", () => {
  test.each(["package.json", "package-lock.json", "src/lib/version.ts"])(
    "in %s, and nothing else is",
    (file) => {
      const text = read(file);
      const changed = setVersion(file, text, "9.8.7");
      expect(changed).toContain("9.8.7");
      expect(changed.replaceAll("9.8.7", VERSION)).toBe(text);
      const places = changed.split("9.8.7").length - 1;
      expect(places).toBe(file === "package-lock.json" ? 2 : 1);
    },
  );

  test("the version is not set in a file that does not have it", () => {
    expect(() => setVersion("package.json", "{}", "1.0.0")).toThrow("package.json does not contain");
  });
});

test("the release notes are the section and the checksums", () => {
  expect(writeReleaseNotes("0.2.0", "- second", "abc  gateway-linux-x64\n")).toBe(
    "# gateway 0.2.0\n\n- second\n\n## Checksums (SHA-256)\n\n```\nabc  gateway-linux-x64\n```\n",
  );
});
