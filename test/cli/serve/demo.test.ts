import { chmodSync, readdirSync, writeFileSync } from "node:fs";
import { expect, test } from "bun:test";
import { writeCurlLines } from "../../../src/cli/serve/demo.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";
import { ENTRY, run } from "../driving.ts";

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

test("a demo that cannot listen ends with an error", async () => {
  using folder = makeTempFolder();
  using taken = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const words = ["serve", "--demo", "--port", String(taken.port)];
  const { status, stderr } = await run({ folder: folder.path }, ...words);
  expect(status).toBe(1);
  expect(stderr).toContain(`port ${taken.port} is in use`);
});

/** Its stderr, and what it has left in the temporary folder. */
async function runDemo(folder: TempFolder, use: (output: string) => Promise<void>) {
  const child = Bun.spawn([process.execPath, ENTRY, "serve", "--demo", "--port", "0"], {
    cwd: folder.path,
    env: { PATH: process.env["PATH"] ?? "", HOME: folder.path, TMPDIR: folder.path },
    stdin: "ignore",
    stderr: "pipe",
  });
  let output = "";
  const decoder = new TextDecoder();
  for await (const bytes of child.stdout) {
    output += decoder.decode(bytes, { stream: true });
    if (output.includes("gateway top")) break;
  }
  await use(output);
  child.kill("SIGTERM");
  const stderr = await child.stderr.text();
  expect(await child.exited).toBe(0);
  return { stderr, left: readdirSync(folder.path).filter((name) => name.startsWith("gateway-demo-")) };
}

test("a demo that was not used or could not start leaves nothing behind", async () => {
  using folder = makeTempFolder();
  expect((await runDemo(folder, async () => {})).left).toEqual([]);
  using taken = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const env = { TMPDIR: folder.path };
  await run({ folder: folder.path, env }, "serve", "--demo", "--port", String(taken.port));
  expect(readdirSync(folder.path).filter((name) => name.startsWith("gateway-demo-"))).toEqual([]);
});

test("a demo that was used says where its ledger is", async () => {
  using folder = makeTempFolder();
  const { stderr, left } = await runDemo(folder, async (output) => {
    const [, base] = /ready on (\S+)/.exec(output) ?? [];
    const [, key = ""] = /messages group: (\S+)/.exec(output) ?? [];
    const body = JSON.stringify({ model: "claude-haiku-4-5", max_tokens: 8, messages: [] });
    const answer = await fetch(`${base}/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": key },
      body,
    });
    await answer.text();
  });
  const ledger = folder.join(left.join(), "ledger.jsonl");
  expect(stderr).toEndWith(`show the charges: gateway usage --ledger ${ledger}\n`);
  const { stdout } = await run({ folder: folder.path }, "usage", "--csv", "--ledger", ledger);
  expect(stdout.trimEnd().split("\n")).toHaveLength(2);
});

test("--host accepts an address in the form of URLs, and refuses anything else", async () => {
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
    expect(stderr).toContain("A host is a name or an address without scheme and port.");
  }
});
