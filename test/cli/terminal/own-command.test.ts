import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { nameOwnCommand } from "../../../src/cli/terminal/own-command.ts";
import { quoteWord } from "../../../src/lib/text/shell-word.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";

let folder: TempFolder;
beforeEach(() => {
  folder = makeTempFolder();
  for (const name of ["bin", "src", "elsewhere", "node_modules/.bin"])
    mkdirSync(folder.join(name), { recursive: true });
  writeProgram("src/main.ts");
  writeProgram("gateway-linux-x64");
});
afterEach(() => folder.remove());

function writeProgram(name: string): void {
  writeFileSync(folder.join(name), "#!/bin/sh\n");
  chmodSync(folder.join(name), 0o755);
}

const fromSource = () => ({
  main: folder.join("src/main.ts"),
  program: folder.join("bun"),
  folder: folder.path,
});
const asExecutable = () => ({
  main: "/$bunfs/root/gateway",
  program: folder.join("gateway-linux-x64"),
  folder: folder.path,
});

describe("the command in hints", () => {
  test("is gateway if that is installed", () => {
    symlinkSync(folder.join("src/main.ts"), folder.join("bin/gateway"));
    expect(nameOwnCommand({ ...fromSource(), env: { PATH: folder.join("bin") } })).toBe("gateway");
  });

  test("is the command of the npm package if that has started the executable", () => {
    symlinkSync(folder.join("src/main.ts"), folder.join("bin/gateway"));
    symlinkSync(folder.join("src/main.ts"), folder.join("node_modules/.bin/gateway"));
    const GATEWAY_LAUNCHER = folder.join("node_modules/.bin/gateway");
    const found = { GATEWAY_LAUNCHER, PATH: folder.join("bin") };
    expect(nameOwnCommand({ ...asExecutable(), env: found })).toBe("gateway");
    const absent = { GATEWAY_LAUNCHER, PATH: folder.join("elsewhere") };
    expect(nameOwnCommand({ ...asExecutable(), env: absent })).toBe("node_modules/.bin/gateway");
  });

  test("is not gateway if that is another program, or only npm's scripts see it", () => {
    writeProgram("bin/gateway");
    symlinkSync(folder.join("src/main.ts"), folder.join("node_modules/.bin/gateway"));
    const env = { PATH: `${folder.join("node_modules/.bin")}:${folder.join("bin")}` };
    expect(nameOwnCommand({ ...fromSource(), env })).toBe("./bun src/main.ts");
  });

  test("is npm's script if npm has started it", () => {
    const env = { PATH: folder.join("bin"), npm_package_json: folder.join("package.json") };
    expect(nameOwnCommand({ ...fromSource(), env })).toBe("npm run -s gateway --");
    const other = { ...fromSource(), folder: folder.join("elsewhere"), env };
    expect(nameOwnCommand(other)).toBe(
      `${quoteWord(folder.join("bun"))} ${quoteWord(folder.join("src/main.ts"))}`,
    );
  });

  test("uses the user's bun from source", () => {
    writeProgram("bin/bun");
    expect(nameOwnCommand({ ...fromSource(), env: { PATH: folder.join("bin") } })).toBe("bun src/main.ts");
  });

  test("is the executable's name on the PATH, and its path elsewhere", () => {
    expect(nameOwnCommand({ ...asExecutable(), env: { PATH: folder.path } })).toBe("gateway-linux-x64");
    expect(nameOwnCommand({ ...asExecutable(), env: { PATH: "/none" } })).toBe("./gateway-linux-x64");
    const away = { ...asExecutable(), folder: folder.join("elsewhere"), env: { PATH: "/none" } };
    expect(nameOwnCommand(away)).toBe(quoteWord(folder.join("gateway-linux-x64")));
  });
});
