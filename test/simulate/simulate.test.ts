// Tests of the simulator: a seed decides everything, nothing real is touched, and its disk forgets what a real one does.

import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { makePlan } from "./plan/make.ts";
import { runPlan } from "./run.ts";
import { bundleProgram } from "./world/bundle.ts";
import { Disk } from "./world/disk.ts";
import { Network } from "./world/network.ts";
import { compileProgram, type Machine, SimProcess } from "./world/process.ts";
import { Random } from "./world/random.ts";
import { Scheduler, Trace } from "./world/scheduler.ts";

const bundle = await bundleProgram();
const make = compileProgram(bundle);
const MAIN = join(import.meta.dir, "main.ts");

async function digests(seeds: string, zone: string): Promise<string[]> {
  const run = Bun.spawn([process.execPath, MAIN, "--seeds", seeds, "--all", "--digest", "--no-shrink"], {
    env: { ...process.env, TZ: zone },
    stdout: "pipe",
  });
  const text = await new Response(run.stdout).text();
  return text.split("\n").filter((line) => line.startsWith("seed "));
}

function makeMachine(): Machine {
  const scheduler = new Scheduler(new Random(1, "test"), new Trace(null));
  return {
    scheduler,
    network: new Network(scheduler, 1),
    disk: new Disk(new Random(1, "disk")),
    seed: 1,
    wallOffset: 0,
    accuse: (check, text) => {
      throw new Error(`${check}: ${text}`);
    },
    wrote: () => {},
    beginSync: () => () => {},
  };
}

function call(owner: unknown, name: string): unknown {
  const member: unknown = Reflect.get(Object(owner), name);
  return typeof member === "function" ? Reflect.apply(member, owner, []) : undefined;
}

describe("a seed", () => {
  test("decides everything: the traces of two processes are the same, byte for byte, in every time zone", async () => {
    const [first, second] = await Promise.all([
      digests("11..12", "UTC"),
      digests("11..12", "Asia/Kathmandu"),
    ]);
    expect(first).toHaveLength(2);
    expect(second).toEqual(first);
  }, 120_000);

  test("has the same trace after other runs in the same process, and not that of another seed", async () => {
    const alone = (await runPlan(makePlan(3), make)).digest;
    expect((await runPlan(makePlan(4), make)).digest).not.toBe(alone);
    expect((await runPlan(makePlan(3), make)).digest).toBe(alone);
  }, 120_000);
});

test("P125: a power cut costs at most the last 100 ms of lines on a disk that keeps up", async () => {
  const run = Bun.spawn([process.execPath, MAIN, "--seeds", "1..4", "--power-cuts", "--no-shrink"], {
    stdout: "pipe",
  });
  const text = await run.stdout.text();
  expect(text).toContain("nothing failed");
  expect(Number(/(\d+) power cuts/.exec(text)?.[1])).toBeGreaterThan(20);
}, 240_000);

test("a runtime call that is not replaced throws when it is used", () => {
  const { require, globals } = new SimProcess(makeMachine(), "test", 1).edges();
  expect(() => require("node:child_process")).toThrow("does not replace the module");
  expect(() => call(require("node:fs"), "symlinkSync")).toThrow("does not replace node:fs.symlinkSync");
  expect(() => call(globals, "fetch")).toThrow("does not replace fetch");
});

describe("the disk", () => {
  test("keeps synced bytes, whatever happens to the others", () => {
    for (let seed = 0; seed < 200; seed++) {
      const disk = new Disk(new Random(seed, "disk"));
      const file = disk.create("/home/a", "file", 0o600, 0);
      file.write(0, Buffer.from("safe"));
      disk.sync(file);
      file.write(4, Buffer.from("maybe"));
      disk.cutPower();
      const left = disk.find("/home/a")?.content.toString() ?? "";
      expect(left.slice(0, 4)).toBe("safe");
      expect(left.length).toBeLessThanOrEqual(9);
    }
  });

  test("forgets what a failed sync should have brought to it, but for pages that are written again", () => {
    const disk = new Disk(new Random(1, "disk"));
    const file = disk.create("/home/a", "file", 0o600, 0);
    file.write(0, Buffer.from("a".repeat(5000)));
    disk.beginSync(file)(true);
    file.write(5000, Buffer.from("b"));
    disk.sync(file);
    disk.cutPower();
    expect(disk.find("/home/a")?.content.toString()).toBe(`${"\0".repeat(4096)}${"a".repeat(904)}b`);
  });
});
