import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadConfig } from "../../../src/config/file/load.ts";
import { checkInBackground, MAX_QUICK_LENGTH } from "../../../src/config/reload/check.ts";
import { watchConfig } from "../../../src/config/file/watch.ts";
import { makeSweptFolder } from "../../harness/temp.ts";

const KEYS = 600;

/** The last key has a problem if `group` does not exist. */
function writeLong(port: number, group = "claude"): string {
  const keys = Array.from(
    { length: KEYS },
    (_, index) =>
      `  - { name: key-${index}, group: claude, secret: "sk-${index}", limits: { usd_per_day: "${index}.5" } }\n`,
  );
  return `listen: { port: ${port} }
timezone: UTC
channels:
  main: { platform: messages, base_url: "https://api.anthropic.com", credential: "\${CREDENTIAL}" }
groups:
  claude: { platform: messages, channels: [main] }
keys:
${keys.join("")}  - { name: last, group: ${group}, secret_sha256: ${"ab".repeat(32)}, expires: 2030-01-01 }
`;
}

const env = { CREDENTIAL: "sk-upstream" };
const never = new AbortController().signal;

function write(text: string): string {
  const file = join(makeSweptFolder(), "gateway.yaml");
  writeFileSync(file, text, { mode: 0o600 });
  return file;
}

test("a long config that is checked in the background gives the same catalog", async () => {
  const text = writeLong(1);
  expect(text.length).toBeGreaterThan(MAX_QUICK_LENGTH);
  const file = write(text);
  const { catalog, warnings } = await checkInBackground({ text, file, env }, never);
  const expected = loadConfig(file, env);
  const { zone, ...others } = catalog;
  const { zone: expectedZone, ...expectedOthers } = expected.catalog;
  expect(others).toEqual(expectedOthers);
  expect(zone.name).toBe(expectedZone.name);
  expect(warnings).toEqual(expected.warnings);
  expect(catalog.keys.size).toBe(KEYS + 1);
  expect(catalog.keys.get("key-7")?.group).toBe(catalog.groups.get("claude"));
  expect(catalog.channels.get("main")?.credential).toBe("sk-upstream");
});

test("a long config's problems are the same, with their places", async () => {
  const text = writeLong(1, "cluade");
  const file = write(text);
  const check = checkInBackground({ text, file, env }, never);
  const message = await check.then(
    () => "",
    (error: unknown) => String(error),
  );
  expect(message).toContain("did you mean");
  expect(() => loadConfig(file, env)).toThrow(message.replace(/^\w+: /, ""));
});

test("the event loop turns while a long config is read", async () => {
  const text = writeLong(1);
  const file = write(text);
  let turns = 0;
  let done = false;
  const turn = (): void => {
    turns += 1;
    if (!done) setImmediate(turn);
  };
  turn();
  await checkInBackground({ text, file, env }, never);
  done = true;
  expect(turns).toBeGreaterThan(KEYS / 250);
});

test("a check that was ended is rejected at once", async () => {
  const text = writeLong(1);
  const file = write(text);
  const ended = new AbortController();
  const check = checkInBackground({ text, file, env }, ended.signal);
  ended.abort();
  const message = await check.then(
    () => "",
    (error: unknown) => String(error),
  );
  expect(message).toContain("AbortError");
});

test("a running gateway applies a long file that was changed", async () => {
  const file = write(writeLong(1));
  const applied = Promise.withResolvers<number>();
  const watch = watchConfig(loadConfig(file, env), env, {
    onChange: ({ catalog }) => applied.resolve(catalog.listen.port),
    onProblem: (error) => applied.reject(error),
  });
  writeFileSync(file, writeLong(2));
  expect(await applied.promise).toBe(2);
  watch.end();
});

/** The first thread gets its question only when the test says so. */
function holdFirstCheck(): Disposable & { readonly begun: Promise<void>; readonly release: () => void } {
  const Thread = globalThis.Worker;
  const begun = Promise.withResolvers<void>();
  let held: (() => void) | null = null;
  globalThis.Worker = class extends Thread {
    override postMessage(question: unknown): void {
      const send = (): void => super.postMessage(question);
      if (held !== null) {
        send();
        return;
      }
      held = send;
      begun.resolve();
    }
  };
  return {
    begun: begun.promise,
    release: () => held?.(),
    [Symbol.dispose]: () => {
      globalThis.Worker = Thread;
    },
  };
}

test("of two long files, the newer one counts, also if its check ends first", async () => {
  const file = write(writeLong(1));
  const applied: number[] = [];
  const newest = Promise.withResolvers<void>();
  using slow = holdFirstCheck();
  const watch = watchConfig(loadConfig(file, env), env, {
    onChange: ({ catalog }) => {
      applied.push(catalog.listen.port);
      newest.resolve();
    },
    onProblem: (error) => newest.reject(error),
  });
  writeFileSync(file, writeLong(2));
  await slow.begun;
  writeFileSync(file, writeLong(3));
  await newest.promise;
  slow.release();
  // The first check would end before another one that begins now.
  await checkInBackground({ text: writeLong(4), file, env }, never);
  expect(applied).toEqual([3]);
  watch.end();
});
