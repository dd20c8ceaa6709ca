// The folder of a recording: what is stored once, what a kill leaves, and whose folder it may be.

import { expect, test } from "bun:test";
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { cutPieces } from "../../../../src/recording/pieces.ts";
import {
  type FinishedExchange,
  listRecordings,
  openRecording,
  type Recording,
  RecordingWriter,
  removeOld,
  removeRecording,
} from "../../../../src/recording/store.ts";
import { makeTempFolder } from "../../../harness/temp.ts";

const GIB = 2 ** 30;

function exchange(id: string, request: string, response = "{}"): FinishedExchange {
  return {
    line: {
      v: 1,
      id,
      time: "2026-11-23T10:00:00.000Z",
      key: "laptop",
      request: { method: "POST", target: "/v1/messages", fields: [["content-type", "application/json"]] },
      response: { status: 200, fields: [], chunks: [[3, response.length]], end: "whole" },
      duration_ms: 4,
      line: null,
    },
    request: Buffer.from(request),
    response: Buffer.from(response),
  };
}

function read(root: string, name = "run"): Recording {
  const recording = openRecording(join(root, name));
  if (recording === null) throw new Error("there is no recording");
  return recording;
}

/** A conversation of so many turns, as an agent sends it. */
function converse(turns: number): string {
  const messages = Array.from({ length: turns }, (_, turn) => ({
    role: turn % 2 === 0 ? "user" : "assistant",
    content: `${turn} ${"words ".repeat(1000)}`,
  }));
  return JSON.stringify({
    model: "m",
    tools: [{ name: "t", description: "x".repeat(9000) }],
    messages,
    stream: true,
  });
}

function listFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((entry) =>
    entry.isFile() ? [join(entry.parentPath, entry.name)] : [],
  );
}

test.each([
  ["a conversation", converse(5)],
  [
    "white space, a byte order mark and odd members",
    `\uFEFF { "a" : [ 1 , [2] ] , "b":"]",  "messages" :[ ] }\n`,
  ],
  ["a cut body", converse(5).slice(0, 9000)],
  ["no JSON", "event: x\ndata: {}\n\n"],
  ["nothing", ""],
])("joined, the pieces of a body are the body: %s", (_, text) => {
  expect(Buffer.concat(cutPieces(Buffer.from(text))).toString()).toBe(text);
});

test("a message that is sent a hundred times is stored once", () => {
  using folder = makeTempFolder();
  const writer = new RecordingWriter(folder.path, "run", GIB);
  let sent = 0;
  for (let turn = 1; turn <= 100; turn += 1) {
    const body = converse(turn);
    sent += body.length;
    writer.write(exchange(`req_${turn}`, body));
  }
  const bodies = listFiles(folder.join("run/bodies"));
  const stored = bodies.reduce((sum, path) => sum + statSync(path).size, 0);
  expect(stored).toBeLessThan(converse(100).length * 1.1);
  expect(sent).toBeGreaterThan(stored * 40);
  const { exchanges, readBody } = read(folder.path);
  expect(exchanges.length).toBe(100);
  expect(readBody(exchanges[99]?.request.body ?? []).toString()).toBe(converse(100));
});

test("a recording stops before it is larger than its limit, also by what others wrote, and what is in it stays whole", () => {
  using folder = makeTempFolder();
  new RecordingWriter(folder.path, "run", GIB).write(exchange("req_1", converse(1)));
  const writer = new RecordingWriter(folder.path, "run", 20_000);
  expect(() => writer.write(exchange("req_2", converse(9)))).toThrow("larger than 20000 bytes");
  expect(read(folder.path).exchanges.map(({ id }) => id)).toEqual(["req_1"]);
});

test("what a kill leaves of a line is no exchange, and the next line is whole", () => {
  using folder = makeTempFolder();
  const writer = new RecordingWriter(folder.path, "run", GIB);
  writer.write(exchange("req_1", "{}"));
  appendFileSync(folder.join("run/exchanges.jsonl"), '\n{"v":1,"id":"req_cut","ti');
  writer.write(exchange("req_2", "{}"));
  const { exchanges, damaged } = read(folder.path);
  expect([exchanges.map(({ id }) => id), damaged]).toEqual([["req_1", "req_2"], 1]);
});

test("what a kill leaves of a body is written again", () => {
  using folder = makeTempFolder();
  const writer = new RecordingWriter(folder.path, "run", GIB);
  writer.write(exchange("req_1", converse(1)));
  const [first = ""] = listFiles(folder.join("run/bodies"));
  writeFileSync(first, readFileSync(first).subarray(1));
  writer.write(exchange("req_2", converse(1)));
  const { exchanges, readBody } = read(folder.path);
  for (const { request, response } of exchanges)
    expect([readBody(request.body).toString(), readBody(response.body).toString()]).toEqual([
      converse(1),
      "{}",
    ]);
});

test("a body that was changed is refused", () => {
  using folder = makeTempFolder();
  new RecordingWriter(folder.path, "run", GIB).write(exchange("req_1", "{}", '{"say":"yes"}'));
  for (const path of listFiles(folder.join("run/bodies")))
    writeFileSync(path, readFileSync(path, "utf8").replace("yes", "no!"));
  const { exchanges, readBody } = read(folder.path);
  expect(() => readBody(exchanges[0]?.response.body ?? [])).toThrow("was changed");
});

test.each(["exchanges.jsonl", "a body"])("a recording whose %s is larger than memory is refused", (what) => {
  using folder = makeTempFolder();
  new RecordingWriter(folder.path, "run", GIB).write(exchange("req_1", "{}"));
  const [body = ""] = listFiles(folder.join("run/bodies"));
  truncateSync(what === "a body" ? body : folder.join("run", what), 5 * GIB);
  expect(() =>
    read(folder.path).exchanges.map(({ request }) => read(folder.path).readBody(request.body)),
  ).toThrow("more than a recording may have");
});

test("a line that names a file elsewhere is no exchange", () => {
  using folder = makeTempFolder();
  new RecordingWriter(folder.path, "run", GIB).write(exchange("req_1", "{}"));
  const path = folder.join("run/exchanges.jsonl");
  writeFileSync(
    path,
    readFileSync(path, "utf8").replace(/"body":\["[0-9a-f]{64}"\]/, '"body":["../../../etc/passwd"]'),
  );
  expect(read(folder.path)).toMatchObject({ exchanges: [], damaged: 1 });
});

test("two gateways write into one recording, and one that is removed meanwhile begins anew", () => {
  using folder = makeTempFolder();
  const [one, two] = [
    new RecordingWriter(folder.path, "run", GIB),
    new RecordingWriter(folder.path, "run", GIB),
  ];
  one.write(exchange("req_1", converse(3)));
  two.write(exchange("req_2", converse(3)));
  expect(read(folder.path).exchanges.length).toBe(2);
  expect(removeRecording(folder.path, "run")).toBe(true);
  one.write(exchange("req_3", converse(3)));
  const { exchanges, readBody } = read(folder.path);
  expect(exchanges.map(({ id }) => id)).toEqual(["req_3"]);
  expect(readBody(exchanges[0]?.request.body ?? []).toString()).toBe(converse(3));
});

test("only the user can read what is recorded", () => {
  using folder = makeTempFolder();
  const root = folder.join("recordings");
  new RecordingWriter(root, "run", GIB).write(exchange("req_1", converse(2)));
  const entries = readdirSync(root, { recursive: true, withFileTypes: true });
  const modes = entries.map((entry) => {
    const mode = statSync(join(entry.parentPath, entry.name)).mode & 0o777;
    return [entry.isFile() ? "file" : "folder", mode.toString(8)].join(" ");
  });
  expect([...new Set(modes)].toSorted()).toEqual(["file 600", "folder 700"]);
  expect((statSync(root).mode & 0o777).toString(8)).toBe("700");
});

test.each(["../away", "a/b", "", ".", "a".repeat(65), "a b", "é"])("%j is no name of a recording", (name) => {
  using folder = makeTempFolder();
  expect(() => new RecordingWriter(folder.path, name, GIB)).toThrow("letters, digits");
});

test.each(["", "run", "run/bodies", "run/exchanges.jsonl"])(
  'nothing is written through a link in place of "%s"',
  (place) => {
    using folder = makeTempFolder();
    const [root, target] = [folder.join("recordings"), folder.join("target")];
    if (place.endsWith(".jsonl")) writeFileSync(target, "");
    else mkdirSync(target, { mode: 0o700 });
    if (place !== "") mkdirSync(join(root, place, ".."), { recursive: true, mode: 0o700 });
    symlinkSync(target, join(root, place));
    const writer = new RecordingWriter(root, "run", GIB);
    expect(() => writer.write(exchange("req_1", converse(1)))).toThrow("is a link");
    expect(statSync(target).isFile() ? readFileSync(target, "utf8") : readdirSync(target)).toHaveLength(0);
  },
);

test("a folder that others can write to is neither written nor read: an agent does what a recording says", () => {
  using folder = makeTempFolder();
  new RecordingWriter(folder.path, "run", GIB).write(exchange("req_1", "{}"));
  chmodSync(folder.join("run"), 0o777);
  expect(() => openRecording(folder.join("run"))).toThrow("can be used by others");
  const writer = new RecordingWriter(folder.path, "run", GIB);
  expect(() => writer.write(exchange("req_2", "{}"))).toThrow("can be used by others");
});

test("recordings that were not written to for longer than their age are removed, and no others", () => {
  using folder = makeTempFolder();
  for (const name of ["old", "new"])
    new RecordingWriter(folder.path, name, GIB).write(exchange("req_1", "{}"));
  utimesSync(folder.join("old/exchanges.jsonl"), 1000, 1000);
  expect(removeOld(folder.path, 60_000, 1_050_000)).toEqual([]);
  expect(removeOld(folder.path, 60_000, 1_070_000)).toEqual(["old"]);
  expect(listRecordings(folder.path).map(({ name }) => name)).toEqual(["new"]);
});
