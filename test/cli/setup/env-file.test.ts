import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { quoteValue } from "../../../src/cli/setup/env-file.ts";
import { parseEnvFile } from "../../../src/config/file/env-file.ts";
import { makeTempFolder } from "../../harness/temp.ts";

const VALUES = [
  "sk-plain",
  "it's",
  "it's $(touch ran) `touch ran` $HOME",
  "it's \\ \\\\ \\$ \\n \" #",
  "$(touch ran)",
  "`touch ran`\\",
  'a"b',
  "'",
  "''$x''",
  "a b#c;d&e",
];

test.skipIf(Bun.which("sh") === null)(
  "a shell reads each value of gateway.env as the gateway does, and runs nothing in it",
  () => {
    using folder = makeTempFolder();
    for (const value of VALUES) {
      const line = `A=${quoteValue(value)}`;
      writeFileSync(folder.join("gateway.env"), `${line}\n`);
      const shell = Bun.spawnSync(["sh", "-c", '. ./gateway.env; printf %s "$A"; ls'], {
        cwd: folder.path,
        env: { PATH: process.env["PATH"] ?? "", HOME: "/home-of-a-test" },
      });
      expect(shell.stdout.toString()).toBe(`${value}gateway.env\n`);
      expect(parseEnvFile(line)).toEqual([{ name: "A", value }]);
    }
  },
);
