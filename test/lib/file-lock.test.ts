import { chownSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { expect, test } from "bun:test";
import { editConfig } from "../../src/config/edit.ts";
import { LockHeld, takeLock } from "../../src/lib/file-lock.ts";
import { makeTempFolder } from "../harness/temp.ts";

const MODULE = `${import.meta.dir}/../../src/lib/file-lock.ts`;

/** What another process is told. */
function takeElsewhere(path: string): string {
  const program = `import { takeLock } from ${JSON.stringify(MODULE)};
    try { takeLock(process.argv[1]).release(); console.log("taken"); } catch (error) { console.log(error.name); }`;
  return Bun.spawnSync([process.execPath, "-e", program, path]).stdout.toString().trim();
}

test("a lock that is asked for again by who holds it is held on", () => {
  using folder = makeTempFolder();
  const path = folder.join("a.lock");
  const lock = takeLock(path);
  expect(() => takeLock(path)).toThrow(LockHeld);
  expect(takeElsewhere(path)).toBe("LockHeld");
  lock.release();
  expect(takeElsewhere(path)).toBe("taken");
});

test.skipIf(process.platform === "win32")("a lock's file is its user's alone", () => {
  using folder = makeTempFolder();
  takeLock(folder.join("a.lock")).release();
  expect(statSync(folder.join("a.lock")).mode & 0o777).toBe(0o600);
});

test("a lock whose file a power cut has damaged is taken all the same", () => {
  using folder = makeTempFolder();
  const path = folder.join("a.lock");
  takeLock(path).release();
  const whole = readFileSync(path);
  const zeros = Buffer.alloc(4096);
  const damaged = [
    Buffer.alloc(8192),
    whole.subarray(0, 4096),
    whole.subarray(0, 100),
    Buffer.concat([whole.subarray(0, 4096), zeros]),
    Buffer.concat([zeros, whole.subarray(4096)]),
    Buffer.alloc(8192, "what is this"),
  ];
  for (const bytes of damaged) {
    writeFileSync(path, bytes);
    const lock = takeLock(path);
    expect(takeElsewhere(path)).toBe("LockHeld");
    lock.release();
  }
});

test("a lock whose file is damaged while it is held is held on", () => {
  using folder = makeTempFolder();
  const path = folder.join("a.lock");
  const lock = takeLock(path);
  // Written by another process: this one's locks would be lost with the file's closing.
  Bun.spawnSync(["sh", "-c", `head -c 8192 /dev/zero > "$0"`, path]);
  expect(takeElsewhere(path)).toBe("LockHeld");
  expect(takeElsewhere(path)).toBe("LockHeld");
  lock.release();
  expect(takeElsewhere(path)).toBe("taken");
});

test("a lock that cannot be made says what the system says", () => {
  using folder = makeTempFolder();
  expect(() => takeLock(folder.join("none/a.lock"))).toThrow(/^ENOENT: no such file or directory/);
});

test.skipIf(process.getuid?.() !== 0)(
  "what the administrator edits stays the user's, the lock too",
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
