// Coming from another gateway: docs/coming-from.md, word for word, and what its examples leave out.

import { afterEach, beforeEach, expect, test } from "bun:test";
import { rmSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkConfigText, loadConfig } from "../../../src/config/file/load.ts";
import { sha256Hex } from "../../../src/lib/secret.ts";
import { expectMode, makeTempFolder, type TempFolder } from "../../harness/temp.ts";
import { run } from "../driving.ts";

const DOC = readFileSync(join(import.meta.dir, "../../../docs/coming-from.md"), "utf8");
/** Theirs and ours, three times. */
const BLOCKS = [...DOC.matchAll(/^```(?:yaml|json)\n([\s\S]*?)^```/gm)].map(([, text = ""]) => text);
const KINDS = ["ccr", "litellm", "cliproxy"] as const;

let folder: TempFolder;
beforeEach(() => {
  folder = makeTempFolder();
});
afterEach(() => folder.remove());

const load = () => loadConfig(folder.join("gateway.yaml"), {}, { missing: "keep" }).catalog;

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
    // The document has a reference, and gateway.env the credential.
    const describe = ({ channels, groups, listen }: ReturnType<typeof load>) => ({
      listen,
      channels: [...channels.values()].map((each) => ({ ...each, credential: "" })),
      groups: [...groups.values()].map(({ name, platform, listed }) => [name, platform, listed]),
    });
    const shown = checkConfigText(ours, folder.join("ours.yaml"), {}, { missing: "keep" }).catalog;
    expect(describe(load())).toEqual(describe(shown));
  },
);

test("the keys of clients are kept as the document says", async () => {
  await importText("ccr", BLOCKS[0] ?? "");
  expect(load().keysBySha256.get(sha256Hex("a-secret"))?.name).toBe("ccr");
  const words = /gateway (keys import .*) < keys\.txt/.exec(DOC)?.[1]?.split(" ") ?? [];
  const { status } = await run({ folder: folder.path, stdin: "LAPTOP=another-secret\n" }, ...words);
  expect([status, load().keysBySha256.get(sha256Hex("another-secret"))?.name]).toEqual([0, "LAPTOP"]);
});

test("a credential with a line break writes nothing: it would set another variable", async () => {
  const theirs = (BLOCKS[0] ?? "").replace(/"api_key": "[^"]*"/, '"api_key": "sk-abc\\nLD_PRELOAD=/x.so"');
  const { status, stderr } = await importText("ccr", theirs);
  expect(status).toBe(1);
  expect(stderr).toContain("a secret is visible ASCII characters without spaces");
  expect(["gateway.yaml", "gateway.env"].map((name) => existsSync(folder.join(name)))).toEqual([
    false,
    false,
  ]);
});

test("a credential goes into gateway.env, and no secret is printed or in the config", async () => {
  const text = BLOCKS[4] ?? "";
  const { stdout, stderr } = await importText("cliproxy", text, "--json");
  const config = readFileSync(folder.join("gateway.yaml"), "utf8");
  for (const shown of [stdout, stderr, config]) expect(shown).not.toMatch(/sk-ant-api03-their-own|a-secret/);
  expect(readFileSync(folder.join("gateway.env"), "utf8")).toContain("=sk-ant-api03-their-own\n");
  for (const name of ["gateway.yaml", "gateway.env"]) expectMode(folder.join(name), 0o600);
});

test("what has no counterpart is listed, and the rest is imported", async () => {
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
      "Providers odd: what odd.example speaks is not known",
      "Router.think",
      "Router.background: another provider for some models of one group",
      "CUSTOM_ROUTER_PATH",
    ],
  });
  const { channels, groups } = load();
  // The channel of the default route is the first one.
  expect(groups.get("claude")?.listed).toEqual(["own", "deepseek", "other"]);
  // Its requests are converted for the one that speaks Chat Completions.
  expect(groups.get("claude")?.convert).toBe(true);
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

test("servers of Chat Completions become channels, in a group of what their clients speak", async () => {
  const params = {
    model: "openai/qwen3-coder",
    api_base: "http://gpu.example:8000/v1",
    api_key: "os.environ/GPU",
  };
  await importText(
    "litellm",
    JSON.stringify({ model_list: [{ model_name: "qwen", litellm_params: params }] }),
  );
  expect(load().channels.get("gpu.example")).toMatchObject({
    platform: "chat",
    baseUrl: new URL("http://gpu.example:8000/v1"),
    credential: "${GPU}",
    aliases: new Map([["qwen", "qwen3-coder"]]),
  });
  expect(load().groups.get("codex")).toMatchObject({ platform: "responses", convert: false });
  rmSync(folder.join("gateway.yaml"));
  const entry = {
    name: "gpu",
    "base-url": "http://gpu.example:8000/v1",
    "api-key-entries": [{ "api-key": "$ONE" }, { "api-key": "$TWO", "proxy-url": "http://p.example:1" }],
    models: [{ name: "qwen3-coder", alias: "qwen" }],
    disabled: true,
  };
  const { stderr } = await importText("cliproxy", JSON.stringify({ "openai-compatibility": [entry] }));
  expect(stderr).toContain("openai-compatibility gpu: disabled");
  const channels = [...load().channels.values()];
  expect(
    channels.map(({ name, platform, credential, proxy }) => [name, platform, credential, proxy?.host]),
  ).toEqual([
    ["gpu", "chat", "${ONE}", undefined],
    ["gpu-2", "chat", "${TWO}", "p.example:1"],
  ]);
  expect(channels[1]?.aliases.get("qwen")).toBe("qwen3-coder");
});

test.each([
  ["a config is there", "ccr", BLOCKS[0] ?? "", "already exists"],
  ["the file cannot be parsed", "litellm", "a: [sk-hush", "theirs: it cannot be parsed."],
  ["nothing can be used", "ccr", '{ "LOG": true }', "nothing was written. No counterpart:\n  LOG"],
])("import writes nothing if %s", async (what, kind, text, problem) => {
  if (what === "a config is there") writeFileSync(folder.join("gateway.yaml"), "vendor: mine\n");
  const { status, stderr } = await importText(kind, text);
  expect(status).toBeGreaterThan(0);
  expect(stderr).toContain(problem);
  expect(stderr).not.toContain("hush");
  expect(existsSync(folder.join("gateway.yaml"))).toBe(what === "a config is there");
});
