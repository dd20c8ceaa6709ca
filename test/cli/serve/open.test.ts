// `gateway open`: which gateway it asks for a link.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { type ChildGateway, makeConfig, startGateway } from "../../harness/gateway.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";
import { type Outcome, run } from "../driving.ts";

let elsewhere: TempFolder;
let gateway: ChildGateway;
let other: ChildGateway;
beforeAll(async () => {
  elsewhere = makeTempFolder();
  const config = makeConfig({ url: "http://127.0.0.1:9" });
  [gateway, other] = await Promise.all([startGateway({ config }), startGateway({ config })]);
});
afterAll(async () => {
  await Promise.all([gateway.stop(), other.stop()]);
  elsewhere.remove();
});

/** In a folder that has no gateway. */
const open = (...flags: string[]): Promise<Outcome> =>
  run({ folder: elsewhere.path }, "open", "--print", ...flags);
const linkOf = ({ url }: ChildGateway) =>
  expect.stringMatching(new RegExp(String.raw`^${RegExp.escape(url)}/console#code=[\w-]{20,}\n$`));

describe("--url", () => {
  test.each([
    ["", ""],
    ["/console/keys?x=1", ""],
    ["", "localhost"],
  ])("finds the gateway of an address with %p behind it and the host %p", async (path, host) => {
    for (const each of [gateway, other]) {
      const url = host === "" ? each.url : each.url.replace("127.0.0.1", host);
      expect(await open("--url", url + path)).toEqual({ status: 0, stdout: linkOf(each), stderr: "" });
    }
  });

  test("names those that run where none runs", async () => {
    const { status, stderr } = await open("--url", "http://127.0.0.1:9");
    expect(status).toBe(1);
    expect(stderr).toContain("No gateway of this user runs at http://127.0.0.1:9. These run:");
    for (const { url } of [gateway, other]) expect(stderr).toContain(`gateway open --url ${url}\n`);
  });

  test.each([
    [["--url", "localhost"], "--url: expected a URL"],
    [["--url", "http://127.0.0.1:9", "--ledger", "x"], "--url names the gateway already"],
    [["--url", "http://127.0.0.1:9", "--config", "x"], "--url names the gateway already"],
  ])("%p is refused", async (flags, why) => {
    const { status, stderr } = await open(...flags);
    expect([status, stderr]).toEqual([2, expect.stringContaining(why)]);
  });
});

describe("without flags", () => {
  test("the gateway of the config counts, also where others run", async () => {
    for (const { folder } of [gateway, other]) {
      const { stdout } = await run({ folder: folder.path }, "open", "--print");
      expect(stdout).toEqual(linkOf(folder === gateway.folder ? gateway : other));
    }
  });

  test("open says how to name one of several other gateways", async () => {
    const { status, stderr } = await open();
    expect(status).not.toBe(0);
    for (const { url } of [gateway, other]) expect(stderr).toContain(`gateway open --url ${url}\n`);
  });

  test("open says how to name one, also with a config whose gateway does not run", async () => {
    writeFileSync(elsewhere.join("gateway.yaml"), JSON.stringify(makeConfig({ url: "http://127.0.0.1:9" })));
    const { status, stderr } = await open();
    expect([status, stderr]).toEqual([1, expect.stringContaining("No gateway is running for this config.")]);
    expect(stderr).toContain(`gateway open --url ${other.url}\n`);
  });
});

test("a config that is named is not replaced by another one", async () => {
  const path = elsewhere.join("named.yaml");
  writeFileSync(
    path,
    JSON.stringify({ ...makeConfig({ url: "http://127.0.0.1:9" }), ledger: { path: "l" } }),
  );
  const { status, stderr } = await open("--config", path);
  expect([status, stderr]).toEqual([1, expect.not.stringContaining("--url")]);
});
