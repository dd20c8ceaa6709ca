import { Database } from "bun:sqlite";
import { chownSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { expect, test } from "bun:test";
import { editConfig } from "../../../src/config/file/replace.ts";
import { LockHeld, takeLock } from "../../../src/lib/files/file-lock.ts";
import { expectMode, makeTempFolder } from "../../harness/temp.ts";

const MODULE = `${import.meta.dir}/../../../src/lib/files/file-lock.ts`;

/** Takes the lock in another process. Returns `taken`, or the name of that process's error. */
function takeElsewhere(path: string): string {
  const program = `import { takeLock } from ${JSON.stringify(MODULE)};
    try { takeLock(process.argv[1]).release(); console.log("taken"); } catch (error) { console.log(error.name); }`;
  return Bun.spawnSync([process.execPath, "-e", program, path]).stdout.toString().trim();
}

test("a process cannot take a lock twice, and keeps the lock when it tries", () => {
  using folder = makeTempFolder();
  const path = folder.join("a.lock");
  const lock = takeLock(path);
  expect(() => takeLock(path)).toThrow(LockHeld);
  expect(takeElsewhere(path)).toBe("LockHeld");
  lock.release();
  expect(takeElsewhere(path)).toBe("taken");
});

test.skipIf(process.platform === "win32")("a lock file is accessible to its user only", () => {
  using folder = makeTempFolder();
  takeLock(folder.join("a.lock")).release();
  expectMode(folder.join("a.lock"), 0o600);
});

test.skipIf(process.platform === "linux")("a lock counts under any spelling of its file's path", () => {
  using folder = makeTempFolder();
  const lock = takeLock(folder.join("a.lock"));
  expect(() => takeLock(folder.join("A.LOCK"))).toThrow(LockHeld);
  expect(takeElsewhere(folder.join("A.LOCK"))).toBe("LockHeld");
  lock.release();
});

test.each([Buffer.alloc(8192, "what is this"), Buffer.from("short"), Buffer.alloc(20_000)])(
  "a file that the gateway did not write is not emptied to become a lock",
  (bytes) => {
    using folder = makeTempFolder();
    const path = folder.join("a.lock");
    writeFileSync(path, bytes);
    expect(() => takeLock(path)).toThrow(`${path} is not a lock file of the gateway: move it away`);
    expect(readFileSync(path)).toEqual(bytes);
  },
);

test("a lock's file stays empty, and nothing is left next to it", () => {
  using folder = makeTempFolder();
  const path = folder.join("a.lock");
  const lock = takeLock(path);
  expect(readdirSync(folder.path).sort()).toEqual(["a.lock", "a.lock.holder"]);
  lock.release();
  expect(readdirSync(folder.path)).toEqual(["a.lock"]);
  expect(statSync(path).size).toBe(0);
});

test("nobody takes a lock that an earlier version holds, and the lock's file is not changed", async () => {
  using folder = makeTempFolder();
  const path = folder.join("a.lock");
  const former = `import { Database } from "bun:sqlite"; const database = new Database(process.argv[1], { create: true });
    for (const each of ["CREATE TABLE holder (pid INTEGER, since TEXT)", "INSERT INTO holder VALUES (1, 'then')", "BEGIN IMMEDIATE"]) database.run(each);
    console.log("held"); process.stdin.resume(); globalThis.held = database;`;
  const holder = Bun.spawn([process.execPath, "-e", former, path], { stdin: "pipe", stdout: "pipe" });
  for await (const _ of holder.stdout) break;
  const before = readFileSync(path);
  expect(() => takeLock(path)).toThrow(LockHeld);
  holder.kill("SIGKILL");
  await holder.exited;
  takeLock(path).release();
  expect(readFileSync(path)).toEqual(before);
});

// SQLite would bring the file back to what its journal says: here, to half of its size.
test("a journal of SQLite that someone puts next to a lock is not applied", () => {
  using folder = makeTempFolder();
  const path = folder.join("a.lock");
  const former = new Database(path, { create: true });
  former.run("CREATE TABLE holder (pid INTEGER, since TEXT)");
  former.close();
  const before = readFileSync(path);
  const journal = Buffer.alloc(8192);
  Buffer.from("d9d505f920a163d7", "hex").copy(journal);
  // The journal's head: number of its pages, a random number, pages of the file, sector size, page size.
  for (const [index, value] of [0, 0, 1, 4096, 4096].entries()) journal.writeUInt32BE(value, 8 + index * 4);
  writeFileSync(`${path}-journal`, journal, { mode: 0o600 });
  takeLock(path).release();
  expect(readFileSync(path)).toEqual(before);
});

test("nobody takes a lock whose file is damaged while the lock is held", () => {
  using folder = makeTempFolder();
  const path = folder.join("a.lock");
  const lock = takeLock(path);
  // Another process writes. If this process opened and closed the file, it would lose its own locks on the file.
  const damage = `require("node:fs").writeFileSync(process.argv[1], Buffer.alloc(8192))`;
  expect(Bun.spawnSync([process.execPath, "-e", damage, path]).exitCode).toBe(0);
  expect(takeElsewhere(path)).toBe("ForeignFile");
  lock.release();
});

test("a lock that cannot be created fails with the system's error", () => {
  using folder = makeTempFolder();
  expect(() => takeLock(folder.join("none/a.lock"))).toThrow(/^ENOENT: no such file or directory/);
});

test.skipIf(process.getuid?.() !== 0)(
  "files that the administrator edits still belong to the user, and so does the lock",
  async () => {
    using folder = makeTempFolder();
    const path = folder.join("gateway.yaml");
    writeFileSync(path, "plans: {}\n");
    chownSync(path, 65_534, 65_534);
    process.env["SUDO_UID"] = "65534";
    await editConfig(path, {}, () => [{ kind: "set", path: ["vendor"], value: "goog" }]);
    delete process.env["SUDO_UID"];
    expect([statSync(path).uid, statSync(folder.join(".gateway.yaml.lock")).uid]).toEqual([65_534, 65_534]);
  },
);
