// Tests of the simulator: a seed decides everything, nothing real is touched, and the disk forgets what a real one forgets.

import { expect, test } from "bun:test";
import { join } from "node:path";
import { makePlan } from "./plan/make.ts";
import { runPlan, World } from "./run.ts";
import { bundleProgram } from "./world/bundle.ts";
import { Disk } from "./world/disk.ts";
import { compileProgram, SimProcess } from "./world/process.ts";
import { Random } from "./world/random.ts";

const bundle = await bundleProgram();
const make = compileProgram(bundle);
const MAIN = join(import.meta.dir, "main.ts");

function call(owner: unknown, name: string): unknown {
  const member: unknown = Reflect.get(Object(owner), name);
  return typeof member === "function" ? Reflect.apply(member, owner, []) : undefined;
}

test("a seed decides everything in a simulated run: its trace is the same in another process, in another time zone and after other runs", async () => {
  const run = Bun.spawn([process.execPath, MAIN, "--seeds", "11", "--digest"], {
    env: { ...process.env, TZ: "Asia/Kathmandu" },
    stdout: "pipe",
  });
  const other = (await runPlan(makePlan(14), make)).digest;
  const own = (await runPlan(makePlan(11), make)).digest;
  const [, elsewhere] = /^seed 11: (\w+)$/m.exec(await run.stdout.text()) ?? [];
  expect([own, other]).toEqual([elsewhere ?? "", expect.not.stringMatching(own)]);
}, 120_000);

test("P125: on a disk that keeps up, a power cut costs at most the lines of the last 100 ms", async () => {
  const run = Bun.spawn([process.execPath, MAIN, "--seeds", "1..3", "--power-cuts", "--no-shrink"], {
    stdout: "pipe",
  });
  const text = await run.stdout.text();
  expect(text).toContain("nothing failed");
  expect(Number(/(\d+) power cuts/.exec(text)?.[1])).toBeGreaterThan(15);
}, 240_000);

test("a function of the runtime that the simulator does not replace throws when it is used", () => {
  const { require, globals } = new SimProcess(new World(makePlan(1), make, null), "test", 1).edges();
  expect(() => require("node:child_process")).toThrow("does not replace the module");
  expect(() => call(require("node:fs"), "symlinkSync")).toThrow("does not replace node:fs.symlinkSync");
  expect(() => call(globals, "fetch")).toThrow("does not replace fetch");
});

test("the simulated disk forgets the pages of a failed sync, except those that are written again", () => {
  const disk = new Disk(new Random(1, "disk"));
  const file = disk.create("/home/a", "file", 0o600, 0);
  file.write(0, Buffer.from("a".repeat(5000)));
  disk.beginSync(file)(true);
  file.write(5000, Buffer.from("b"));
  disk.sync(file);
  disk.cutPower();
  expect(disk.find("/home/a")?.content.toString()).toBe(`${"\0".repeat(4096)}${"a".repeat(904)}b`);
});
