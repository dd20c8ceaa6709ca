// The disk under the ledger fills up, or its file disappears, while the gateway serves. It
// reports this clearly and accepts nothing that costs money. Running requests end as they should. When
// the disk is back, it goes on, and no line is lost.

import { afterAll, expect, test } from "bun:test";
import {
  appendFileSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import type { Finding } from "../../../src/billing/verify/finding.ts";
import { verifyLedger } from "../../../src/billing/verify/verify.ts";
import { type DemoUpstream, startDemoUpstream, makeGate } from "../../harness/upstreams/demo-upstream.ts";
import { type ChildGateway, CREDENTIAL, makeConfig, startGateway } from "../../harness/gateway.ts";
import { openRaw, parseAnswer, type RawConnection, rawRequest, writeRequest } from "../../harness/raw.ts";
import { makeTempFolder, readLedger, type TempFolder } from "../../harness/temp.ts";
import { bearer, type DialectName, DIALECTS, makeRequest } from "../world.ts";
import { PROGRAM } from "../../harness/program.ts";

/** A disk that a test can fill and empty while a gateway writes on it. */
interface Disk {
  readonly command: readonly string[];
  readonly path: string;
  fill(gateway: ChildGateway): void;
  empty(gateway: ChildGateway): void;
  /** The ledger's bytes as they are now. */
  copy(gateway: ChildGateway, to: string): void;
}

const hasPrlimit = Bun.which("prlimit") !== null && Bun.which("bash") !== null;
const canMount =
  Bun.which("unshare") !== null &&
  Bun.spawnSync(["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).success;

/** A limit on the size of files takes the place of a disk: it needs no privileges. */
function limitFiles(folder: TempFolder): Disk {
  const path = folder.join("ledger.jsonl");
  const setLimit = ({ pid }: ChildGateway, bytes: number | string): void => {
    expect(Bun.spawnSync(["prlimit", "--pid", String(pid), `--fsize=${bytes}:`]).success).toBe(true);
  };
  return {
    command: ["bash", "-c", `trap '' XFSZ; exec "$0" "$@"`, ...PROGRAM],
    path,
    // In the middle of the next line.
    fill: (gateway) => setLimit(gateway, readFileSync(path).length + 100),
    empty: (gateway) => setLimit(gateway, "unlimited"),
    copy: (_, to) => writeFileSync(to, readFileSync(path)),
  };
}

/** A disk in memory that only the gateway sees, and that ends with it. */
function mountSmall(folder: TempFolder): Disk {
  const path = folder.join("disk/ledger.jsonl");
  mkdirSync(folder.join("disk"));
  const inside = ({ pid }: ChildGateway, name: string): string =>
    `/proc/${pid}/root${folder.join("disk", name)}`;
  return {
    command: [
      "unshare",
      "-m",
      "bash",
      "-c",
      `mount -t tmpfs -o size=256k tmpfs "$0" && exec "$@"`,
      folder.join("disk"),
      ...PROGRAM,
    ],
    path,
    fill: (gateway) => {
      let size = 256 << 10;
      for (const filler = inside(gateway, "filler"); size > 0; size -= 1024) {
        try {
          return writeFileSync(filler, Buffer.alloc(size));
        } catch {
          rmSync(filler);
        }
      }
    },
    empty: (gateway) => rmSync(inside(gateway, "filler")),
    copy: (gateway, to) => writeFileSync(to, readFileSync(inside(gateway, "ledger.jsonl"))),
  };
}

const upstreams: DemoUpstream[] = [];
afterAll(() => upstreams.forEach((upstream) => upstream.stop()));

function openUpstream(): DemoUpstream {
  const upstream = startDemoUpstream({ credential: CREDENTIAL });
  upstreams.push(upstream);
  return upstream;
}

/** A stream that waits in its middle. */
async function begin(gateway: ChildGateway, upstream: DemoUpstream, dialect: DialectName) {
  const gate = makeGate();
  upstream.next({ gates: { 3: gate } });
  const client = await openRaw(gateway.port);
  client.send(writeRequest(makeRequest(dialect, true)));
  await gate.reached;
  return { client, gate };
}

async function idOfWhole(client: RawConnection): Promise<string> {
  const bytes = await client.until((all) => parseAnswer(all)?.complete === true);
  client.close();
  return parseAnswer(bytes)!.field("x-request-id")!;
}

/** Repeats a request until it gets this status. That is soon: the gateway looks at its disk each second. */
async function askUntil(gateway: ChildGateway, status: number, more: (id: string) => void): Promise<void> {
  for (;;) {
    const answer = await rawRequest(gateway.port, makeRequest("messages"));
    if (answer.status === 200) more(answer.field("x-request-id")!);
    if (answer.status === status) return;
    await Bun.sleep(20);
  }
}

const DISKS: readonly [string, boolean, (folder: TempFolder) => Disk][] = [
  ["a file that may not grow (EFBIG)", hasPrlimit, limitFiles],
  ["a full disk (ENOSPC)", canMount, mountSmall],
];

for (const [name, possible, openDisk] of DISKS) {
  test.skipIf(!possible)(
    `${name}: refused in every dialect, loud, nothing lost, and it goes on`,
    async () => {
      using folder = makeTempFolder();
      const disk = openDisk(folder);
      const upstream = openUpstream();
      const config = makeConfig(upstream, { ledger: { path: disk.path } });
      const gateway = await startGateway({ config, folder, command: disk.command });
      const billed: string[] = [];
      const running = await Promise.all(DIALECTS.map((dialect) => begin(gateway, upstream, dialect)));

      disk.fill(gateway);
      await askUntil(gateway, 503, (id) => billed.push(id));
      const asked = upstream.requests.length;
      const refusals = [];
      for (const dialect of DIALECTS)
        refusals.push(await rawRequest(gateway.port, makeRequest(dialect, true)));
      for (const refusal of refusals) {
        expect([refusal.status, refusal.field("retry-after")]).toEqual([503, "5"]);
        expect(refusal.field("x-request-id")).toStartWith("req_");
        expect(refusal.field("content-type")).toStartWith("application/json");
        expect(refusal.text).toContain("cannot write its ledger");
      }
      expect(refusals.map(({ text }) => JSON.parse(text))).toMatchObject([
        { type: "error", error: { type: "api_error" } },
        { error: { type: "server_error", code: "server_error" } },
        { error: { type: "server_error", code: "server_error" } },
        { error: { code: 503, status: "UNAVAILABLE" } },
      ]);
      expect(upstream.requests.length).toBe(asked);

      // Free requests still work, and /healthz reports the problem.
      const count = {
        target: "/v1/messages/count_tokens",
        fields: bearer("messages"),
        body: { model: "claude-haiku-4-5", messages: [] },
      };
      expect((await rawRequest(gateway.port, count)).status).toBe(200);
      expect(
        (await rawRequest(gateway.port, { target: "/v1/models", fields: bearer("messages") })).status,
      ).toBe(200);
      const health = await rawRequest(gateway.port, { target: "/healthz" });
      expect([health.status, JSON.parse(health.text)]).toEqual([
        503,
        { status: "failing", ledger: expect.stringMatching(/EFBIG|ENOSPC/) },
      ]);
      await gateway.noticed("billable requests are refused until it can");

      // Running requests end as they should: with the disk still full, then with room.
      for (const { gate } of running) gate.open();
      for (const { client } of running) billed.push(await idOfWhole(client));
      disk.empty(gateway);
      await askUntil(gateway, 200, (id) => billed.push(id));
      expect((await rawRequest(gateway.port, { target: "/healthz" })).text).toBe('{"status":"ok"}');
      await gateway.noticed("the ledger can be written again");

      const copy = folder.join("copy.jsonl");
      disk.copy(gateway, copy);
      gateway.signal("SIGKILL");
      await gateway.exited;
      const lines = readLedger(copy);
      expect(lines.map((line) => String(line["id"])).sort()).toEqual([...billed].sort());
      expect(lines.map((line) => [line["outcome"], line["basis"]])).toEqual(
        lines.map(() => ["complete", "exact"]),
      );
      expect(findFaults(copy)).toEqual([]);
    },
  );
}

test.skipIf(!hasPrlimit).each(["SIGKILL", "SIGTERM"] as const)(
  "%s while the disk is full: what had no line yet gets one at the next start",
  async (signal) => {
    using folder = makeTempFolder();
    const disk = limitFiles(folder);
    const upstream = openUpstream();
    const config = makeConfig(upstream);
    const gateway = await startGateway({ config, folder, command: disk.command });
    const written = await rawRequest(gateway.port, makeRequest("messages"));
    const running = await Promise.all(DIALECTS.map((dialect) => begin(gateway, upstream, dialect)));
    disk.fill(gateway);
    const billed: string[] = [];
    await askUntil(gateway, 503, (id) => billed.push(id));
    for (const { gate } of running) gate.open();
    for (const { client } of running) billed.push(await idOfWhole(client));
    gateway.signal(signal);
    await gateway.exited;

    const after = await startGateway({ config, folder });
    const lines = after.ledger();
    expect(lines.map(({ id }) => String(id))).toEqual([written.field("x-request-id")!, ...billed]);
    expect(lines.map(({ outcome, basis }) => [outcome, basis])).toEqual([
      ["complete", "exact"],
      ...billed.map(() => ["interrupted", "unknown"]),
    ]);
    expect(findFaults(disk.path)).toEqual([]);
    await after.stop();
  },
);

/** Each returns what undoes it. */
const CHANGES: readonly (readonly [string, (path: string) => () => void])[] = [
  [
    "is replaced by another file",
    (path) => {
      renameSync(path, `${path}.aside`);
      mkdirSync(path);
      return () => {
        rmdirSync(path);
        renameSync(`${path}.aside`, path);
      };
    },
  ],
  [
    "is gone with its folder",
    (path) => {
      renameSync(dirname(path), `${dirname(path)}-aside`);
      return () => renameSync(`${dirname(path)}-aside`, dirname(path));
    },
  ],
  ["was emptied", (path) => restoring(path, () => truncateSync(path))],
  ["was shortened", (path) => restoring(path, () => truncateSync(path, statSync(path).size - 10))],
  ["was added to", (path) => restoring(path, () => appendFileSync(path, '{"v":1}\n'))],
];

function restoring(path: string, change: () => void): () => void {
  const content = readFileSync(path);
  change();
  return () => writeFileSync(path, content);
}

test.each(CHANGES)(
  "while the ledger %s, requests are refused, until its content is back",
  async (_, change) => {
    using folder = makeTempFolder();
    const path = folder.join("books/ledger.jsonl");
    mkdirSync(dirname(path));
    const config = makeConfig(openUpstream(), { ledger: { path } });
    const gateway = await startGateway({ config, folder });
    const billed: string[] = [
      (await rawRequest(gateway.port, makeRequest("messages"))).field("x-request-id")!,
    ];
    while (!readFileSync(path, "utf8").includes(billed[0]!)) await Bun.sleep(1);
    // After writing, the gateway looks at the file in the same turn: what is changed in between is taken for its own line.
    await fetch(gateway.url);
    const undo = change(path);
    await askUntil(gateway, 503, (id) => billed.push(id));
    await gateway.noticed("was moved, removed or changed by another program");
    undo();
    await askUntil(gateway, 200, (id) => billed.push(id));
    await gateway.stop();
    expect(readLedger(path).map(({ id }) => String(id))).toEqual(billed);
    expect(findFaults(path)).toEqual([]);
  },
);

test("a ledger that cannot be opened stops the start with a clear message", async () => {
  using folder = makeTempFolder();
  mkdirSync(folder.join("ledger.jsonl"));
  const started = startGateway({ config: makeConfig(openUpstream()), folder });
  const said = await started.then(() => "it started", String);
  expect(said).toContain(`the ledger ${folder.join("ledger.jsonl")} cannot be opened`);
  expect(said).not.toContain("    at ");
});

function findFaults(path: string): Finding[] {
  const findings: Finding[] = [];
  verifyLedger(path, { partial: false, running: false }, (finding) => void findings.push(finding));
  return findings;
}
