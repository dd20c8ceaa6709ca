// An attacker who can create files in the gateway's folder (a shared folder, a cloned repository) plants links there, to
// other files of the gateway's user. No command may write through them, and a command that cannot go on says why.

import { describe, expect, test } from "bun:test";
import {
  appendFileSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  watch,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { editConfig } from "../../../src/config/file/replace.ts";
import { startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { makeControlFolder } from "../../../src/gateway/api/socket.ts";
import { quoteWord } from "../../../src/lib/text/shell-word.ts";
import { run } from "../../cli/driving.ts";
import { CREDENTIAL, keyOf, makeConfig, startGateway, startGatewayHere } from "../../harness/gateway.ts";
import {
  canBeOther,
  makeSharedFolder,
  runAsOther,
  makeTempFolder,
  readLedger,
  type TempFolder,
} from "../../harness/temp.ts";
import { makeTable } from "../../billing/ledger/ledger-samples.ts";

const WINDOWS = process.platform === "win32";
const UPSTREAM = startDemoUpstream({ credential: CREDENTIAL });
const CONFIG = makeConfig(UPSTREAM);

/** Valid JSON, so that it could be taken for a ledger's line. */
const VICTIM = '{"a user":"writes this"}\n';

const KINDS = ["symbolic link", "link to nothing", "hard link"] as const;
type Kind = (typeof KINDS)[number];

interface Planted {
  readonly folder: TempFolder;
  /** The present content of the link's target; null: there is no such file. */
  victim(): string | null;
  [Symbol.dispose](): void;
}

function plant(kind: Kind, name: string, text = VICTIM): Planted {
  const folder = makeTempFolder();
  const other = makeTempFolder();
  const path = other.join("victim");
  if (kind !== "link to nothing") writeFileSync(path, text);
  if (kind === "hard link") linkSync(path, folder.join(name));
  else symlinkSync(path, folder.join(name));
  return {
    folder,
    victim: () => (existsSync(path) ? readFileSync(path, "utf8") : null),
    [Symbol.dispose]: () => {
      folder.remove();
      other.remove();
    },
  };
}

async function ask(url: string): Promise<number> {
  const answer = await fetch(`${url}/v1/messages`, {
    method: "POST",
    headers: { "x-api-key": keyOf("messages") },
    body: JSON.stringify({ model: "claude-sonnet-4-5", max_tokens: 8, messages: [] }),
  });
  await answer.text();
  return answer.status;
}

/** Runs a gateway for one request and edits its config, so that every file is written. Returns the problems. */
async function live(folder: TempFolder): Promise<string[]> {
  const ledger = folder.join("ledger.jsonl");
  // The ledger ends with a torn line, which the gateway moves to another file.
  if (lstatSync(ledger, { throwIfNoEntry: false }) === undefined)
    writeFileSync(ledger, '{"v":1,"id":"req_', { mode: 0o600, flag: "wx" });
  const failures: unknown[] = [];
  try {
    const gateway = startGatewayHere({ config: CONFIG, folder });
    await ask(gateway.url);
    await gateway.stop();
    // Brings the table next to the ledger up to date, as the console's reports do in their thread.
    makeTable(ledger);
  } catch (error) {
    failures.push(error);
  }
  const edit = editConfig(folder.join("gateway.yaml"), {}, () => [
    { kind: "set", path: ["vendor"], value: "x" },
  ]);
  await edit.catch((error: unknown) => failures.push(error));
  return failures.map(String);
}

/** Returns the names of all files that were in the folder at some time. */
async function watchNames(folder: TempFolder, act: () => Promise<unknown>): Promise<string[]> {
  const names = new Set<string>();
  const end = Promise.withResolvers<void>();
  const watcher = watch(folder.path, (_, name) => {
    if (name === "the-end") end.resolve();
    else if (typeof name === "string") names.add(name);
  });
  await act();
  for (const name of readdirSync(folder.path)) names.add(name);
  writeFileSync(folder.join("the-end"), "");
  await end.promise;
  watcher.close();
  return [...names];
}

const DRAFT = /^\..*\.\d+\.[0-9a-f]{8}\.tmp$/;
/** Names that an earlier version used. */
const FORMER = "end sums hours open.new sums.new channels.json.new lock-journal lock-wal"
  .split(" ")
  .map((tail) => `ledger.jsonl.${tail}`);

describe.skipIf(WINDOWS)("P192: links and files that are planted do no harm", () => {
  test("if a link has the name of a gateway's file, the link's target is not changed", async () => {
    using folder = makeTempFolder();
    const seen = await watchNames(folder, () => live(folder));
    const names = seen.filter((name) => name !== "gateway.yaml" && !DRAFT.test(name));
    expect(names.sort()).toEqual(
      expect.arrayContaining([
        ".gateway.yaml.lock",
        ".gateway.yaml.lock.holder",
        "ledger.jsonl",
        "ledger.jsonl.channels.json",
        "ledger.jsonl.lock",
        "ledger.jsonl.lock.holder",
        "ledger.jsonl.open",
        "ledger.jsonl.index",
        "ledger.jsonl.torn",
      ]),
    );
    const changed: string[] = [];
    for (const [index, name] of [...names, ...FORMER, ".gateway.yaml.lock-journal"].entries()) {
      // Each name gets one kind of link. test/lib/files/own-file.test.ts tries every kind.
      const kind = KINDS[index % KINDS.length]!;
      using planted = plant(kind, name);
      const before = planted.victim();
      await live(planted.folder);
      if (planted.victim() !== before) changed.push(`${kind} at ${name}`);
    }
    expect(changed).toEqual([]);
  });

  test.each(["lock", "open", "torn", "lock-journal"])(
    "a link at ledger.jsonl.%s stops the gateway's start, and the error says how to remove the link",
    async (tail) => {
      for (const kind of KINDS) {
        using planted = plant(kind, `ledger.jsonl.${tail}`);
        const [failure = ""] = await live(planted.folder);
        const path = planted.folder.join(`ledger.jsonl.${tail}`);
        expect(failure).toContain(`${path} is a ${kind === "hard link" ? kind : "link to "}`);
        expect(failure).toContain(`rm ${quoteWord(path)}`);
      }
    },
  );

  test.each(["open", "lock"])("a file of the user at ledger.jsonl.%s is not changed", async (tail) => {
    using folder = makeTempFolder();
    const path = folder.join(`ledger.jsonl.${tail}`);
    writeFileSync(path, VICTIM, { mode: 0o600 });
    const [failure = ""] = await live(folder);
    expect(failure).toContain(`${path} is not`);
    expect(failure).toContain("move it away");
    expect(readFileSync(path, "utf8")).toBe(VICTIM);
  });

  test("a link at ledger.jsonl.channels.json or ledger.jsonl.lock.holder does no harm", async () => {
    for (const tail of ["channels.json", "lock.holder"]) {
      using planted = plant("symbolic link", `ledger.jsonl.${tail}`);
      expect(await live(planted.folder)).toEqual([]);
      const path = planted.folder.join(`ledger.jsonl.${tail}`);
      if (tail !== "lock.holder") expect(lstatSync(path).isFile()).toBe(true);
      expect(planted.victim()).toBe(VICTIM);
    }
  });

  test("an empty ledger that is a hard link is not written to", async () => {
    using planted = plant("hard link", "ledger.jsonl", "");
    const [failure] = await live(planted.folder);
    expect(failure).toContain("ledger.jsonl is empty and a hard link");
    expect(planted.victim()).toBe("");
  });

  test("a link planted while the gateway is running is not written to", async () => {
    using planted = plant("symbolic link", "elsewhere");
    const { folder } = planted;
    const gateway = startGatewayHere({ config: CONFIG, folder });
    expect(await ask(gateway.url)).toBe(200);
    for (const tail of ["", ".open"]) {
      rmSync(folder.join(`ledger.jsonl${tail}`));
      symlinkSync(readlinkSync(folder.join("elsewhere")), folder.join(`ledger.jsonl${tail}`));
    }
    // The gateway looks at its files once a second. It refuses requests when it has seen the links.
    while ((await ask(gateway.url)) === 200) await Bun.sleep(1);
    await gateway.stop();
    expect(planted.victim()).toBe(VICTIM);
  });
});

describe.skipIf(WINDOWS)("commands that find a link in the place of a gateway's file say so", () => {
  /** Commands, each with its exit status. */
  const COMMANDS = [
    { name: ".gateway.yaml.lock", words: ["keys", "disable", "messages"], status: 1 },
    { name: ".gateway.yaml.lock", words: ["doctor"], status: 1 },
    { name: "ledger.jsonl.open", words: ["doctor"], status: 1 },
    { name: "ledger.jsonl.lock", words: ["serve"], status: 1 },
    { name: "ledger.jsonl.open", words: ["serve"], status: 1 },
    { name: "ledger.jsonl.lock", words: ["ledger", "reprice", "--since", "2026-01-01"], status: 1 },
  ];

  test.each(COMMANDS)("the command $words says to remove the link $name", async ({ name, words, status }) => {
    using planted = plant("symbolic link", name);
    writeFileSync(planted.folder.join("gateway.yaml"), JSON.stringify(CONFIG), { mode: 0o600 });
    appendFileSync(planted.folder.join("ledger.jsonl"), "", { mode: 0o600 });
    const outcome = await run({ folder: planted.folder.path }, ...words, "--config", "gateway.yaml");
    expect(planted.victim()).toBe(VICTIM);
    expect(outcome.status).toBe(status);
    const path = planted.folder.join(name);
    const said = outcome.stdout + outcome.stderr;
    expect(said).toContain(`${path} is a link to `);
    expect(said).toContain(`rm ${quoteWord(path)}`);
  });

  test("a read-only command does not write through a planted link", async () => {
    for (const tail of ["lock", "channels.json"]) {
      using planted = plant("symbolic link", `ledger.jsonl.${tail}`);
      const { folder } = planted;
      writeFileSync(folder.join("gateway.yaml"), JSON.stringify(CONFIG), { mode: 0o600 });
      writeFileSync(folder.join("ledger.jsonl"), "", { mode: 0o600 });
      for (const words of [["keys", "list"], ["usage"], ["ledger", "verify"], ["channels"], ["groups"]])
        await run({ folder: folder.path }, ...words, "--config", "gateway.yaml");
      expect(planted.victim()).toBe(VICTIM);
      expect(readdirSync(folder.path).sort()).toEqual(
        ["gateway.yaml", "ledger.jsonl", "ledger.jsonl.index", `ledger.jsonl.${tail}`].sort(),
      );
    }
  });

  test("init creates no file through a link", async () => {
    using planted = plant("link to nothing", "new.yaml");
    const env = { ANTHROPIC_API_KEY: "sk-ant-unused-credential" };
    const outcome = await run({ folder: planted.folder.path, env }, "init", "--yes", "--config", "new.yaml");
    expect(outcome.status).toBe(1);
    expect(outcome.stderr).toContain(`${planted.folder.join("new.yaml")} is a link to `);
    expect(planted.victim()).toBeNull();
  });

  test.skipIf(process.platform !== "linux")("service writes no unit through a link", async () => {
    const unit = "systemd/user/gateway.service";
    for (const kind of KINDS) {
      using planted = plant(kind, "unit", "# Written by `gateway service install`\nExecStart=mine\n");
      const { folder } = planted;
      writeFileSync(folder.join("gateway.yaml"), JSON.stringify(CONFIG), { mode: 0o600 });
      mkdirSync(dirname(folder.join(unit)), { recursive: true });
      if (kind === "hard link") linkSync(folder.join("unit"), folder.join(unit));
      else symlinkSync(readlinkSync(folder.join("unit")), folder.join(unit));
      const before = planted.victim();
      for (const act of ["install", "uninstall"]) {
        const more = act === "install" ? ["--config", "gateway.yaml"] : [];
        const outcome = await run(
          { folder: folder.path, env: { XDG_CONFIG_HOME: folder.path } },
          "service",
          act,
          ...more,
        );
        expect(outcome.status).toBe(1);
        expect(outcome.stderr).toContain(`${folder.join(unit)} is a `);
      }
      expect(planted.victim()).toBe(before);
    }
  });
});

test.skipIf(WINDOWS)("a link at the control socket's folder is refused, and its target not changed", () => {
  using folder = makeTempFolder();
  mkdirSync(folder.join("victim"), { mode: 0o755 });
  symlinkSync(folder.join("victim"), folder.join("link"));
  expect(() => makeControlFolder(folder.join("link"))).toThrow("is not a folder that only this user can use");
  expect(statSync(folder.join("victim")).mode & 0o777).toBe(0o755);
});

describe.skipIf(WINDOWS)("a config that is a link is used like a file", () => {
  test.skipIf(!canBeOther)("a config that is a link to another user's file is read, but not edited", () => {
    using folder = makeSharedFolder();
    using other = makeSharedFolder();
    const [real, link] = [join(other.path, "mine.yaml"), join(folder.path, "gateway.yaml")];
    const text = JSON.stringify(CONFIG);
    writeFileSync(real, text);
    symlinkSync(real, link);
    const said = runAsOther(
      { [`${import.meta.dir}/../../../src/cli/keys/change.ts`]: "setKeysDisabled" },
      `await setKeysDisabled(["messages"], true, { config: ${JSON.stringify(link)} }).catch(({ message }) => console.log(message));`,
    );
    expect(said).toContain(`${real} belongs to user 0, not to you`);
    expect(readFileSync(real, "utf8")).toBe(text);
    expect(readdirSync(other.path)).toEqual(["mine.yaml"]);
  });

  test("a config and a link to it share a lock: twenty edits at once through both are all kept", async () => {
    using folder = makeTempFolder();
    writeFileSync(folder.join("real.yaml"), JSON.stringify({ ...CONFIG, keys: [] }), { mode: 0o600 });
    symlinkSync("real.yaml", folder.join("gateway.yaml"));
    const numbers = Array.from({ length: 20 }, (_, number) => number);
    const value = (number: number) => ({
      name: `k${number}`,
      group: "messages",
      secret: `sk-number-${number}`,
    });
    await Promise.all(
      numbers.map((number) =>
        editConfig(folder.join(number % 2 === 0 ? "real.yaml" : "gateway.yaml"), {}, () => [
          { kind: "append", path: ["keys"], values: [value(number)] },
        ]),
      ),
    );
    const text = readFileSync(folder.join("real.yaml"), "utf8");
    expect(numbers.filter((number) => !text.includes(`k${number}`))).toEqual([]);
  });

  test("a gateway whose config is a link serves, and writes its ledger", async () => {
    using folder = makeTempFolder();
    mkdirSync(folder.join("dotfiles"));
    const gateway = await startGateway({ config: CONFIG, folder });
    await gateway.stop();
    writeFileSync(folder.join("dotfiles/mine.yaml"), readFileSync(folder.join("gateway.yaml")), {
      mode: 0o600,
    });
    rmSync(folder.join("gateway.yaml"));
    symlinkSync("dotfiles/mine.yaml", folder.join("gateway.yaml"));
    const linked = await startGateway({ config: CONFIG, folder });
    expect(await ask(linked.url)).toBe(200);
    await linked.stop();
    expect(lstatSync(folder.join("gateway.yaml")).isSymbolicLink()).toBe(true);
    expect(readLedger(folder.join("ledger.jsonl"))).toHaveLength(1);
  });
});

describe.skipIf(WINDOWS)("a pipe into which nobody writes makes nobody wait", () => {
  test.each([
    ["ledger.jsonl", ["usage"]],
    ["ledger.jsonl", ["ledger", "verify"]],
    ["ledger.jsonl", ["doctor"]],
    ["ledger.jsonl", ["serve"]],
    ["gateway.env", ["keys", "list"]],
    ["gateway.env", ["serve"]],
  ])("if %s is a pipe into which nobody writes, the command %j fails at once", async (name, words) => {
    using folder = makeTempFolder();
    const config = JSON.stringify({ listen: { port: 0 }, ...CONFIG });
    writeFileSync(folder.join("gateway.yaml"), config, { mode: 0o600 });
    expect(Bun.spawnSync(["mkfifo", folder.join(name)]).exitCode).toBe(0);
    const outcome = await run({ folder: folder.path }, ...words, "--config", "gateway.yaml");
    expect(outcome.status).not.toBe(0);
    expect(outcome.stderr + outcome.stdout).toMatch(
      /(?:ledger\.jsonl|gateway\.env) .*(?:no|not a) regular file/,
    );
  });
});
