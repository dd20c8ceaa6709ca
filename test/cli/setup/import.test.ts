// Tests the import of other gateways' configs. Some are the examples of docs/coming-from.md, word for word.

import { expect, test } from "bun:test";
import { rmSync, existsSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkConfigText } from "../../../src/config/file/load.ts";
import { sha256Hex } from "../../../src/lib/secret.ts";
import { startGateway } from "../../harness/gateway.ts";
import { expectMode, useFolder } from "../../harness/temp.ts";
import { startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { run, runProcess } from "../driving.ts";

const DOC = readFileSync(join(import.meta.dir, "../../../docs/coming-from.md"), "utf8");
/** The document's examples. For each kind of gateway, they are its config and then ours. */
const BLOCKS = [...DOC.matchAll(/^```(?:yaml|json)\n([\s\S]*?)^```/gm)].map(([, text = ""]) => text);
const KINDS = ["ccr", "litellm"] as const;

const folder = useFolder();
const load = () => folder.catalog();

async function importText(kind: string, text: string, ...flags: string[]) {
  writeFileSync(folder.join("theirs"), text);
  return run({ folder: folder.path }, "import", kind, "theirs", ...flags);
}

test.each(KINDS.map((kind, index) => [kind, index] as const))(
  "the example of docs/coming-from.md for %s is imported as the document shows it",
  async (kind, index) => {
    const [theirs = "", ours = ""] = BLOCKS.slice(index * 2);
    const { status, stdout, stderr } = await importText(kind, theirs);
    expect({ status, stdout, stderr }).toEqual({
      status: 0,
      stdout: "",
      stderr: expect.stringContaining("Wrote "),
    });
    // The document shows a reference in place of the credential, which is in gateway.env.
    const describe = ({ channels, groups, listen }: ReturnType<typeof load>) => ({
      listen,
      channels: [...channels.values()].map((each) => ({ ...each, credential: "" })),
      groups: [...groups.values()].map(({ name, platform, listed }) => [name, platform, listed]),
    });
    const shown = checkConfigText(ours, folder.join("ours.yaml"), {}, { missing: "keep" }).catalog;
    expect(describe(load())).toEqual(describe(shown));
  },
);

test("P40: clients keep their keys, as coming-from.md says", async () => {
  await importText("ccr", BLOCKS[0] ?? "");
  expect(load().keysBySha256.get(sha256Hex("a-secret"))?.name).toBe("ccr");
  const words = /gateway (keys add .*) < secret\.txt/.exec(DOC)?.[1]?.split(" ") ?? [];
  const { status } = await run({ folder: folder.path, stdin: "another-secret\n" }, ...words);
  expect([status, load().keysBySha256.get(sha256Hex("another-secret"))?.name]).toEqual([0, "laptop"]);
});

test("P40: `import` stores each credential in a variable of its own that had no value before", async () => {
  writeFileSync(folder.join("gateway.env"), "GATEWAY_ANTHROPIC_API_KEY=of-the-user\n", { mode: 0o600 });
  const Providers = ["a-b", "a_b", "anthropic-2", "anthropic"].map((name) => {
    const api_base_url = `https://${name.replace("_", ".")}.example/v1/chat/completions`;
    return { name, api_base_url, models: ["m"], ...(name !== "anthropic" && { api_key: `secret-${name}` }) };
  });
  await importText("ccr", JSON.stringify({ Providers }));
  const credentials = [...load().channels.values()].map(({ credential }) => credential);
  expect(credentials).toEqual([
    "secret-a-b",
    "secret-a_b",
    "secret-anthropic-2",
    expect.not.stringMatching(/of/),
  ]);
});

test("`import` writes nothing if a credential has a line break, which would set another variable", async () => {
  const theirs = (BLOCKS[0] ?? "").replace(/"api_key": "[^"]*"/, '"api_key": "sk-abc\\nLD_PRELOAD=/x.so"');
  const { status, stderr } = await importText("ccr", theirs);
  expect(status).toBe(1);
  expect(stderr).toContain("a secret has only visible ASCII characters, without spaces");
  expect(["gateway.yaml", "gateway.env"].map((name) => existsSync(folder.join(name)))).toEqual([
    false,
    false,
  ]);
});

test("P40: a credential goes into gateway.env, which git ignores, and no secret is printed or in the config", async () => {
  Bun.spawnSync(["git", "init", "-q", folder.path]);
  const text = (BLOCKS[0] ?? "").replace(/"api_key": "[^"]*"/, '"api_key": "sk-ant-api03-their-own"');
  const { stdout, stderr } = await importText("ccr", text, "--json");
  const config = readFileSync(folder.join("gateway.yaml"), "utf8");
  for (const shown of [stdout, stderr, config]) expect(shown).not.toMatch(/sk-ant-api03-their-own|a-secret/);
  expect(readFileSync(folder.join("gateway.env"), "utf8")).toContain("=sk-ant-api03-their-own\n");
  for (const name of ["gateway.yaml", "gateway.env"]) expectMode(folder.join(name), 0o600);
  expect(readFileSync(folder.join(".gitignore"), "utf8")).toContain("\ngateway.env\n");
});

test("P40: settings without a counterpart are listed, and the rest is imported", async () => {
  const document = {
    Providers: [
      { name: "deepseek", api_base_url: "https://api.deepseek.com/v1", api_key: "$KEY", transformer: {} },
      { name: "other", api_base_url: "https://o.example/api/v4/chat/completions", api_key: "sk-other" },
      { name: "odd", api_base_url: "https://odd.example/inference/chat/completions", api_key: "sk-odd" },
      { name: "own", api_base_url: "https://own.example/v1/messages", api_key: "${OWN}" },
    ],
    Router: { default: "own,best", background: "deepseek,small", think: "own,thinker" },
    PROXY_URL: "http://p.example:1",
    API_TIMEOUT_MS: 600000,
    CUSTOM_ROUTER_PATH: "x.js",
  };
  const { stdout } = await importText("ccr", `// mine\n${JSON.stringify(document)}`, "--json");
  expect(JSON.parse(stdout)).toEqual({
    config: folder.join("gateway.yaml"),
    channels: ["deepseek", "other", "own"],
    groups: ["claude"],
    keys: [],
    no_counterpart: [
      "Providers deepseek: transformer",
      "Providers odd: what it speaks is not known",
      "Router.think",
      "Router.background: it names another provider. Background requests go to Router.default",
      "CUSTOM_ROUTER_PATH",
    ],
  });
  const { channels, groups } = load();
  expect(groups.get("claude")).toMatchObject({ listed: ["own"], convert: false });
  expect(channels.get("other")).toMatchObject({
    platform: "chat",
    baseUrl: new URL("https://o.example/api/v4"),
  });
  expect(channels.get("own")).toMatchObject({
    credential: "${OWN}",
    aliasGlobs: [["claude-*", "best"]],
    timeouts: { firstByteMs: 600_000 },
  });
});

test("`import` makes a chat channel of each server of Chat Completions, in a responses group with convert: true", async () => {
  const params = {
    model: "openai/qwen3-coder",
    api_base: "http://gpu.example:8000/v1",
    api_key: "os.environ/GPU",
  };
  const odd = { ...params, api_base: "http://odd.example/v1", api_key: "os.environ/A B" };
  const models = [params, odd].map((litellm_params) => ({ model_name: "qwen", litellm_params }));
  const { stderr } = await importText("litellm", JSON.stringify({ model_list: models }));
  expect(stderr).toContain("the credential of the channel odd.example");
  expect(load().channels.get("gpu.example")).toMatchObject({
    platform: "chat",
    baseUrl: new URL("http://gpu.example:8000/v1"),
    credential: "${GPU}",
    aliases: new Map([["qwen", "qwen3-coder"]]),
  });
  expect(load().groups.get("gpu.example")).toMatchObject({ platform: "responses", convert: true });
});

test.each([
  ["a config is there", "ccr", BLOCKS[0] ?? "", "already exists"],
  ["the file cannot be parsed", "litellm", "a: [sk-hush", "theirs: it cannot be parsed."],
  ["nothing can be used", "ccr", '{ "LOG": true }', "nothing was written. No counterpart:\n  LOG"],
])("`import` writes nothing if %s", async (what, kind, text, problem) => {
  if (what === "a config is there") writeFileSync(folder.join("gateway.yaml"), "vendor: mine\n");
  const { status, stderr } = await importText(kind, text);
  expect(status).toBeGreaterThan(0);
  expect(stderr).toContain(problem);
  expect(stderr).not.toContain("hush");
  expect(existsSync(folder.join("gateway.yaml"))).toBe(what === "a config is there");
});

const MESSAGE = JSON.stringify({
  model: "claude-sonnet-5",
  max_tokens: 50,
  messages: [{ role: "user", content: "hello" }],
});

test.each(["ccr", "litellm"])(
  "after an import of %s, a prompt for a local server goes to no other server when the local one is off",
  async (kind) => {
    const [local, cloud] = [startDemoUpstream(), startDemoUpstream()];
    const addresses = [local, cloud].map(({ port }) => `http://localhost:${port}/v1`);
    const [here, there] = addresses;
    const documents: Record<string, object> = {
      ccr: {
        APIKEY: "sk-the-clients-own",
        Providers: [
          { name: "ollama", api_base_url: `${here}/chat/completions`, models: ["qwen3-coder"] },
          { name: "cloud", api_base_url: `${there}/chat/completions`, api_key: "sk-cloud" },
        ],
        Router: { default: "ollama,qwen3-coder", think: "cloud,big" },
      },
      litellm: {
        model_list: [
          {
            model_name: "claude-sonnet-5",
            litellm_params: { model: "ollama_chat/qwen3-coder", api_base: here },
          },
          { model_name: "*", litellm_params: { model: "openai/*", api_base: there, api_key: "sk-cloud" } },
        ],
        general_settings: { master_key: "sk-the-clients-own" },
      },
    };
    // Neither tool's config has a credential for the local server.
    expect((await importText(kind, JSON.stringify(documents[kind]))).status).toBe(0);
    const config = `${readFileSync(folder.join("gateway.yaml"), "utf8")}listen: { port: 0 }\n`;
    const gateway = await startGateway({ config, folder });
    const ask = async () => {
      const path = kind === "ccr" ? "/v1/messages" : "/v1/chat/completions";
      const headers = { authorization: "Bearer sk-the-clients-own", "content-type": "application/json" };
      const answer = await fetch(`${gateway.url}${path}`, { method: "POST", headers, body: MESSAGE });
      await answer.text();
      return answer.status;
    };
    expect(await ask()).toBe(200);
    expect(local.requests.map(({ body }) => body.toString())).toEqual([
      expect.stringContaining('"qwen3-coder"'),
    ]);
    local.stop();
    expect(await ask()).toBeGreaterThanOrEqual(500);
    expect(cloud.requests).toEqual([]);
    await gateway.stop();
    cloud.stop();
  },
);

test("in an imported config, only the credential refers to a variable, and `${…}` in other settings is plain text", async () => {
  const upstream = startDemoUpstream();
  const document = {
    APIKEY: "sk-the-clients-own",
    Providers: [
      {
        name: "odd",
        api_base_url: `http://127.0.0.1:${upstream.port}/\${HIDDEN}/v1/chat/completions`,
        api_key: "$NAMED",
        models: ["${HIDDEN}"],
      },
    ],
    Router: { default: "odd,a-${HIDDEN}" },
  };
  await importText("ccr", JSON.stringify(document));
  const config = `${readFileSync(folder.join("gateway.yaml"), "utf8")}listen: { port: 0 }\n`;
  const env = { HIDDEN: "value-of-hidden", NAMED: "value-of-named" };
  const gateway = await startGateway({ config, folder, env });
  const headers = { "x-api-key": "sk-the-clients-own", "content-type": "application/json" };
  await fetch(`${gateway.url}/v1/messages`, { method: "POST", headers, body: MESSAGE });
  const [request] = upstream.requests;
  expect(request?.field("authorization")).toBe("Bearer value-of-named");
  const sent = [request?.target, request?.body.toString()].join("\n");
  expect(sent).not.toContain("value-of-hidden");
  expect(sent).toContain('"a-${HIDDEN}"');
  await gateway.stop();
  upstream.stop();
});

test("`import` shows each channel's address and variable before it suggests doctor, which contacts the upstreams", async () => {
  const document = {
    APIKEY: "$CLIENTS",
    HOST: "0.0.0.0",
    PROXY_URL: "http://user:hush@p.example:1",
    Providers: [
      { name: "ollama", api_base_url: "http://localhost:11434/v1/chat/completions", models: ["qwen"] },
      { name: "other", api_base_url: "https://evil.example/v1/chat/completions", api_key: "$AWS_KEY" },
      { name: "deepseek", api_base_url: "https://api.deepseek.com/v1", api_key: "sk-hush" },
    ],
    Router: { default: "ollama,qwen" },
  };
  const { stderr } = await importText("ccr", JSON.stringify(document));
  const [shown = "", after] = stderr.split("doctor");
  expect(after).toBeDefined();
  expect(shown).not.toContain("hush");
  expect(shown.split("\n").map((line) => line.trim().split(/ {2,}/))).toEqual(
    expect.arrayContaining([
      ["CHANNEL", "SENDS PROMPTS TO", "WITH THE CREDENTIAL", "GROUP"],
      ["ollama", "http://127.0.0.1:11434/v1", "none", "claude"],
      [
        "other",
        "https://evil.example/v1 through http://user:…@p.example:1",
        "AWS_KEY of your environment (not set)",
        "none",
      ],
      [
        "deepseek",
        "https://api.deepseek.com/anthropic through http://user:…@p.example:1",
        "GATEWAY_DEEPSEEK_API_KEY of gateway.env (from the imported config)",
        "none",
      ],
      ['Whoever has the key "ccr" (its secret: CLIENTS of your environment) can use the group claude.'],
      ["It listens on 0.0.0.0: other machines can reach it."],
      ["Channels without a group get no requests. Add groups with:"],
    ]),
  );
  // Each command that import shows works unchanged.
  const commands = [...shown.matchAll(/^ {2}\S.* (groups add .*)$/gm)].map(([, words = ""]) =>
    words.split(" "),
  );
  for (const words of commands) expect((await run({ folder: folder.path }, ...words)).status).toBe(0);
  const groups = [...load().groups.values()].map(({ name, platform, listed }) => [name, platform, ...listed]);
  expect(groups).toEqual([
    ["claude", "messages", "ollama"],
    ["other", "messages", "other"],
    ["deepseek", "messages", "deepseek"],
  ]);
});

test("an imported server on this machine gets no invented credential and no proxy", async () => {
  const deployments = [
    ["ollama_chat/qwen", "http://localhost:11434"],
    ["hosted_vllm/coder", "http://host.docker.internal:9123/v1"],
    ["openai/other", "http://0.0.0.0:9124/v1", "client"],
    ["anthropic/claude-sonnet-5", "https://proxy.example/anthropic/v1/messages"],
  ];
  const model_list = deployments.map(([model, api_base, api_key]) => ({
    model_name: model?.split("/")[1],
    litellm_params: { model, api_base, api_key },
  }));
  await importText("litellm", JSON.stringify({ model_list }));
  const { channels, groups } = load();
  const shown = [...channels.values()].map(({ platform, baseUrl, free, timeouts }) => {
    return [platform, baseUrl.href, free, timeouts.firstByteMs / 60_000];
  });
  // A local model may take half an hour for its first byte.
  expect(shown).toEqual([
    ["chat", "http://127.0.0.1:11434/v1", true, 30],
    ["chat", "http://127.0.0.1:9123/v1", true, 30],
    ["chat", "http://127.0.0.1:9124/v1", false, 5],
    ["messages", "https://proxy.example/anthropic", false, 5],
  ]);
  expect([...groups.values()].map(({ platform, listed }) => [platform, listed.length])).toEqual([
    ["responses", 1],
    ["responses", 1],
    ["responses", 1],
    ["messages", 1],
  ]);
  const credentials = [...channels.values()].map(({ credential }) => credential.startsWith("${"));
  expect(credentials).toEqual([false, false, false, true]);
  rmSync(folder.join("gateway.yaml"));
  const document = {
    PROXY_URL: "http://p.example:1",
    Providers: [{ name: "own", api_base_url: "http://localhost:9123/v1/chat/completions" }],
    Router: { default: "own,qwen" },
  };
  await importText("ccr", JSON.stringify(document));
  expect(load().channels.get("own")).toMatchObject({ proxy: null, free: false, credential: "none" });
});

test("`import` reports that a prefix such as anthropic/* has no counterpart, and adds no model of that name", async () => {
  const entry = { model_name: "anthropic/*", litellm_params: { model: "anthropic/*", api_key: "client" } };
  const { stderr } = await importText("litellm", JSON.stringify({ model_list: [entry] }));
  expect(stderr).toContain("model_list anthropic/*: a prefix for many models");
  expect(load().channels.get("anthropic-main")).toMatchObject({
    models: ["*"],
    credential: "${GATEWAY_ANTHROPIC_MAIN_API_KEY}",
  });
});

test.skipIf(process.platform === "win32").each([
  ["a pipe that nobody writes to", "pipe", "theirs cannot be read: it is not a regular file."],
  ["a file without an end", "endless", "/dev/zero cannot be read: it is not a regular file."],
  ["a file of more than 1 MiB", "large", "theirs cannot be read: it has more than 1 MiB."],
  ["a link to itself", "loop", "theirs cannot be read: ELOOP"],
])("`import` refuses %s at once", async (_, what, problem) => {
  if (what === "pipe") Bun.spawnSync(["mkfifo", folder.join("theirs")]);
  if (what === "large") writeFileSync(folder.join("theirs"), " ".repeat(1024 * 1024 + 1));
  if (what === "loop") symlinkSync("theirs", folder.join("theirs"));
  const file = what === "endless" ? "/dev/zero" : "theirs";
  const { status, stderr } = await runProcess({ folder: folder.path }, "import", "ccr", file);
  expect([status, stderr]).toEqual([1, expect.stringContaining(problem)]);
});
