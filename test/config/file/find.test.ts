import { describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { listVariables } from "../../../src/config/yaml/expand.ts";
import { loadConfig } from "../../../src/config/file/load.ts";
import {
  configHome,
  findConfig,
  listOwnIds,
  requireTrust,
  warnOfMode,
} from "../../../src/config/file/find.ts";
import { quoteWord } from "../../../src/lib/text/shell-word.ts";
import { makeTempFolder } from "../../harness/temp.ts";

describe("the config file is looked for in the right places", () => {
  test("P2: the config file is not looked for in a relative XDG_CONFIG_HOME, which would depend on the current folder", () => {
    expect(configHome({ XDG_CONFIG_HOME: ".config", HOME: "/home/me" })).toBe(join("/home/me", ".config"));
    expect(configHome({ XDG_CONFIG_HOME: "", HOME: "/home/me" })).toBe(join("/home/me", ".config"));
    expect(configHome({ XDG_CONFIG_HOME: "/x", HOME: "/home/me" })).toBe("/x");
  });

  test.skipIf(process.platform === "win32")(
    "a broken link in the config's default place is explained, not treated as missing",
    () => {
      using folder = makeTempFolder();
      mkdirSync(folder.join("gateway"));
      symlinkSync("gone.yaml", folder.join("gateway", "gateway.yaml"));
      const found = findConfig(undefined, { XDG_CONFIG_HOME: folder.path }, folder.path);
      expect(() => loadConfig(found, {})).toThrow("is a link to gone.yaml, which is not");
    },
  );
});

describe.skipIf(process.platform === "win32")("an unsafe owner or mode of the config is reported", () => {
  const ROOT = [0];
  const USER = [1000];
  const SUDO = [0, 1000];
  const cases: ReadonlyArray<
    readonly [
      uid: number,
      mode: number,
      ownIds: readonly number[],
      fix: string | null,
      warning: string | null,
    ]
  > = [
    [1000, 0o600, USER, null, null],
    [0, 0o600, USER, null, null],
    [0, 0o644, USER, null, "can be read by others"],
    [1000, 0o640, USER, null, "can be read by others"],
    [1000, 0o660, USER, null, "can be changed by its group"],
    [1000, 0o620, USER, null, "can be changed by its group"],
    [1000, 0o602, USER, "chmod 600 /c.yaml", null],
    [1000, 0o666, USER, "chmod 600 /c.yaml", null],
    [0, 0o666, USER, "chmod 600 /c.yaml", null],
    [1001, 0o600, USER, "sudo chown 1000 /c.yaml", null],
    [1001, 0o666, USER, "sudo chown 1000 /c.yaml", null],
    [1000, 0o600, ROOT, "chown 0 /c.yaml", null],
    [1000, 0o600, SUDO, null, null],
    [1001, 0o600, SUDO, "chown 0 /c.yaml", null],
  ];
  test.each(cases)(
    "P4: user %p owns the config, its mode is %o, %p are trusted, so the fix is %p and the warning %p",
    (uid, mode, ownIds, fix, warning) => {
      const check = () => requireTrust("/c.yaml", { uid, mode }, [...ownIds]);
      if (fix === null) {
        check();
        const warnings = warnOfMode("/c.yaml", { uid, mode });
        expect(warnings.map((text) => text.replace("/c.yaml ", "").replace(/[,:].*/, ""))).toEqual(
          warning === null ? [] : [expect.stringContaining(warning)],
        );
      } else {
        expect(check).toThrow(expect.objectContaining({ name: "ConfigError", fix }));
        expect(check).toThrow(`: ${fix}`);
      }
    },
  );

  test("root trusts files of the user who called sudo; a process of any other user ignores SUDO_UID", () => {
    const own = process.getuid?.() ?? 0;
    const expected = own === 0 ? [0, 1000] : [own, own];
    expect(listOwnIds({ SUDO_UID: "1000" })).toEqual(expected);
    expect(new Set(listOwnIds({}))).toEqual(new Set([own]));
  });

  test("if the config is a link, the owner and mode of the file behind the link are checked", () => {
    using folder = makeTempFolder();
    writeFileSync(folder.join("real.yaml"), "keys:\n");
    chmodSync(folder.join("real.yaml"), 0o666);
    symlinkSync("real.yaml", folder.join("link.yaml"));
    expect(() => loadConfig(folder.join("link.yaml"), {})).toThrow(
      `chmod 600 ${quoteWord(folder.join("link.yaml"))}`,
    );
    chmodSync(folder.join("real.yaml"), 0o660);
    expect(loadConfig(folder.join("link.yaml"), {}).warnings).toEqual([
      expect.stringContaining("can be changed by its group"),
    ]);
  });
});

test("every variable that a value refers to is found, in any form", () => {
  const tree = { a: "${ONE} $${NOT}", b: ["x${TWO:-y}", { c: "$${NOT} ${THREE}" }], d: null, "${NOR}": "" };
  expect(listVariables(tree)).toEqual(["ONE", "TWO", "THREE"]);
  expect(listVariables(tree, true)).toEqual(["ONE", "THREE"]);
});
