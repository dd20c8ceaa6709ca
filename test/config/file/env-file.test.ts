// `gateway.env` next to the config holds credentials.

import { describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnvFile, placeEnvFile, readEnvFile } from "../../../src/config/file/env-file.ts";
import { loadConfig } from "../../../src/config/file/load.ts";
import { makeSweptFolder } from "../../harness/temp.ts";

function place(content?: string, mode = 0o600): string {
  const config = join(makeSweptFolder(), "gateway.yaml");
  if (content === undefined) return config;
  writeFileSync(placeEnvFile(config), content);
  chmodSync(placeEnvFile(config), mode);
  return config;
}

describe("the file next to the config", () => {
  test("gateway.env gives the variables that the environment has not", () => {
    const config = place("ONE=from-file\nTWO=from-file\n");
    writeFileSync(
      config,
      "channels: { a: { platform: messages, base_url: https://a.example, credential: '${ONE}-${TWO}' } }",
    );
    const { catalog } = loadConfig(config, { ONE: "from-environment" });
    expect(catalog.channels.get("a")?.credential).toBe("from-environment-from-file");
  });

  test("gateway.env may be missing, or have comments only", () => {
    expect(readEnvFile(place())).toEqual({});
    expect(readEnvFile(place("# later\n\n"))).toEqual({});
  });

  test.skipIf(process.platform === "win32")(
    "gateway.env is refused if everybody can change it, and the message has nothing of it",
    () => {
      const read = (): unknown => readEnvFile(place("KEY=sk-hidden\n", 0o666));
      expect(read).toThrow(/^Everybody on this machine can change .*gateway\.env/);
      expect(read).not.toThrow("sk-hidden");
    },
  );

  test("gateway.env is refused if it has anything but assignments, and the message has nothing of it", () => {
    const read = (): unknown => readEnvFile(place("KEY=x\nsk-hidden\n"));
    expect(read).toThrow("gateway.env must hold NAME=value lines only.");
    expect(read).not.toThrow("sk-hidden");
  });

  test("gateway.env is refused if it is a folder", () => {
    const config = place();
    mkdirSync(placeEnvFile(config));
    expect(() => readEnvFile(config)).toThrow("gateway.env");
  });
});

test.each([
  ["A=b", "b"],
  ["export A=b", "b"],
  ["A = b c ", "b c"],
  ["A=b # why", "b"],
  ["A=b#c", "b#c"],
  ["A='b # c'", "b # c"],
  ['A="b\'c" # why', "b'c"],
  ['A="\\"b\\$c\\`d\\\\e\\f"', '"b$c`d\\e\\f'],
  ["A='b\\$c'", "b\\$c"],
  ["A=", ""],
  ["A=b=c", "b=c"],
  ["A='b", "'b"],
  ["# top\r\nA=b\r\n", "b"],
])("%j gives %j", (line, value) => {
  expect(parseEnvFile(line)).toEqual([{ name: "A", value }]);
});

test.each(["", "# A=b", "A", "A=b\nc", "1A=b", '{ "A": "b" }'])("%j holds no assignments alone", (text) => {
  expect(parseEnvFile(text)).toBeNull();
});
