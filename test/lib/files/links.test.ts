import { mkdirSync, symlinkSync } from "node:fs";
import { expect, test } from "bun:test";
import { followLinks } from "../../../src/lib/files/links.ts";
import { makeTempFolder } from "../../harness/temp.ts";

test.skipIf(process.platform === "win32")(
  "a link leads to its file, over other links and folders that are links, made already or not",
  () => {
    using folder = makeTempFolder();
    mkdirSync(folder.join("deep/er"), { recursive: true });
    symlinkSync("deep/er", folder.join("short"));
    symlinkSync("../new.jsonl", folder.join("deep/er/up.jsonl"));
    symlinkSync("short/up.jsonl", folder.join("first.jsonl"));
    expect(followLinks(folder.join("first.jsonl"))).toEndWith("/deep/new.jsonl");
  },
);

test("a path that is not a link stays the same, and a circle of links ends", () => {
  using folder = makeTempFolder();
  expect(followLinks(folder.join("none/at/all"))).toBe(folder.join("none/at/all"));
  symlinkSync("b", folder.join("a"));
  symlinkSync("a", folder.join("b"));
  expect([folder.join("a"), folder.join("b")]).toContain(followLinks(folder.join("a")));
});
