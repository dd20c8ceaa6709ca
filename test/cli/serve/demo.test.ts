import { chmodSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { expect, test } from "bun:test";
import { writeCurlLines, writeFirstRequest } from "../../../src/cli/serve/demo.ts";
import { quoteWord } from "../../../src/lib/text/shell-word.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";
import { run } from "../driving.ts";
import { watch } from "../../harness/terminal/watching.ts";
import { MAIN, PROGRAM } from "../../harness/program.ts";

const SECRETS = { messages: "sk-m", responses: "sk-r", content: "sk-c", relay: "sk-l", chat: "sk-h" };
const LINES = [
  ...writeCurlLines("http://127.0.0.1:4141", SECRETS, "relay"),
  writeFirstRequest("http://127.0.0.1:4141", SECRETS.messages).join("\n"),
];

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

test.skipIf(Bun.which("curl") === null).each([
  [80, "The demo is ready. Its models are simulated. Ctrl-C stops it."],
  [60, "The demo is ready. Its models are simulated."],
])(
  "the first screen of the demo fits %p × 24, in colour, and its hints work as they are",
  async (columns, first) => {
    using folder = makeTempFolder();
    symlinkSync(process.execPath, folder.join("bun"));
    symlinkSync(MAIN, folder.join("gateway"));
    const env = { PATH: `${folder.path}:/usr/bin:/bin`, HOME: folder.path, TMPDIR: tmpdir() };
    const demo = watch({ folder: folder.path, env, columns, rows: 24 }, "serve", "--demo", "--port", "0");
    try {
      await demo.until(/^TIME |STATUS/m);
      const rows = demo.screen.rows();
      expect(demo.screen.history()).toHaveLength(24);
      expect(rows[0]).toBe(first);
      expect(demo.screen.hasColour).toBe(true);
      const text = rows.join("\n");
      const [, base = ""] = /address +(http:\S+)$/m.exec(text) ?? [];
      expect(text).toMatch(/^( +page +)?http:\/\/127\.0\.0\.1:\d+\/console#code=[\w-]{22}( \(for 60 s\))?$/m);
      // In a narrow terminal it wraps.
      expect(text.replaceAll("\n", "")).toMatch(/later:? +\S+gateway open/);
      const [, request = ""] = /terminal:\n(curl [^]*?)\n\n?Let a tool/.exec(text) ?? [];
      const answer = Bun.spawnSync(["sh", "-c", request]).stdout.toString();
      expect(answer).toContain("event: message_stop");
      const [, top = ""] = /live:\n([^]*?)\n\n?\w+ /.exec(text) ?? [];
      // A terminal copies a long line that it has wrapped as one line.
      const line = top.replaceAll(/\n(?=\S)/g, "");
      const { stdout } = Bun.spawnSync(["sh", "-c", line], { cwd: folder.path, env });
      expect(stdout.toString()).toContain(`gateway on ${base.slice("http://".length)}`);
    } finally {
      demo.signal("SIGTERM");
      await demo.status;
    }
  },
);

test("the demo with --curl shows every key and endpoint on a terminal too", async () => {
  using folder = makeTempFolder();
  const words = ["serve", "--demo", "--port", "0", "--curl"];
  const demo = watch({ folder: folder.path, env: { TMPDIR: folder.path }, columns: 200, rows: 50 }, ...words);
  try {
    await demo.until(/^TIME |STATUS/m);
    const text = demo.screen.history().join("\n");
    expect(text.match(/^key of the \w+ group: sk-/gm)).toHaveLength(5);
    expect(text.match(/^curl /gm)).toHaveLength(9);
  } finally {
    demo.signal("SIGTERM");
    await demo.status;
  }
});

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
  const child = Bun.spawn([...PROGRAM, "serve", "--demo", "--port", "0"], {
    cwd: folder.path,
    env: { PATH: process.env["PATH"] ?? "", HOME: folder.path, TMPDIR: folder.path },
    stdin: "ignore",
    stderr: "pipe",
  });
  let output = "";
  const decoder = new TextDecoder();
  for await (const bytes of child.stdout) {
    output += decoder.decode(bytes, { stream: true });
    if (output.includes("watch it live")) break;
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

test("the line that connects a tool connects it, without a config", async () => {
  using folder = makeTempFolder();
  writeFileSync(folder.join("claude"), '#!/bin/sh\necho "$ANTHROPIC_BASE_URL $ANTHROPIC_AUTH_TOKEN $*"\n', {
    mode: 0o755,
  });
  await runDemo(folder, async (output) => {
    const [, base = ""] = /ready on (\S+)/.exec(output) ?? [];
    const [, secret = "", words = ""] = /connect a tool: GATEWAY_KEY=(\S+) .* (run .*)/.exec(output) ?? [];
    const env = { PATH: `${folder.path}:${process.env["PATH"]}`, GATEWAY_CONFIG: "", GATEWAY_KEY: secret };
    const { stdout } = await run({ folder: folder.path, env }, ...words.split(" "));
    expect(stdout).toBe(`${base} ${secret} \n`);
  });
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
  expect(stderr).toMatch(/^show the charges: .*\busage --ledger /m);
  expect(stderr).toEndWith(` usage --ledger ${quoteWord(ledger)}\n`);
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
