import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import {
  createFile,
  ForeignFile,
  nameDraft,
  openOwn,
  readOwn,
  readPlain,
  removeDrafts,
  removeOwn,
  replaceFile,
  requireOwn,
  truncateOwn,
} from "../../../src/lib/files/own-file.ts";
import { canBeOther, makeSharedFolder, OTHER_ID, runAsOther, makeTempFolder } from "../../harness/temp.ts";

const WINDOWS = process.platform === "win32";
const MODULE = `${import.meta.dir}/../../../src/lib/files/own-file.ts`;
const APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT;

describe("a file is opened for writing only if it is the gateway's own", () => {
  test.skipIf(WINDOWS)("a file of the gateway is accessible to its user only, whatever the umask", () => {
    using folder = makeTempFolder();
    const before = process.umask(0);
    closeSync(openOwn(folder.join("a"), { flags: APPEND }));
    createFile(folder.join("b"), "text");
    replaceFile(folder.join("b"), "more");
    process.umask(before);
    expect(["a", "b"].map((name) => statSync(folder.join(name)).mode & 0o777)).toEqual([0o600, 0o600]);
  });

  test.skipIf(WINDOWS)("a link, a folder or a pipe is never opened for writing", () => {
    using folder = makeTempFolder();
    writeFileSync(folder.join("victim"), "text");
    symlinkSync("victim", folder.join("link"));
    symlinkSync("none", folder.join("dangling"));
    linkSync(folder.join("victim"), folder.join("hard"));
    mkdirSync(folder.join("folder"));
    Bun.spawnSync(["mkfifo", folder.join("pipe")]);
    for (const name of ["link", "dangling", "hard", "folder", "pipe"]) {
      const path = folder.join(name);
      for (const flags of [APPEND, constants.O_RDWR, constants.O_WRONLY | constants.O_TRUNC])
        expect(() => openOwn(path, { flags })).toThrow(ForeignFile);
      expect(() => createFile(path, "")).toThrow(`${path} is `);
      expect(readOwn(path)).toBeNull();
    }
    expect(readFileSync(folder.join("victim"), "utf8")).toBe("text");
    expect(lstatSync(folder.join("none"), { throwIfNoEntry: false })).toBeUndefined();
  });

  test("a file with several names is opened if its content shows that it is the gateway's", () => {
    using folder = makeTempFolder();
    writeFileSync(folder.join("one"), "text");
    linkSync(folder.join("one"), folder.join("other"));
    closeSync(openOwn(folder.join("one"), { flags: APPEND, shared: true }));
  });

  test.skipIf(WINDOWS)("control characters in the target of a link do not reach the terminal", () => {
    using folder = makeTempFolder();
    symlinkSync("\u001B[2Jinnocent", folder.join("link"));
    expect(() => openOwn(folder.join("link"), { flags: APPEND })).toThrow("is a link to ?[2Jinnocent,");
  });

  test.skipIf(!canBeOther)("a file of another user is not taken for the gateway's", () => {
    using folder = makeSharedFolder();
    const path = join(folder.path, "a");
    writeFileSync(path, "text");
    // From here on, anybody may write to the file.
    chmodSync(path, 0o666);
    const code = `try { openOwn(${JSON.stringify(path)}, { flags: ${APPEND} }); console.log("opened"); }
      catch (error) { console.log(error.message); }`;
    const open = (owner: number): string => {
      for (const each of [folder.path, path]) chownSync(each, owner, owner);
      return runAsOther({ [MODULE]: "openOwn" }, code);
    };
    expect(open(OTHER_ID)).toBe("opened\n");
    expect(open(1)).toContain(`${path} belongs to user 1, not to you`);
  });
});

test("a file is replaced completely; if it was a link, the link's target is not changed", () => {
  using folder = makeTempFolder();
  writeFileSync(folder.join("victim"), "text");
  if (!WINDOWS) symlinkSync("victim", folder.join("link"));
  replaceFile(folder.join("link"), "new");
  expect([readFileSync(folder.join("link"), "utf8"), readFileSync(folder.join("victim"), "utf8")]).toEqual([
    "new",
    "text",
  ]);
  expect(lstatSync(folder.join("link")).isFile()).toBe(true);
  expect(readdirSync(folder.path).sort()).toEqual(["link", "victim"]);
});

test("a replacement that fails leaves nothing behind", () => {
  using folder = makeTempFolder();
  mkdirSync(folder.join("folder/in"), { recursive: true });
  expect(() => replaceFile(folder.join("folder"), "new")).toThrow();
  expect(readdirSync(folder.path)).toEqual(["folder"]);
});

test("the temporary files of killed commands are removed, and no other files", () => {
  using folder = makeTempFolder();
  const [draft, linked, other] = [
    nameDraft(folder.join("a")),
    nameDraft(folder.join("a")),
    nameDraft(folder.join("b")),
  ];
  writeFileSync(draft, "");
  writeFileSync(other, "");
  writeFileSync(folder.join(".a.mine.tmp"), "");
  removeDrafts(folder.join("a"));
  expect(readdirSync(folder.path)).toHaveLength(2);
  if (WINDOWS) return;
  symlinkSync(other, linked);
  removeDrafts(folder.join("a"));
  expect(lstatSync(linked).isSymbolicLink()).toBe(true);
});

/** Calls that open or change a file by its name: they would follow a link. */
const BY_NAME =
  /\b(writeFile|appendFile|truncate|chmod|chown|copyFile|cp|createWriteStream|Bun\.write)(Sync)?\(/;
const OPENS_TO_WRITE = /\bopenSync\((?!.*("r"|O_RDONLY))/;

/** Files that may have such a call, each with the reason. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  "lib/files/own-file.ts": "is the one place, and writes by descriptors",
  "gateway/api/socket.ts": "chmod of the socket, in a folder that only this user can use",
  "cli/tools/gemini.ts": "copies into a folder that was made a moment ago under a name that nobody can guess",
};

test.skipIf(process.platform === "win32")(
  "only own-file.ts and two listed exceptions open files by name for writing",
  () => {
    const source = `${import.meta.dir}/../../../src`;
    const found = [...new Bun.Glob("**/*.ts").scanSync(source)].filter((name) =>
      readFileSync(`${source}/${name}`, "utf8")
        .split("\n")
        .some(
          (line) => !/^\s*(\/\/|\*|\/\*)/.test(line) && (BY_NAME.test(line) || OPENS_TO_WRITE.test(line)),
        ),
    );
    expect(found.sort()).toEqual(Object.keys(EXCEPTIONS).sort());
  },
);

describe.skipIf(!WINDOWS)("P200: a file that is open is replaced and removed on Windows, too", () => {
  const HOLD = `const fd = require("node:fs").openSync(process.argv[1], "r"); console.log("open"); setInterval(() => {}, 1000);`;

  test("a file that this process has open for appending can be replaced again and again", () => {
    using folder = makeTempFolder();
    const path = folder.join("a");
    writeFileSync(path, "0");
    const open = [1, 2, 3].map((round) => {
      const fd = openOwn(path, { flags: APPEND });
      replaceFile(path, String(round));
      return fd;
    });
    expect(readFileSync(path, "utf8")).toBe("3");
    open.forEach((fd) => closeSync(fd));
    removeDrafts(path);
    expect(readdirSync(folder.path)).toEqual(["a"]);
  });

  test("a file is replaced and removed while another process reads it", async () => {
    using folder = makeTempFolder();
    const path = folder.join("a b");
    writeFileSync(path, "before");
    const reader = Bun.spawn([process.execPath, "-e", HOLD, path], { stdout: "pipe" });
    await reader.stdout.getReader().read();
    replaceFile(path, "after");
    replaceFile(path, "last");
    expect(readOwn(path)).toBe("last");
    reader.kill("SIGKILL");
    await reader.exited;
    removeOwn(path);
    expect(readOwn(path)).toBeNull();
  });

  test("a file that another process replaces again and again is there at every moment", async () => {
    using folder = makeTempFolder();
    const path = folder.join("a");
    writeFileSync(path, "0");
    const source = Bun.fileURLToPath(new URL("../../../src/lib/files/own-file.ts", import.meta.url));
    const code = `const { replaceFile } = await import(${JSON.stringify(source)});
      for (let round = 0; round < 300; round += 1) replaceFile(process.argv[1], String(round));`;
    const writer = Bun.spawn([process.execPath, "-e", code, path]);
    for (; writer.exitCode === null; await Bun.sleep(0)) expect(readPlain(path)).not.toBe("");
    expect(writer.exitCode).toBe(0);
  });

  test("a replacement that was killed halfway is undone by whoever opens the file next", () => {
    using folder = makeTempFolder();
    const path = folder.join("a");
    for (const look of [() => readOwn(path), () => readPlain(path), () => requireOwn(path)?.size]) {
      writeFileSync(`${path}.former`, "before");
      look();
      expect(readdirSync(folder.path)).toEqual(["a"]);
      rmSync(path);
    }
    expect(readOwn(path)).toBeNull();
  });

  test("after a killed replacement, removing the new file does not bring back the old one", () => {
    using folder = makeTempFolder();
    const path = folder.join("a");
    writeFileSync(`${path}.former`, "before");
    writeFileSync(path, "after");
    expect(readOwn(path)).toBe("after");
    removeOwn(path);
    expect(readOwn(path)).toBeNull();
  });
});

/** The process behaves as on Windows, where an open file can be renamed, but neither replaced nor removed. `killAt`: the
 *  number of the file-system call at which it is killed. */
const AS_WINDOWS = `
  Object.defineProperty(process, "platform", { value: "win32" });
  const [, action, path, killAt] = process.argv;
  const fs = require("node:fs");
  const { renameSync, existsSync, ...others } = { ...fs };
  let calls = 0;
  const change = (name, act) => {
    fs[name] = (...words) => {
      calls += 1;
      if (calls === Number(killAt)) process.kill(process.pid, "SIGKILL");
      return act(...words);
    };
  };
  for (const name of ["rmSync", "openSync", "writeFileSync"]) change(name, others[name]);
  change("renameSync", (from, to) => {
    if (existsSync(to)) throw Object.assign(new Error("in use"), { code: "EPERM" });
    renameSync(from, to);
  });
  const own = require(process.env.MODULE);
  if (action === "replace") own.replaceFile(path, "after");
  if (action === "remove") own.removeOwn(path);
  console.log(JSON.stringify([own.readOwn(path), calls]));
`;

test.skipIf(WINDOWS)(
  "P200: if the system acts like Windows, an open file is replaced, and a kill leaves the old or the new one",
  () => {
    using folder = makeTempFolder();
    const path = folder.join("a");
    const run = (...words: readonly string[]) => {
      const child = Bun.spawnSync([process.execPath, "-e", AS_WINDOWS, ...words], {
        env: { ...process.env, MODULE },
      });
      return child.success ? JSON.parse(child.stdout.toString()) : null;
    };
    writeFileSync(path, "before");
    const [found, calls] = run("replace", path);
    expect([found, readFileSync(path, "utf8")]).toEqual(["after", "after"]);
    expect(readdirSync(folder.path)).toEqual(["a"]);
    const after: unknown[] = [];
    for (let at = 1; at < calls; at += 1) {
      for (const name of readdirSync(folder.path)) rmSync(folder.join(name));
      writeFileSync(path, "before");
      if (run("replace", path, String(at)) !== null) continue;
      const [left] = run("read", path);
      expect([at, ["before", "after"].includes(left)]).toEqual([at, true]);
      after.push(left);
      run("remove", path);
      expect([at, run("read", path)[0]]).toEqual([at, null]);
    }
    expect(new Set(after)).toEqual(new Set(["before", "after"]));
  },
);

test("a file that is open for appending is cut to a length, and the next write goes on from there", () => {
  using folder = makeTempFolder();
  const path = folder.join("a");
  const fd = openOwn(path, { flags: APPEND });
  writeSync(fd, "whole\ntorn");
  truncateOwn(fd, path, 6);
  writeSync(fd, "next\n");
  closeSync(fd);
  expect(readFileSync(path, "utf8")).toBe("whole\nnext\n");
});
