import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { editConfig, nameLock, waitForLock } from "../../../src/config/file/replace.ts";
import { LockHeld, takeLock } from "../../../src/lib/files/file-lock.ts";
import { makeTempFolder } from "../../harness/temp.ts";

const CONFIG = `channels:
  a: { platform: messages, base_url: "https://a.example", credential: sk-upstream }
groups: { g: { platform: messages, channels: [a] } }
keys:
  - { name: first, group: g, secret: sk-first }
`;

const ADD_MINE = {
  kind: "append",
  path: ["keys"],
  values: [{ name: "mine", group: "g", secret: "sk-mine" }],
} as const;

test("what the user saves while a command decides is kept, and the command decides again", async () => {
  using folder = makeTempFolder();
  const path = folder.join("gateway.yaml");
  writeFileSync(path, CONFIG, { mode: 0o600 });
  const saved = CONFIG.replace("name: first", "name: saved-by-editor");
  const seen: string[][] = [];
  await editConfig(path, {}, (catalog) => {
    seen.push([...catalog.keys.keys()]);
    // An editor takes no lock.
    if (seen.length === 1) writeFileSync(path, saved);
    return [ADD_MINE];
  });
  expect(seen).toEqual([["first"], ["saved-by-editor"]]);
  expect(readFileSync(path, "utf8")).toBe(`${saved}  - { name: mine, group: g, secret: sk-mine }\n`);
});

test("a file that changes each time is left as it is, and the command says so", async () => {
  using folder = makeTempFolder();
  const path = folder.join("gateway.yaml");
  writeFileSync(path, CONFIG, { mode: 0o600 });
  let saves = 0;
  const edit = editConfig(path, {}, () => {
    saves += 1;
    writeFileSync(path, `${CONFIG}# save ${saves}\n`);
    return [ADD_MINE];
  });
  expect(edit).rejects.toThrow("keeps changing while it is being edited: try again");
  await edit.catch(() => undefined);
  expect(readFileSync(path, "utf8")).toBe(`${CONFIG}# save ${saves}\n`);
});

test("a command waits for the lock as long as it passes from one process to the next", async () => {
  let turn = 0;
  const lock = { release: () => undefined };
  const taken = await waitForLock(
    "x",
    () => {
      turn += 1;
      if (turn <= 20) throw new LockHeld("x", { pid: turn, since: "2026-11-20T10:00:00.000Z" });
      return lock;
    },
    0,
  );
  expect(taken).toBe(lock);
});

test("a command that waits for one process too long gives up and names it", async () => {
  using folder = makeTempFolder();
  const path = folder.join("gateway.yaml");
  writeFileSync(path, CONFIG, { mode: 0o600 });
  const lock = takeLock(nameLock(path));
  const edit = editConfig(path, {}, () => [ADD_MINE], { lockWaitMs: 0 });
  expect(edit).rejects.toThrow(`is held by process ${process.pid}`);
  await edit.catch(() => undefined);
  lock.release();
  expect(readFileSync(path, "utf8")).toBe(CONFIG);
});
