// The executable as a new user meets it: version, help, a demo that answers on
// every platform, a config that init writes, a clean stop. Run: node .ci/smoke.mjs dist/gateway
// After the path, a program that runs it: node .ci/smoke.mjs dist/gateway.exe wine

import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const gateway = resolve(process.argv[2] ?? "dist/gateway");
/** The executable runs by itself, or under `wine` or an emulator, whose words come before it. */
const [program, ...before] = [...process.argv.slice(3), gateway];
const isWindows = gateway.endsWith(".exe");
const folder = mkdtempSync(join(tmpdir(), "gateway-smoke-"));
// Nobody listens at the proxy: `init` notes that it cannot check the credential, and no request leaves the machine.
const env = {
  PATH: process.env.PATH,
  HOME: folder,
  ANTHROPIC_API_KEY: "not-a-real-credential",
  HTTPS_PROXY: "http://127.0.0.1:9",
};
for (const name of [
  "WINEPREFIX",
  "WINEDEBUG",
  "SYSTEMROOT",
  "TEMP",
  "LOCALAPPDATA",
  "USERPROFILE",
  "COMSPEC",
])
  if (process.env[name] !== undefined) env[name] = process.env[name];
// Wine gives its programs a home of their own.
if (isWindows && process.platform !== "win32") env.XDG_CONFIG_HOME = `Z:${folder}/.config`;
/** Turns a path that the executable prints into the path on this machine. Under Wine they differ. */
const local = (path) => {
  if (process.platform === "win32") return path;
  const drive = join(process.env.WINEPREFIX ?? join(process.env.HOME ?? "", ".wine"), "drive_c");
  return path.replaceAll("\\", "/").replace(/^Z:/, "").replace(/^C:/, drive);
};

/** Kills a process that has used no processor time for two minutes, because it hangs. A slow one may take longer. */
function watch(child) {
  let [used, since] = [null, Date.now()];
  const timer = setInterval(() => {
    const now = readUse(child.pid);
    if (now !== used) [used, since] = [now, Date.now()];
    else if (Date.now() - since > 120_000) child.kill("SIGKILL");
  }, 1_000);
  const stop = () => clearInterval(timer);
  child.once("exit", stop);
  return stop;
}

/** Returns the processor time that a process has used, or null if the system has no file that says it. */
function readUse(pid) {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ").slice(11, 13).join();
  } catch {
    return null;
  }
}

/** Runs a command to its end. */
async function finish(args, cwd = folder) {
  const child = spawn(program, [...before, ...args], { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  watch(child);
  const [stdout, stderr, status] = await Promise.all([
    child.stdout.toArray(),
    child.stderr.toArray(),
    new Promise((done) => child.once("exit", done)),
  ]);
  return { stdout: stdout.join(""), stderr: stderr.join(""), status };
}

async function run(...args) {
  const { stdout, stderr, status } = await finish(args);
  if (status !== 0) throw new Error(`smoke test: ${args.join(" ")} ended with ${status}: ${stderr}`);
  return stdout;
}

let passed = 0;

function check(what, holds, seen) {
  if (!holds) throw new Error(`smoke test: ${what} does not hold: ${seen}`);
  passed += 1;
  console.log(`ok: ${what}`);
}

/** Starts the gateway and resolves with its output once it is ready. */
function start(...args) {
  const child = spawn(program, [...before, "serve", "--port", "0", ...args], { cwd: folder, env });
  // A check that fails ends this program: no gateway stays behind.
  process.on("exit", () => child.kill("SIGKILL"));
  const ended = new Promise((done) => child.once("exit", (code) => done(code)));
  return new Promise((ready, failed) => {
    let output = "";
    const stopWatching = watch(child);
    const see = (chunk) => {
      output += chunk;
      const base = /ready on (http:\/\/\S+)/.exec(output)?.[1];
      const whole = args.includes("--demo") ? output.includes("/relay/models") : true;
      if (base === undefined || !whole) return;
      stopWatching();
      ready({ base, output, stop: () => (child.kill("SIGTERM"), ended) });
    };
    child.stdout.on("data", see);
    child.stderr.on("data", see);
    ended.then((code) => failed(new Error(`ended with ${code}: ${output}`)));
  });
}

async function post(base, path, headers, body) {
  const answer = await fetch(base + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  return { status: answer.status, text: await answer.text() };
}

/** What the key has been charged so far, in USD. */
async function readCharge(base, headers) {
  const text = await (await fetch(`${base}/metrics`, { headers })).text();
  const rows = [...text.matchAll(/^gateway_charge_usd_total\{.*\} (\S+)$/gm)];
  return rows.reduce((sum, [, amount]) => sum + Number(amount), 0);
}

/** Asks again, because the gateway counts a charge a moment after the answer. */
async function waitForCharge(base, headers, before) {
  for (let round = 0; round < 100; round += 1) {
    const charge = await readCharge(base, headers);
    if (charge > before) return charge;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return before;
}

const version = await run("--version");
check("--version", /^\d+\.\d+\.\d+/.test(version), version);
const help = await run("--help");
check("--help", help.includes("serve"), help);

const demo = await start("--demo");
const key = (platform) => new RegExp(`key of the ${platform} group: (\\S+)`).exec(demo.output)?.[1];
const hello = [{ role: "user", content: "Hello" }];
const message = { model: "claude-haiku-4-5", max_tokens: 64, messages: hello };
const contents = { contents: [{ role: "user", parts: [{ text: "Hello" }] }] };
const calls = [
  ["/v1/messages", { "x-api-key": key("messages") }, message],
  ["/v1/responses", { authorization: `Bearer ${key("responses")}` }, { model: "gpt-5.4", input: "Hello" }],
  [
    "/v1/chat/completions",
    { authorization: `Bearer ${key("responses")}` },
    { model: "gpt-5.4", messages: hello },
  ],
  ["/v1beta/models/gemini-2.5-pro:generateContent", { "x-goog-api-key": key("content") }, contents],
  ["/relay/v1/messages", { "x-api-key": key("relay") }, message],
];
for (const [path, headers, body] of calls) {
  const before = await readCharge(demo.base, headers);
  const { status, text } = await post(demo.base, path, headers, body);
  check(`${path} answers`, status === 200, `${status} ${text}`);
  const charge = await waitForCharge(demo.base, headers, before);
  check(`${path} is charged`, charge > before, charge);
}
const refused = await post(demo.base, "/v1/messages", { "x-api-key": "sk-wrong" }, message);
check(
  "a wrong key is refused",
  refused.status === 401 && refused.text.includes("authentication_error"),
  refused.text,
);
const ledger = /ledger: (\S+)/.exec(demo.output)?.[1] ?? "";
// Windows has no signal that asks a program to end: the demo is killed, and the ledger has to be whole all the same.
const ended = await demo.stop();
check("the demo stops cleanly", isWindows || ended === 0, `exit status ${ended}`);
check("five ledger lines", readFileSync(local(ledger), "utf8").trim().split("\n").length === 5, ledger);
await run("ledger", "verify", "--ledger", ledger);

// A folder that came from elsewhere: nothing in it is read, and no code in it is run.
const cloned = join(folder, "cloned");
mkdirSync(cloned);
writeFileSync(join(cloned, "gateway.yaml"), "vendor: stranger\n", { mode: 0o600 });
writeFileSync(join(cloned, ".env"), "GATEWAY_CONFIG=gateway.yaml\n");
writeFileSync(join(cloned, "bunfig.toml"), 'preload = ["./preload.ts"]\n');
writeFileSync(join(cloned, "preload.ts"), 'require("node:fs").writeFileSync("was-run", "");\n');
const list = await finish(["keys", "list"], cloned);
check(
  "a stranger's gateway.yaml is not read",
  list.status === 2 && list.stderr.includes("--config gateway.yaml"),
  list.stderr,
);
check("a stranger's bunfig.toml runs nothing", !existsSync(join(cloned, "was-run")), "was-run");

await run("init", "--yes");
const written = join(folder, ".config", "gateway", "gateway.yaml");
check("init writes the user's config", existsSync(written), written);
const [group] = JSON.parse(await run("groups", "list", "--json"));
const secret = (await run("keys", "add", "--name", "smoke", "--group", group.name)).trim();
check("keys add prints the secret alone", /^sk-\S+$/.test(secret), secret);
const own = await start();
check("serve runs on what init wrote", (await fetch(`${own.base}/healthz`)).status === 200, own.output);
check("a command reaches it", JSON.parse(await run("channels", "--json")).length > 0, "gateway channels");
const status = await own.stop();
check("it stops cleanly", isWindows || status === 0, `exit status ${status}`);
rmSync(folder, { recursive: true, force: true });
console.log(`smoke: ${passed} passed, 0 failed`);
