import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { loadConfig } from "../../../src/config/file.ts";
import { sha256Hex } from "../../../src/lib/secret.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";
import { KEYS, run, runOnTerminal } from "../driving.ts";

let folder: TempFolder;
beforeEach(() => {
  folder = makeTempFolder();
});
afterEach(() => folder.remove());
const path = () => folder.join("gateway.yaml");

describe("gateway init", () => {
  test("sets up what the environment has credentials for, by reference", async () => {
    const env = { ANTHROPIC_API_KEY: "sk-ant-hush", GEMINI_API_KEY: "AIza-hush" };
    const { status, stdout, stderr } = await run({ folder: folder.path, env }, "init");
    expect(status).toBe(0);
    const secrets = stdout
      .trim()
      .split("\n")
      .map((line) => line.split(/ +/));
    expect(secrets.map(([name]) => name)).toEqual(["claude", "gemini"]);
    const { catalog } = loadConfig(path(), env);
    for (const [name = "", secret = ""] of secrets) {
      expect(catalog.keysBySha256.get(sha256Hex(secret))).toMatchObject({ name, group: { name } });
      expect(stderr).not.toContain(secret);
    }
    expect(catalog.channels.get("anthropic-main")).toMatchObject({
      platform: "messages",
      credential: "sk-ant-hush",
    });
    expect(catalog.channels.get("google-main")).toMatchObject({
      platform: "content",
      credential: "AIza-hush",
    });
    expect(readFileSync(path(), "utf8")).not.toContain("hush");
    expect(readFileSync(path(), "utf8")).toContain("  # openai-main:\n");
    expect(statSync(path()).mode & 0o777).toBe(0o600);
    expect(stderr).toContain("gateway serve");
  });

  test("--json prints the keys as one document", async () => {
    const { stdout } = await run({ folder: folder.path, env: { OPENAI_API_KEY: "x" } }, "init", "--json");
    expect(JSON.parse(stdout)).toEqual({
      config: path(),
      keys: [{ name: "codex", group: "codex", platform: "responses", secret: expect.stringMatching(/^sk-/) }],
    });
  });

  test("without any credential writes a file to fill in, with which the gateway starts", async () => {
    const { status, stdout, stderr } = await run({ folder: folder.path }, "init");
    expect([status, stdout]).toEqual([0, ""]);
    expect(stderr).toContain("none of ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY is set");
    expect(loadConfig(path(), {}).catalog.groups.size).toBe(0);
    const filledIn = readFileSync(path(), "utf8").replaceAll(/^ {2}# /gm, "  ");
    writeFileSync(path(), filledIn);
    const { catalog } = loadConfig(path(), {}, { missing: "keep" });
    expect([...catalog.groups.keys()]).toEqual(["claude", "codex", "gemini", "relay"]);
  });

  test("never overwrites", async () => {
    writeFileSync(path(), "# mine\n");
    const { status, stderr } = await run({ folder: folder.path, env: { OPENAI_API_KEY: "x" } }, "init");
    expect([status, readFileSync(path(), "utf8")]).toEqual([1, "# mine\n"]);
    expect(stderr).toContain("exists already and stays as it is");
  });

  test.skipIf(process.platform === "win32")("leaves no partial file on a full disk", async () => {
    const none = 'trap "" XFSZ; ulimit -f 0; exec "$@"';
    const words = [process.execPath, `${import.meta.dir}/../../../src/main.ts`, "init"];
    const child = Bun.spawn(["sh", "-c", none, "sh", ...words], {
      cwd: folder.path,
      env: { PATH: process.env["PATH"] ?? "", GATEWAY_CONFIG: path(), OPENAI_API_KEY: "x" },
      stdout: "ignore",
      stderr: "pipe",
    });
    expect(await child.stderr.text()).toContain("gateway.yaml cannot be written: ");
    expect([await child.exited, existsSync(path())]).toEqual([1, false]);
  });

  test("prints next steps that work as printed", async () => {
    const place = folder.join("my own.yaml");
    const env = { OPENAI_API_KEY: "x" };
    const { stdout, stderr } = await run({ folder: folder.path, env }, "init", "--config", place);
    const secret = /sk-\S+/.exec(stdout)?.[0] ?? "";
    const told = stderr.split("\n").filter((line) => line.startsWith("  gateway "));
    expect(told).toHaveLength(3);
    const [served, used, added] = told.map((line) => line.replace("SECRET", secret).split(/ {2,}/)[1] ?? "");
    expect(served).toBe(`gateway serve --config '${place}'`);
    expect(added).toBe(`gateway keys add --config '${place}'`);
    const script = `gateway() { "$RUN" "$MAIN" "$@"; }; ${used}`;
    const main = `${import.meta.dir}/../../../src/main.ts`;
    const shell = Bun.spawnSync(["sh", "-c", script], {
      cwd: folder.path,
      env: { PATH: process.env["PATH"] ?? "", RUN: process.execPath, MAIN: main },
    });
    expect(shell.stdout.toString()).toContain(`'${secret}'`);
  });

  test("writes to the user's configuration folder, which nobody else can read", async () => {
    const env = { GATEWAY_CONFIG: "", HOME: folder.path, OPENAI_API_KEY: "x" };
    const { status, stderr } = await run({ folder: folder.path, env }, "init");
    expect(status).toBe(0);
    const place = folder.join(".config", "gateway", "gateway.yaml");
    expect(stderr).toContain(`Wrote ${place}.`);
    expect(stderr).toMatch(/^ {2}gateway serve {3,}run it$/m);
    expect(statSync(folder.join(".config", "gateway")).mode & 0o777).toBe(0o700);
    expect(loadConfig(place, env).catalog.ledger.path).toBe(
      folder.join(".config", "gateway", "ledger.jsonl"),
    );
    expect(existsSync(path())).toBe(false);
  });

  test("--config and GATEWAY_CONFIG choose the place, and missing folders are created", async () => {
    const place = folder.join("new", "folder", "g.yaml");
    expect((await run({ folder: folder.path }, "init", "--config", place)).status).toBe(0);
    expect(existsSync(place)).toBe(true);
    const other = folder.join("other.yaml");
    await run({ folder: folder.path, env: { GATEWAY_CONFIG: other } }, "init");
    expect([existsSync(other), existsSync(path())]).toEqual([true, false]);
  });
});

describe("gateway init on a terminal", () => {
  test("asks for the platforms and for missing credentials", async () => {
    const screen = runOnTerminal({ folder: folder.path, env: { ANTHROPIC_API_KEY: "x" } }, "init");
    await screen.shows("Which platforms do you use?");
    await screen.shows("ANTHROPIC_API_KEY is set");
    screen.press(KEYS.down);
    await screen.shows("OpenAI");
    screen.press(KEYS.space);
    await screen.shows("◼ OpenAI");
    screen.press(KEYS.enter);
    await screen.shows("where is the credential?");
    screen.press(KEYS.enter);
    await screen.shows("The credential");
    screen.press(`sk-pasted${KEYS.enter}`);
    expect(await screen.status).toBe(0);
    expect(screen.raw()).not.toContain("sk-pasted");
    const { catalog } = loadConfig(path(), { ANTHROPIC_API_KEY: "x" });
    expect([...catalog.channels.values()].map(({ credential }) => credential)).toEqual(["x", "sk-pasted"]);
    expect([...catalog.keys.keys()]).toEqual(["claude", "codex"]);
  });

  test("--yes asks nothing", async () => {
    const screen = runOnTerminal({ folder: folder.path, env: { OPENAI_API_KEY: "x" } }, "init", "--yes");
    expect(await screen.status).toBe(0);
    expect([...loadConfig(path(), {}, { missing: "keep" }).catalog.keys.keys()]).toEqual(["codex"]);
  });

  test("Ctrl-C leaves nothing behind", async () => {
    const screen = runOnTerminal({ folder: folder.path }, "init");
    await screen.shows("Which platforms do you use?");
    screen.press(KEYS.interrupt);
    expect(await screen.status).toBe(130);
    expect(existsSync(path())).toBe(false);
  });
});
