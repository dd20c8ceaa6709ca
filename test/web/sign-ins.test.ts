// Sign-ins outlive a run of the gateway, in a file that has no secret.

import { afterEach, beforeEach, expect, test } from "bun:test";
import { readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { createSignIns, type SignIn, SIGN_IN_SECONDS, type SignIns } from "../../src/web/sign-ins.ts";
import { makeTempFolder, type TempFolder } from "../harness/temp.ts";

let folder: TempFolder;
let now = 1_800_000_000_000;
beforeEach(() => {
  folder = makeTempFolder();
});
afterEach(() => folder.remove());

const path = (): string => folder.join("ledger.jsonl.sign-ins.json");
const start = (): SignIns => createSignIns(() => now, path());

function signIn(signIns: SignIns): SignIn {
  const result = signIns.signIn(signIns.createCode());
  if (typeof result === "string") throw new Error(result);
  return result;
}

test("a sign-in holds after a restart, for thirty days, and its file has hashes only", () => {
  const { cookie, token } = signIn(start());
  const text = readFileSync(path(), "utf8");
  expect([text.includes(cookie), text.includes(token)]).toEqual([false, false]);
  expect(statSync(path()).mode & 0o777).toBe(0o600);
  expect(start().has([cookie], token)).toBe(true);
  expect(start().has([cookie], "other")).toBe(false);
  now += SIGN_IN_SECONDS * 1000;
  expect(start().has([cookie], token)).toBe(false);
});

test("a sign-out holds after a restart, and so does the end of a sign-in whose link was used twice", () => {
  const first = start();
  const [one, two] = [signIn(first), signIn(first)];
  start().signOut(["foreign", one.cookie]);
  const after = start();
  expect([after.has([one.cookie], one.token), after.has([two.cookie], two.token)]).toEqual([false, true]);
  const code = after.createCode();
  const stolen = after.signIn(code);
  expect(after.signIn(code)).toBe("used");
  if (typeof stolen === "string") throw new Error(stolen);
  expect(start().has([stolen.cookie], stolen.token)).toBe(false);
});

test("a file of sign-ins that cannot be read, or that is a link, signs nobody in and stops nothing", () => {
  for (const text of ["", "{", '{"v":1}', '{"v":1,"sign_ins":[["a"]]}', "null"]) {
    writeFileSync(path(), text, { mode: 0o600 });
    const signIns = start();
    expect(signIns.has(["a"], "b")).toBe(false);
    const { cookie, token } = signIn(signIns);
    expect(signIns.has([cookie], token)).toBe(true);
  }
  const kept = signIn(start());
  const target = folder.join("other.json");
  writeFileSync(target, readFileSync(path(), "utf8"), { mode: 0o600 });
  symlinkSync(target, `${path()}.link`);
  const linked = createSignIns(() => now, `${path()}.link`);
  expect(linked.has([kept.cookie], kept.token)).toBe(false);
});

test("a demo keeps no sign-in", () => {
  const demo = createSignIns(() => now, null);
  const { cookie, token } = signIn(demo);
  expect(demo.has([cookie], token)).toBe(true);
});
