// `gateway upgrade` against a release server of the test, which signs with a key of the test. The executables are scripts.

import { afterAll, describe, expect, test } from "bun:test";
import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { verifySignature } from "../../../../src/cli/setup/upgrade/minisign.ts";
import { swapPrevious } from "../../../../src/cli/setup/upgrade/executable.ts";
import { findManager, nameExecutable, upgradeExecutable } from "../../../../src/cli/setup/upgrade/upgrade.ts";
import { canBeOther, makeTempFolder, OTHER_ID, type TempFolder } from "../../../harness/temp.ts";

const UPGRADE = join(import.meta.dir, "../../../../src/cli/setup/upgrade/upgrade.ts");

/** Signs as minisign does. */
function makeSigner() {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const id = Buffer.from("12345678");
  const raw = Buffer.from(publicKey.export({ format: "jwk" }).x ?? "", "base64url");
  const signFile = (text: string, comment: string): string => {
    const signature = sign(null, createHash("blake2b512").update(text).digest(), privateKey);
    const global = sign(null, Buffer.concat([signature, Buffer.from(comment)]), privateKey);
    const whole = Buffer.concat([Buffer.from("ED"), id, signature]).toString("base64");
    return `untrusted comment: x\n${whole}\ntrusted comment: ${comment}\n${global.toString("base64")}\n`;
  };
  return { publicKey: Buffer.concat([Buffer.from("Ed"), id, raw]).toString("base64"), signFile };
}

const signer = makeSigner();
const writeScript = (version: string): string => `#!/bin/sh\n# ${"x".repeat(200_000)}\necho ${version}\n`;

interface ReleaseParts {
  readonly version?: string;
  /** What is signed and sent. */
  readonly script?: string;
  /** What the server sends as the executable, if it is not what was signed. */
  readonly sent?: (script: string) => string | ReadableStream;
  readonly signed?: typeof signer;
  readonly sums?: (list: string) => string;
}

const become = `process.setgroups([]); process.setgid(${OTHER_ID}); process.setuid(${OTHER_ID});`;

/** A part of it, and then an end that HTTP does not allow. */
function breakOff(script: string): ReadableStream {
  const parts = [script.slice(0, 100_000)];
  return new ReadableStream({
    pull: (stream) => {
      const part = parts.shift();
      if (part === undefined) stream.error(new Error("the test breaks off"));
      else stream.enqueue(Buffer.from(part));
    },
  });
}

const servers: Array<{ stop(now: boolean): unknown }> = [];
afterAll(() => servers.forEach((server) => server.stop(true)));

function publish(parts: ReleaseParts = {}) {
  const { version = "9.0.0", script = writeScript(version), sent, signed = signer } = parts;
  const list = `${createHash("sha256").update(script).digest("hex")}  ${nameExecutable()}\n`;
  const files: Record<string, () => string | ReadableStream> = {
    "/r/SHA256SUMS": () => parts.sums?.(list) ?? list,
    "/r/SHA256SUMS.minisig": () => signed.signFile(list, `gateway ${version}`),
    [`/r/${nameExecutable()}`]: () => sent?.(script) ?? script,
  };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url }) => {
      const file = files[new URL(url).pathname];
      return file === undefined ? new Response("", { status: 404 }) : new Response(file());
    },
  });
  servers.push(server);
  return { releases: `${server.url.origin}/r`, publicKey: signer.publicKey };
}

function install(folder: TempFolder): string {
  const path = folder.join("gateway");
  writeFileSync(path, writeScript("1.0.0"));
  chmodSync(path, 0o755);
  return path;
}

const start = (path: string): string => Bun.spawnSync([path]).stdout.toString().trim();

/** What is left of a failed upgrade: the old executable, and nothing else. */
function expectUnchanged(folder: TempFolder): void {
  expect(readdirSync(folder.path).filter((name) => !name.includes(".lock"))).toEqual(["gateway"]);
  expect(start(folder.join("gateway"))).toBe("1.0.0");
}

describe.skipIf(process.platform === "win32")("gateway upgrade", () => {
  test("takes a newer release; --undo goes back, and forth again", async () => {
    using folder = makeTempFolder();
    const path = install(folder);
    expect(await upgradeExecutable(publish(), path, false, "1.0.0")).toBe(true);
    expect([start(path), start(`${path}.previous`)]).toEqual(["9.0.0", "1.0.0"]);
    swapPrevious(path);
    expect([start(path), start(`${path}.previous`)]).toEqual(["1.0.0", "9.0.0"]);
    swapPrevious(path);
    expect(start(path)).toBe("9.0.0");
    expect(readdirSync(folder.path).filter((name) => name.startsWith("."))).toEqual([]);
  });

  test("--check changes nothing, and neither does a release that is not newer", async () => {
    using folder = makeTempFolder();
    const path = install(folder);
    expect(await upgradeExecutable(publish(), path, true, "1.0.0")).toBe(false);
    expect(await upgradeExecutable(publish(), path, false, "9.0.0")).toBe(false);
    expect(await upgradeExecutable(publish(), path, false, "9.0.1").catch(String)).toContain(
      "older than this version, 9.0.1",
    );
    expectUnchanged(folder);
  });

  const other = makeSigner();
  const REFUSED: ReadonlyArray<readonly [what: string, parts: ReleaseParts, says: string]> = [
    ["signed with another key", { signed: other }, "the signature is wrong"],
    ["whose checksums were changed", { sums: (list) => list.replace(/^./, "z") }, "the signature is wrong"],
    ["that arrives in part", { sent: (script) => script.slice(0, 100_000) }, "arrived in part"],
    ["whose download breaks off", { sent: breakOff }, "the answer broke off"],
    [
      "whose executable was changed",
      { sent: (script) => script.replace("echo", "rm  ") },
      "is not the file that was signed",
    ],
    ["whose executable does not start", { script: "#!/bin/sh\nexit 3\n" }, "does not start here as 9.0.0"],
    ["of another version than was signed", { script: writeScript("9.0.1") }, "does not start here as 9.0.0"],
  ];
  test.each(REFUSED)("refuses a release %s, and changes nothing", async (_, parts, says) => {
    using folder = makeTempFolder();
    const path = install(folder);
    expect(await upgradeExecutable(publish(parts), path, false, "1.0.0").catch(String)).toContain(says);
    expectUnchanged(folder);
  });

  test("does not follow a redirect to another host", async () => {
    using folder = makeTempFolder();
    const path = install(folder);
    const target = publish();
    const server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: ({ url }) =>
        Response.redirect(`${target.releases.replace("127.0.0.1", "localhost")}${new URL(url).pathname}`),
    });
    servers.push(server);
    const source = { releases: server.url.origin, publicKey: signer.publicKey };
    expect(await upgradeExecutable(source, path, false, "1.0.0").catch(String)).toContain(
      "redirects to another host",
    );
    expectUnchanged(folder);
  });

  test("changes nothing on a full disk, and says so", async () => {
    using folder = makeTempFolder();
    install(folder);
    const source = publish();
    const limited = await runElsewhere(source, folder.join("gateway"), "ulimit -f 64; trap '' XFSZ;");
    expect(limited).toContain("The upgrade has failed, and nothing was changed: EFBIG");
    expectUnchanged(folder);
  });

  test.skipIf(!canBeOther)("changes nothing where this user cannot write, and says so", async () => {
    using folder = makeTempFolder();
    install(folder);
    chmodSync(folder.path, 0o755);
    const said = await runElsewhere(publish(), folder.join("gateway"), "", become);
    expect(said).toContain(`nothing was changed: this user cannot write in `);
    expectUnchanged(folder);
  });

  test("lets one of two that run at once go on, and the other one changes nothing", async () => {
    using folder = makeTempFolder();
    const path = install(folder);
    const source = publish();
    const both = await Promise.allSettled([1, 2].map(() => upgradeExecutable(source, path, false, "1.0.0")));
    const late = both.filter(({ status }) => status === "rejected");
    expect(late).toHaveLength(1);
    expect(late[0]).toMatchObject({ reason: { message: expect.stringContaining("Another upgrade") } });
    expect(start(path)).toBe("9.0.0");
  });

  test("that is killed in the middle leaves the old executable, and the next one clears up", async () => {
    using folder = makeTempFolder();
    const path = install(folder);
    /** It never ends: the process that reads it is killed. */
    const slow = (script: string): string | ReadableStream =>
      new ReadableStream({
        start: (stream) => stream.enqueue(Buffer.from(script.slice(0, 1000))),
      });
    const child = Bun.spawn(writeCommand(publish({ sent: slow }), path), {
      stderr: "ignore",
      stdout: "ignore",
    });
    while (!readdirSync(folder.path).some((name) => name.endsWith(".tmp"))) await Bun.sleep(5);
    child.kill("SIGKILL");
    await child.exited;
    expect(start(path)).toBe("1.0.0");
    expect(existsSync(`${path}.previous`)).toBe(false);
    await upgradeExecutable(publish(), path, false, "1.0.0");
    expect(start(path)).toBe("9.0.0");
    expect(readdirSync(folder.path).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  });
});

function writeCommand(source: object, path: string, before = ""): string[] {
  const code = `import { upgradeExecutable } from ${JSON.stringify(UPGRADE)}; ${before}
    await upgradeExecutable(${JSON.stringify(source)}, ${JSON.stringify(path)}, false, "1.0.0");`;
  return [process.execPath, "-e", code];
}

async function runElsewhere(source: object, path: string, shell: string, before = ""): Promise<string> {
  const words = ["sh", "-c", `${shell} exec "$@"`, "sh", ...writeCommand(source, path, before)];
  return await new Response(Bun.spawn(words, { stdout: "ignore", stderr: "pipe" }).stderr).text();
}

test.skipIf(Bun.which("minisign") === null)("a signature of minisign itself is accepted", () => {
  using folder = makeTempFolder();
  writeFileSync(folder.join("SHA256SUMS"), "the list\n");
  const script = `minisign -G -W -p key.pub -s key.sec >/dev/null && minisign -S -s key.sec -t 'gateway 1.2.3' -m SHA256SUMS >/dev/null
    minisign -S -l -s key.sec -t 'gateway 1.2.3' -x old.minisig -m SHA256SUMS >/dev/null`;
  expect(Bun.spawnSync(["sh", "-c", script], { cwd: folder.path }).exitCode).toBe(0);
  const read = (name: string): string => readFileSync(folder.join(name), "utf8");
  const [, publicKey = ""] = read("key.pub").split("\n");
  for (const name of ["SHA256SUMS.minisig", "old.minisig"]) {
    expect(verifySignature(Buffer.from("the list\n"), read(name), publicKey)).toBe("gateway 1.2.3");
    expect(() => verifySignature(Buffer.from("the lisp\n"), read(name), publicKey)).toThrow("is wrong");
    const renamed = read(name).replace("gateway 1.2.3", "gateway 9.9.9");
    expect(() => verifySignature(Buffer.from("the list\n"), renamed, publicKey)).toThrow("is wrong");
  }
});

test("an executable that a package manager installed is upgraded by its command", () => {
  const PLACES: ReadonlyArray<readonly [string, string | null]> = [
    [
      "/usr/lib/node_modules/@example/gateway/node_modules/@example/gateway-linux-x64/gateway",
      "npm install -g @example/gateway@latest",
    ],
    ["/opt/homebrew/Cellar/gateway/0.1.1/bin/gateway", "brew upgrade gateway"],
    ["C:\\Users\\me\\scoop\\apps\\gateway\\current\\gateway.exe", "scoop update gateway"],
    ["/usr/local/bin/gateway", null],
  ];
  for (const [path, command] of PLACES) expect([path, findManager(path)]).toEqual([path, command]);
});
