import { expect, test } from "bun:test";
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { openKeyFile } from "../../../src/lib/files/own-file.ts";
import { expectMode, makeTempFolder } from "../../harness/temp.ts";

test("a key file is made once, only its user can read it, and its key never changes", () => {
  using folder = makeTempFolder();
  const path = folder.join("key");
  const key = openKeyFile(path);
  expect(key).toHaveLength(32);
  expectMode(path, 0o600);
  expect(openKeyFile(path)).toEqual(key);
  expect(openKeyFile(folder.join("other"))).not.toEqual(key);
});

test.each(["", "0", "00".repeat(31), `${"00".repeat(32)}00`, "zz".repeat(32)])(
  "a damaged key file (%p) is replaced by a file with a random key",
  (text) => {
    using folder = makeTempFolder();
    const path = folder.join("key");
    writeFileSync(path, text);
    const key = openKeyFile(path);
    expect(new Set(key).size).toBeGreaterThan(8);
    expect(openKeyFile(path)).toEqual(key);
    expectMode(path, 0o600);
  },
);

test("a link at the place of a key file is replaced, and the link's target is not changed", () => {
  using folder = makeTempFolder();
  const [path, target] = [folder.join("key"), folder.join("mine")];
  writeFileSync(target, "11".repeat(32));
  symlinkSync(target, path);
  expect(openKeyFile(path).toString("hex")).not.toBe("11".repeat(32));
  expect(readFileSync(target, "utf8")).toBe("11".repeat(32));
});
