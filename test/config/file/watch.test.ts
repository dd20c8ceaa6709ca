import { afterEach, describe, expect, jest, test } from "bun:test";
import { mkdtempSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type LoadedConfig, loadConfig } from "../../../src/config/file/load.ts";
import { watchConfig } from "../../../src/config/file/watch.ts";
import { sha256Hex } from "../../../src/lib/secret.ts";
import { makeSweptFolder } from "../../harness/temp.ts";

const write = (port: number | string) => `listen: { port: ${port} }\n`;

/** Opens a watch whose reports can be awaited one by one. */
function openWatch(path: string) {
  const shown: Array<number | string> = [];
  const waiting: Array<(value: number | string) => void> = [];
  const report = (value: number | string) => {
    const next = waiting.shift();
    if (next === undefined) shown.push(value);
    else next(value);
  };
  const { follow, end: stop } = watchConfig(
    loadConfig(path, {}),
    {},
    {
      onChange: (loaded: LoadedConfig) => report(loaded.catalog.listen.port),
      onProblem: (error) => report(error.message),
    },
  );
  const next = () => {
    const value = shown.shift();
    return value === undefined
      ? new Promise<number | string>((resolve) => waiting.push(resolve))
      : Promise.resolve(value);
  };
  return { next, follow, stop, shown };
}

const open: Array<() => void> = [];
afterEach(() => open.splice(0).forEach((close) => close()));

function setUp() {
  const folder = makeSweptFolder();
  const path = join(folder, "gateway.yaml");
  writeFileSync(path, write(1));
  return { folder, path };
}

function start(path: string) {
  const watch = openWatch(path);
  open.push(watch.stop);
  return watch;
}

describe("P13: a running gateway notices a changed file", () => {
  test("a change is applied within a second, even right after the watch has looked at the file", () => {
    const { path } = setUp();
    jest.useFakeTimers();
    try {
      const watch = start(path);
      for (const port of [20, 300]) {
        writeFileSync(path, write(port));
        jest.advanceTimersByTime(999);
        expect(watch.shown.splice(0)).toEqual([port]);
      }
    } finally {
      jest.useRealTimers();
    }
  });

  test("a config that was emptied is refused: all of its keys would be unknown", async () => {
    const { path } = setUp();
    const watch = start(path);
    for (const nothing of ["\n", "# yet to come\n\n  # this too"]) {
      writeFileSync(path, nothing);
      expect(await watch.next()).toContain("is empty");
    }
    writeFileSync(path, write(2));
    expect(await watch.next()).toBe(2);
  });

  test("a new file that is renamed to the name of the config is applied", async () => {
    const { folder, path } = setUp();
    const watch = start(path);
    writeFileSync(join(folder, "draft"), write(3));
    renameSync(join(folder, "draft"), path);
    expect(await watch.next()).toBe(3);
  });

  test.skipIf(process.platform === "win32")(
    "a change is applied if the config is a link into a folder that is swapped",
    async () => {
      const { folder } = setUp();
      for (const version of ["one", "two"]) {
        const place = mkdtempSync(join(folder, version));
        writeFileSync(join(place, "gateway.yaml"), write(version === "one" ? 11 : 12));
        symlinkSync(place, join(folder, version));
      }
      symlinkSync(join(folder, "one"), join(folder, "current"));
      const link = join(folder, "linked.yaml");
      symlinkSync(join(folder, "current", "gateway.yaml"), link);
      const watch = start(link);
      symlinkSync(join(folder, "two"), join(folder, "next"));
      renameSync(join(folder, "next"), join(folder, "current"));
      expect(await watch.next()).toBe(12);
    },
  );

  test("a change is noticed even if the editor first moved the old version away", async () => {
    const { folder, path } = setUp();
    const watch = start(path);
    renameSync(path, join(folder, "gateway.yaml~"));
    writeFileSync(path, write(4));
    expect(await watch.next()).toBe(4);
  });

  test("a file may change again and again, and a change back to the first content counts too", async () => {
    const { path } = setUp();
    const watch = start(path);
    writeFileSync(path, write(5));
    expect(await watch.next()).toBe(5);
    writeFileSync(path, write(1));
    expect(await watch.next()).toBe(1);
  });
});

test("a file that is written in pieces is applied when it is complete, and not before", async () => {
  const { path } = setUp();
  const watch = start(path);
  let pieces = 0;
  const looked = Promise.withResolvers<void>();
  // A new piece comes every 5 ms. The watch applies a file only if it stays the same for 50 ms.
  const writer = setInterval(() => {
    writeFileSync(path, write(10_000 + (pieces += 1)));
    // All pieces took more than a second, in which the watch polled twice.
    if (pieces === 240) looked.resolve();
  }, 5);
  try {
    await looked.promise;
  } finally {
    clearInterval(writer);
  }
  expect([pieces > 0, watch.shown]).toEqual([true, []]);
  writeFileSync(path, write(2));
  expect(await watch.next()).toBe(2);
});

describe("P14: a bad config file is reported, and the gateway goes on watching", () => {
  test("a bad file is reported once for each content, and the watch continues", async () => {
    const { path } = setUp();
    const watch = start(path);
    writeFileSync(path, write("many"));
    expect(await watch.next()).toContain("gateway.yaml:1:17: listen.port: expected a whole number");
    writeFileSync(path, write("many"));
    writeFileSync(path, write("few"));
    expect(await watch.next()).toContain("listen.port");
    writeFileSync(path, write(6));
    expect(await watch.next()).toBe(6);
    expect(watch.shown).toEqual([]);
  });

  test("a file that is gone is reported, and applied when it is back", async () => {
    const { path } = setUp();
    const watch = start(path);
    unlinkSync(path);
    expect(await watch.next()).toContain("There is no config file");
    writeFileSync(path, write(7));
    expect(await watch.next()).toBe(7);
  });
});

describe("when a command says that it has written the file, the watch looks at the file at once", () => {
  test("when a command says that it has written the file, the watch applies the file at once", async () => {
    const { path } = setUp();
    const watch = start(path);
    writeFileSync(path, write(2));
    expect(await watch.follow(sha256Hex(write(2)))).toEqual({ kind: "applied" });
    expect(watch.shown).toEqual([2]);
  });

  test("a command that waits for its write gets `applied` if another program's newer content is applied instead", async () => {
    const { path } = setUp();
    const watch = start(path);
    writeFileSync(path, "listen: { port:");
    const followed = watch.follow(sha256Hex(write(2)));
    writeFileSync(path, write(3));
    expect(await followed).toEqual({ kind: "applied" });
    expect(watch.shown).toEqual([3]);
  });

  test("a watch says why it refuses a file, as often as a command asks", async () => {
    const { path } = setUp();
    const watch = start(path);
    writeFileSync(path, write("many"));
    for (const written of [write("many"), write("many"), ""]) {
      const outcome = await watch.follow(sha256Hex(written));
      expect(outcome).toEqual({ kind: "refused", message: expect.stringContaining("listen.port") });
    }
    expect(watch.shown).toHaveLength(1);
  });
});

test("a changed line of gateway.env next to the config is applied", async () => {
  const { folder, path } = setUp();
  const variables = join(folder, "gateway.env");
  writeFileSync(variables, "PORT=8\n", { mode: 0o600 });
  writeFileSync(path, write('"${PORT}"'));
  const watch = start(path);
  writeFileSync(variables, "PORT=9\n", { mode: 0o600 });
  expect(await watch.next()).toBe(9);
});

test.skipIf(Bun.which("mkfifo") === null)(
  "a pipe is read only once, since reading it again would wait for ever",
  async () => {
    const { folder } = setUp();
    const path = join(folder, "pipe.yaml");
    Bun.spawnSync(["mkfifo", path]);
    const source = (file: string): string =>
      JSON.stringify(new URL(`../../../src/config/file/${file}`, import.meta.url));
    const script = `
    import { loadConfig } from ${source("load.ts")};
    import { watchConfig } from ${source("watch.ts")};
    const shown = () => process.exit(1);
    watchConfig(loadConfig(${JSON.stringify(path)}, {}), {}, { onChange: shown, onProblem: shown });
    setTimeout(() => process.exit(0), 500);`;
    // The time limit only ends a process that would wait for ever.
    const child = Bun.spawn([process.execPath, "-e", script], { timeout: 50_000, killSignal: "SIGKILL" });
    await Bun.spawn(["sh", "-c", `echo 'listen: { port: 1 }' > "$0"`, path], { timeout: 50_000 }).exited;
    expect(await child.exited).toBe(0);
  },
);
