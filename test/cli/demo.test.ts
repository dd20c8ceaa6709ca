import { chmodSync, writeFileSync } from "node:fs";
import { expect, test } from "bun:test";
import { writeCurlLines } from "../../src/cli/demo.ts";
import { makeTempFolder } from "../harness/temp.ts";
import { run } from "./driving.ts";

const SECRETS = { messages: "sk-m", responses: "sk-r", content: "sk-c", relay: "sk-l" };
const LINES = writeCurlLines("http://127.0.0.1:4141", SECRETS, "relay");

for (const shell of ["sh", "bash", "zsh", "fish"]) {
  test.skipIf(Bun.which(shell) === null)(`each curl line of the demo can be pasted into ${shell}`, () => {
    using folder = makeTempFolder();
    writeFileSync(folder.join("curl"), '#!/bin/sh\nprintf "%s\\n" "$@"\n');
    chmodSync(folder.join("curl"), 0o755);
    const env = { PATH: `${folder.path}:${process.env["PATH"] ?? ""}`, HOME: folder.path };
    for (const line of LINES) {
      const { stdout, stderr } = Bun.spawnSync([shell, "-c", line], { env });
      expect(stderr.toString()).toBe("");
      expect(stdout.toString()).toMatch(/^http:\/\/127\.0\.0\.1:4141\/\S+$/m);
    }
  });
}

test("a demo that cannot listen ends with a sentence", async () => {
  using folder = makeTempFolder();
  using taken = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const words = ["serve", "--demo", "--port", String(taken.port)];
  const { status, stderr } = await run({ folder: folder.path }, ...words);
  expect(status).toBe(1);
  expect(stderr).toContain(`port ${taken.port} is in use`);
});

test("an address to listen on is taken as URLs write it, and refused when it is none", async () => {
  using folder = makeTempFolder();
  using taken = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const ask = (host: string) =>
    run({ folder: folder.path }, "serve", "--demo", "--port", String(taken.port), "--host", host);
  expect((await ask("[127.0.0.1]")).stderr).toContain(
    `cannot listen on 127.0.0.1: port ${taken.port} is in use`,
  );
  for (const none of ["", "http://localhost", "localhost:80"]) {
    const { status, stderr } = await ask(none);
    expect([none, status]).toEqual([none, 2]);
    expect(stderr).toContain("A host is a name or an address, without scheme and port.");
  }
});
