// Tests `gateway prices`: what it shows, and how newer prices come in.

import { findProvider, REMOTE_DATA_JSON_URL } from "@pydantic/genai-prices";
import { afterEach, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { describeBook } from "../../../../src/cli/doctor/config.ts";
import { placeOfData, RELEASE_URL } from "../../../../src/billing/prices/published.ts";
import { KNOWN_PROVIDERS } from "../../../../src/billing/prices/sellers.ts";
import { GENESIS, encodeLine, hashLine } from "../../../../src/billing/ledger/line.ts";
import { draftOf } from "../../../billing/ledger/ledger-samples.ts";
import { expectMode, makeTempFolder, type TempFolder } from "../../../harness/temp.ts";
import { run, runOnTerminal } from "../../driving.ts";

interface Model {
  readonly id: string;
  readonly match?: unknown;
  readonly prices: unknown;
}

interface Provider {
  readonly id: string;
  readonly models: Model[];
}

/** The package's current data. */
const PUBLISHED: readonly Provider[] = JSON.parse(
  JSON.stringify(KNOWN_PROVIDERS.flatMap((id) => findProvider({ providerId: id }) ?? [])),
);

/** Returns the package's data with other prices of some models. */
function publish(changes: Readonly<Record<string, unknown>> = {}): Provider[] {
  return PUBLISHED.map((provider) => ({
    ...provider,
    models: [
      ...provider.models.map((model) => ({
        ...model,
        prices: changes[`${provider.id} ${model.id}`] ?? model.prices,
      })),
      ...Object.entries(changes).flatMap(([name, prices]) => {
        const [owner, id = ""] = name.split(" ");
        const isNew = owner === provider.id && !provider.models.some((model) => model.id === id);
        return isNew ? [{ id, match: { equals: id }, prices }] : [];
      }),
    ],
  }));
}

const CONFIG = {
  listen: { port: 0 },
  channels: {
    claude: { platform: "messages", base_url: "https://api.anthropic.com", credential: "x" },
    local: {
      platform: "responses",
      base_url: "http://127.0.0.1:1",
      credential: "x",
      free: true,
      models: ["llama"],
    },
  },
  groups: { claude: { platform: "messages", channels: ["claude"] } },
};

type Request = Partial<ReturnType<typeof draftOf>> & { readonly model: string };

/** Makes a folder with a config and a ledger. */
function open(requests: readonly (string | Request)[] = [], config: object = CONFIG): TempFolder {
  const folder = makeTempFolder();
  writeFileSync(folder.join("gateway.yaml"), JSON.stringify(config), { mode: 0o600 });
  let prev = GENESIS;
  const lines = requests.map((request, index) => {
    const more = typeof request === "string" ? { model: request, upstream_model: request } : request;
    const line = encodeLine(draftOf(`req_${index}`, { channel: "claude", ...more }), prev);
    prev = hashLine(line);
    return `${line}\n`;
  });
  writeFileSync(folder.join("ledger.jsonl"), lines.join(""));
  return folder;
}

/** Runs a command line in the folder. */
const gateway = (folder: TempFolder, line: string) => run({ folder: folder.path }, ...line.split(" "));

const CHANGED = publish({
  "anthropic claude-sonnet-5": { input_mtok: 1.25, output_mtok: 10, cache_read_mtok: 0.2 },
  "anthropic claude-nova-9": { input_mtok: 7, output_mtok: 1e-7 },
});

describe("`prices show` shows the prices of a model", () => {
  test("`prices show` lists each provider's prices of a model with their date and source", async () => {
    using folder = open();
    const { stdout, status } = await gateway(folder, "prices show claude-sonnet-5-5");
    expect(status).toBe(0);
    expect(stdout).toContain("anthropic  claude-sonnet-5-5, claude-sonnet-5.5  (channels: claude)");
    expect(stdout).toContain("from 2026-10-07: input 2, output 10, cache_read 0.1");
    expect(stdout).toContain("source: https://platform.claude.com/");
    const json = await gateway(folder, "prices show deepseek-v4-pro --json");
    const reported: { providers: { provider: string; periods: unknown[] }[] } = JSON.parse(json.stdout);
    expect(reported.providers.map(({ provider }) => provider)).toEqual(
      expect.arrayContaining(["deepseek", "fireworks"]),
    );
    const hours = [
      ["01:00", "04:00"],
      ["06:00", "10:00"],
    ];
    expect(reported.providers.find(({ provider }) => provider === "deepseek")?.periods).toContainEqual(
      expect.objectContaining({ from: "2026-08-17T00:00:00.000Z", hours_utc: hours }),
    );
  });

  test("`prices show` says in which hours a price counts, and leaves out prices that have ended", async () => {
    using folder = open();
    const shown = await gateway(folder, "prices show deepseek-flash");
    expect(shown.stdout).toContain(
      "from 2026-10-31 16:00, 01:00 to 04:00 and 06:00 to 10:00 UTC, on workdays of China: input 0.3",
    );
    const retired = await gateway(folder, "prices show deepseek-chat");
    expect(retired.stdout).toContain("deepseek-chat");
    expect(retired.stdout).not.toContain("until");
  });

  test("`prices show` needs no config, and says when there is no price", async () => {
    using folder = makeTempFolder();
    const nowhere = { folder: folder.path, env: { GATEWAY_CONFIG: "" } };
    expect((await run(nowhere, "prices", "show", "gpt-5", "--provider", "openai")).status).toBe(0);
    const none = await run(nowhere, "prices", "show", "gpt-99");
    expect([none.status, none.stdout]).toEqual([1, ""]);
    expect(none.stderr).toContain('has a price for "gpt-99"');
    const near = await run(nowhere, "prices", "show", "gpt-5", "--provider", "openia");
    expect(near.stderr).toContain('no provider "openia"');
  });
});

describe("`prices check` finds models without a price", () => {
  test("`prices check` names the models in use that have no price, and fails", async () => {
    using folder = open(["claude-sonnet-5", "claude-nova-9", "claude-nova-9"]);
    const { stdout, stderr, status } = await gateway(folder, "prices check --json");
    expect({ status, stderr, reported: JSON.parse(stdout) as unknown }).toEqual({
      status: 1,
      stderr: "",
      reported: [{ channel: "claude", model: "claude-nova-9", requests: 2 }],
    });
    const human = await gateway(folder, "prices check");
    expect(human.stderr).toContain("`gateway prices set` gives them one");
  });

  test("`prices check` exits with 0 if all models have a price or cost nothing", async () => {
    using folder = open(["claude-sonnet-5"]);
    const { stdout, stderr, status } = await gateway(folder, "prices check");
    expect([status, stdout]).toEqual([0, ""]);
    expect(stderr).toContain("All models in use have a price (2 of 2");
  });

  const unpriced = { basis: "unpriced", prices: null, official_usd: null, charge_usd: null } as const;
  const unknown = { ...unpriced, basis: "unknown", usage: {}, status: null } as const;
  test("`prices check` leaves out a model whose answers name another model that has a price", async () => {
    using folder = open([
      { model: "our-best", upstream_model: "claude-sonnet-5" },
      { model: "our-best", upstream_model: "claude-opus-5", suspect: "read as JSON" },
      // The line of an interrupted request has the requested name, because no answer named a model.
      { model: "our-best", upstream_model: "our-best", ...unknown, outcome: "interrupted" },
      { model: "our-best", upstream_model: null, ...unknown, outcome: "upstream_error" },
    ]);
    const { stdout, status } = await gateway(folder, "prices check --json");
    expect([status, JSON.parse(stdout)]).toEqual([0, []]);
  });

  test("`prices check` names a model without an answer, and a model with an unpriced answer", async () => {
    using folder = open([
      { model: "our-best", upstream_model: "claude-sonnet-5" },
      { model: "our-best", upstream_model: "deployment-7", ...unpriced },
      { model: "our-new", upstream_model: null, ...unknown, outcome: "upstream_error" },
      // These two have a price now, by the name in the answer or by the requested name.
      { model: "our-old", upstream_model: "claude-sonnet-5", ...unpriced },
      { model: "claude-opus-5", upstream_model: "deployment-8", ...unpriced },
    ]);
    const { stdout, status } = await gateway(folder, "prices check --json");
    expect([status, JSON.parse(stdout)]).toEqual([
      1,
      [
        { channel: "claude", model: "our-best", requests: 2 },
        { channel: "claude", model: "our-new", requests: 1 },
      ],
    ]);
  });

  test("`prices check` checks the models that only the config names", async () => {
    const channel = {
      ...CONFIG.channels.claude,
      models: ["claude-nova-9", "claude-*"],
      aliases: { fast: "nope" },
    };
    using folder = open([], { ...CONFIG, channels: { claude: channel } });
    const { stdout, status } = await gateway(folder, "prices check --json");
    const reported: { model: string }[] = JSON.parse(stdout);
    expect([status, reported.map(({ model }) => model)]).toEqual([1, ["claude-nova-9", "fast"]]);
  });
});

describe("`prices update` writes a newer price book", () => {
  test("`prices update` shows what changes for the models in the ledger, and writes a book next to the config", async () => {
    using folder = open(["claude-sonnet-5", "claude-nova-9", "claude-opus-5"]);
    writeFileSync(folder.join("data.json"), JSON.stringify(CHANGED));
    const diff = await gateway(folder, "prices update --dry-run --from data.json --json");
    const reported: { changes: { model: string; what: string; was: string | null; now: string | null }[] } =
      JSON.parse(diff.stdout);
    const words = ["prices", "update", "--dry-run", "--from", "data.json", "--json"];
    expect(await run({ folder: folder.path }, ...words)).toEqual(diff);
    expect(existsSync(folder.join("gateway.prices.jsonl"))).toBe(false);
    const changed = reported.changes.map(({ model, what, was, now }) => [model, what, was, now]);
    expect(changed).toContainEqual(["claude-sonnet-5", "input", "2", "1.25"]);
    expect(changed).toContainEqual(["claude-nova-9", "input", null, "7"]);
    expect(changed).toContainEqual(["claude-nova-9", "output", null, "0.0000001"]);
    expect(changed.filter(([model]) => model === "claude-opus-5")).toEqual([]);

    const update = await gateway(folder, "prices update --from data.json --yes");
    expect(update.status).toBe(0);
    expect(update.stdout).toMatch(/anthropic +claude-sonnet-5 +input +2 +1\.25/);
    const path = folder.join("gateway.prices.jsonl");
    expectMode(path, 0o600);
    const [head = ""] = readFileSync(path, "utf8").split("\n");
    expect(JSON.parse(head)).toMatchObject({
      date: new Date().toISOString().slice(0, 10),
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      source: expect.stringContaining("data.json, read on "),
    });
    expect(readdirSync(folder.path).filter((name) => name.includes("tmp"))).toEqual([]);
    const show = await gateway(folder, "prices show claude-nova-9");
    expect(show.stdout).toMatch(/^book \d{4}-\d\d-\d\d#[0-9a-f]{8}:/);
    expect(show.stdout).toContain("input 7, output 0.0000001");
    // The rules of overlay.json apply to the new book, too.
    const factors = await gateway(folder, "prices show claude-sonnet-5 --provider anthropic");
    expect(factors.stdout).toContain("service_tier=batch ×0.5, inference_geo=us ×1.1");
    expect((await gateway(folder, "prices check")).status).toBe(0);
    expect((await gateway(folder, "prices update --dry-run --from data.json")).stderr).toContain(
      "No price of a model",
    );
  });

  test("`prices update` reads the data file of the price package in npm", async () => {
    using folder = open();
    const words = ["prices", "update", "--dry-run", "--from"];
    const file = Bun.resolveSync("@pydantic/genai-prices", import.meta.dir);
    const { status, stderr } = await run({ folder: folder.path }, ...words, file);
    expect([status, stderr]).toEqual([0, expect.stringContaining("No price of a model")]);
  });

  test("`prices update` reads from an address, and never writes a secret of the address", async () => {
    using folder = open();
    using server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => Response.json(CHANGED) });
    const place = `http://127.0.0.1:${server.port}/data.json?token=secret-token`;
    const { status, stderr } = await gateway(folder, `prices update --from ${place} --yes`);
    expect(status).toBe(0);
    expect(stderr).toContain("gateway.prices.jsonl: book ");
    expect(readFileSync(folder.join("gateway.prices.jsonl"), "utf8")).not.toContain("secret-token");
  });

  test("`prices update` writes nothing without a terminal and --yes", async () => {
    using folder = open();
    writeFileSync(folder.join("data.json"), JSON.stringify(CHANGED));
    const { status, stderr } = await gateway(folder, "prices update --from data.json");
    expect(status).toBe(2);
    expect(stderr).toContain("--yes");
    expect(existsSync(folder.join("gateway.prices.jsonl"))).toBe(false);
  });

  test("`prices update` asks on a terminal, and `no` writes nothing", async () => {
    using folder = open();
    writeFileSync(folder.join("data.json"), JSON.stringify(CHANGED));
    const words = ["prices", "update", "--from", "data.json"];
    for (const [key, isThere] of Object.entries({ n: false, y: true })) {
      const asked = runOnTerminal({ folder: folder.path }, ...words);
      await asked.shows("Use these prices from now on?");
      asked.press(key);
      expect(await asked.status).toBe(0);
      expect(asked.raw().includes("Nothing was written.")).toBe(!isThere);
      expect(existsSync(folder.join("gateway.prices.jsonl"))).toBe(isThere);
    }
  });

  const small = (price: unknown) => [
    { id: "anthropic", models: [{ id: "m", match: { equals: "m" }, prices: { input_mtok: price } }] },
  ];
  const later = (constraint: unknown, price: number) => [
    {
      id: "anthropic",
      models: [{ id: "m", match: {}, prices: [{ constraint, prices: { input_mtok: price } }] }],
    },
  ];
  test.each<[string, unknown, string]>([
    ["no JSON", "{", "it is not JSON"],
    ["an object for a list", { prices: [] }, "the document: Invalid input: expected array"],
    ["an empty list", [], "the document: Too small"],
    [
      "a price in words",
      small("cheap"),
      "anthropic models m prices 0 prices input_mtok base: a price must be 0",
    ],
    ["a price as text", small("3"), "anthropic models m prices 0 prices input_mtok base: a price must be 0"],
    ["no number for a price", small(null), "anthropic models m prices 0 prices input_mtok: "],
    ["a negative price", small(-1), "anthropic models m prices 0 prices input_mtok base: a price must be 0"],
    [
      "an infinite price",
      JSON.stringify(small(1)).replace('"input_mtok":1', '"input_mtok":1e999'),
      "anthropic models m prices 0 prices input_mtok base: a price must be 0",
    ],
    [
      "a price with thirty digits",
      small(1e30),
      "anthropic models m prices 0 prices input_mtok base: a price must be 0",
    ],
    [
      "a price with a hundred decimals",
      small({ base: 1e-100, tiers: [] }),
      "anthropic models m prices 0 prices input_mtok base: a price must be 0, or a number from 1e-12 to 1e9",
    ],
    [
      "a negative price within a tier",
      small({ base: 1, tiers: [{ start: 1, price: -1 }] }),
      "anthropic models m prices 0 prices input_mtok tiers 0 price: a price must be 0",
    ],
    [
      "a tier that begins within a token",
      small({ base: 1, tiers: [{ start: 1.5, price: 1 }] }),
      "anthropic models m prices 0 prices input_mtok tiers 0 start: ",
    ],
    [
      "tiers in another order",
      small({
        base: 1,
        tiers: [
          { start: 200, price: 3 },
          { start: 100, price: 2 },
        ],
      }),
      "tiers must be in ascending order",
    ],
    [
      "a negative price from a day on",
      later({ start_date: "2026-12-01" }, -1),
      "anthropic models m prices 0 prices input_mtok base: a price must be 0",
    ],
    [
      "a price whose first day does not exist",
      later({ start_date: "2026-19-01" }, 1),
      "anthropic models m prices 0 constraint start_date: there is no such day",
    ],
    [
      "a price at an hour that does not exist",
      later({ start_time: "25:00", end_time: "26:00" }, 1),
      "anthropic models m prices 0 constraint start_time: there is no such hour",
    ],
    [
      "a price without a known time",
      later({ moon: 1 }, 1),
      "anthropic models m prices 0 constraint: it does not say when the price applies",
    ],
    [
      "prices of a maker that cannot be read",
      [{ id: "anthropic", models: [{ id: "m", match: {}, prices: { requests_kcount: 1 } }] }],
      "has no prices of anthropic and openai and google",
    ],
    ["no prices of most makers", small(1), "has no prices of openai and google"],
  ])("`prices update` refuses a book with %s", async (_what, document, why) => {
    using folder = open();
    writeFileSync(
      folder.join("data.json"),
      typeof document === "string" ? document : JSON.stringify(document),
    );
    const { status, stderr } = await gateway(folder, "prices update --from data.json --yes");
    expect(status).toBe(1);
    expect(stderr.replaceAll("\n", " ")).toContain(why);
    expect(existsSync(folder.join("gateway.prices.jsonl"))).toBe(false);
  });

  test.each([
    ["a file that is not there", "nowhere.json", "ENOENT"],
    ["an address at a closed port", "http://127.0.0.1:9/data.json", "cannot be read"],
  ])("`prices update` says that it cannot read %s", async (_what, place, why) => {
    using folder = open();
    const { status, stderr } = await gateway(folder, `prices update --from ${place} --yes`);
    expect(status).toBe(1);
    expect(stderr).toContain(why);
  });

  test("a price book that was changed by hand is not used", async () => {
    using folder = open();
    writeFileSync(folder.join("data.json"), JSON.stringify(CHANGED));
    await gateway(folder, "prices update --from data.json --yes");
    const path = folder.join("gateway.prices.jsonl");
    writeFileSync(path, readFileSync(path, "utf8").replace('"input":"7"', '"input":"0"'));
    const { status, stderr } = await gateway(folder, "prices show claude-nova-9");
    expect(status).toBe(1);
    expect(stderr).toContain("is damaged");
    expect((await gateway(folder, "serve")).stderr).toContain("is damaged");
  });

  test.each([
    ["cut", (text: string) => text.slice(0, text.length / 2)],
    ["empty", () => ""],
    ["of another kind", () => "{}\n"],
  ])("a price book that is %s stops the gateway's start until an update", async (_how, damage) => {
    using folder = open(["claude-sonnet-5"]);
    writeFileSync(folder.join("data.json"), JSON.stringify(CHANGED));
    const place = { folder: folder.path, env: { XDG_RUNTIME_DIR: folder.path } };
    const update = ["prices", "update", "--from", "data.json", "--yes"];
    expect((await run(place, ...update)).status).toBe(0);
    const path = folder.join("gateway.prices.jsonl");
    writeFileSync(path, damage(readFileSync(path, "utf8")));
    const start = await run(place, "serve");
    expect(start.status).toBe(1);
    expect(start.stderr.replaceAll("\n", " ")).toContain("`gateway prices update` writes it again");
    // Commands that need no prices still work, and the doctor names the command that helps.
    for (const command of [["usage"], ["ledger", "verify"], ["keys", "list"], ["sessions"]])
      expect([command, (await run(place, ...command)).status]).toEqual([command, 0]);
    const { checks }: { checks: unknown[] } = JSON.parse((await run(place, "doctor", "--json")).stdout);
    expect(checks).toContainEqual(
      expect.objectContaining({ check: "prices", state: "wrong", mend: "gateway prices update" }),
    );
    const again = await run(place, ...update);
    expect(again.status).toBe(0);
    expect(again.stderr).toContain("compared with the built-in book");
    expect((await run(place, "prices", "check")).status).toBe(0);
  });

  test("P58: `prices update` needs --accept for a price that falls below a tenth, and for a provider that loses a quarter of its models", async () => {
    using folder = open();
    const fallen = publish({
      "anthropic claude-sonnet-5": { input_mtok: 0, output_mtok: 0.9 },
      "anthropic claude-haiku-4-5": { input_mtok: 0.1, output_mtok: 0.5 },
    });
    // Two models are gone: one of a provider that the config uses, and one of another provider.
    const anthropic = fallen.find(({ id }) => id === "anthropic")!;
    anthropic.models.splice(
      anthropic.models.findIndex(({ id }) => id === "claude-2"),
      1,
    );
    fallen.find(({ id }) => id === "mistral")!.models.splice(0, 1);
    const openai = fallen.find(({ id }) => id === "openai");
    openai?.models.splice(0, openai.models.length / 2);
    writeFileSync(folder.join("data.json"), JSON.stringify(fallen));
    const update = (...more: string[]) =>
      run({ folder: folder.path }, "prices", "update", "--from", "data.json", "--yes", ...more);
    const refused = await update();
    expect(refused.status).toBe(1);
    expect(refused.stderr).toMatch(/anthropic\/claude-sonnet-5: .*input falls from 2 to 0\b/);
    expect(refused.stderr).toMatch(/output falls from 10 to 0\.9/);
    expect(refused.stderr).toMatch(/openai: it no longer has \S+, \S+, \S+/);
    expect(refused.stderr).toMatch(/anthropic: it no longer has /);
    // A price that fell to a tenth is not below a tenth.
    expect(refused.stderr).not.toMatch(/haiku-4-5|mistral/);
    const [, flags = ""] = /right, add (.*)/.exec(refused.stderr) ?? [];
    const names = flags.split(" ").filter((word) => word !== "--accept");
    const half = await update("--accept", "openai");
    expect([half.status, existsSync(folder.join("gateway.prices.jsonl"))]).toEqual([1, false]);
    const accepted = await update(...names.flatMap((name) => ["--accept", name.replace(/\.$/, "")]));
    expect([accepted.status, existsSync(folder.join("gateway.prices.jsonl"))]).toEqual([0, true]);
  });

  test.each([
    ["from tomorrow on", { start_date: new Date(Date.now() + 86_400_000).toISOString().slice(0, 10) }],
    ["in four hours of the night", { start_time: "01:00:00Z", end_time: "05:00:00Z" }],
  ])("P58: `prices update` needs --accept for a price that falls to 0 %s", async (_, constraint) => {
    using folder = open();
    const later = publish().map((provider) => ({
      ...provider,
      models: provider.models.map((model) => {
        if (model.id !== "claude-sonnet-5") return model;
        return { ...model, prices: [{ prices: model.prices }, { constraint, prices: { input_mtok: 0 } }] };
      }),
    }));
    writeFileSync(folder.join("data.json"), JSON.stringify(later));
    const update = ["prices", "update", "--from", "data.json", "--yes"];
    const refused = await run({ folder: folder.path }, ...update);
    expect(refused.status).toBe(1);
    expect(refused.stderr).toMatch(/anthropic\/claude-sonnet-5: .*input falls from 2 to 0/);
    expect(existsSync(folder.join("gateway.prices.jsonl"))).toBe(false);
  });

  test("P58: `prices update` needs --accept if a new free model would take over an old model's name", async () => {
    using folder = open();
    const stolen = publish().map((provider) => {
      if (provider.id !== "anthropic") return provider;
      const match = { or: [{ equals: "zz-new" }, { equals: "claude-sonnet-4.5" }] };
      const prices = { input_mtok: 0, output_mtok: 0 };
      return { ...provider, models: [{ id: "zz-new", match, prices }, ...provider.models] };
    });
    writeFileSync(folder.join("data.json"), JSON.stringify(stolen));
    const refused = await gateway(folder, "prices update --from data.json --yes");
    expect(refused.status).toBe(1);
    expect(refused.stderr).toMatch(/anthropic\/claude-sonnet-4-5: .*input falls from 3 to 0/);
  });

  test("P58: `prices update` needs --accept if a provider that the config uses lost a model, and names the model", async () => {
    using folder = open();
    const fewer = (id: string) =>
      publish().map((each) => (each.id === id ? { ...each, models: each.models.slice(1) } : each));
    const lost = fewer("anthropic");
    const words = ["prices", "update", "--from", "data.json", "--yes"];
    writeFileSync(folder.join("data.json"), JSON.stringify(lost));
    const used = await run({ folder: folder.path }, ...words);
    expect(used.status).toBe(1);
    expect(used.stderr).toContain("add --accept anthropic");
    const [first] = publish().find(({ id }) => id === "anthropic")?.models ?? [];
    expect(used.stderr).toContain(`anthropic: it no longer has ${first?.id}`);
    // The config has no channel at this provider.
    writeFileSync(folder.join("data.json"), JSON.stringify(fewer("x-ai")));
    expect((await run({ folder: folder.path }, ...words)).status).toBe(0);
  });

  describe("`prices update` takes the newest release", () => {
    const real = globalThis.fetch;
    afterEach(() => {
      globalThis.fetch = real;
    });

    /** Answers as the two addresses of genai-prices do. */
    function publishRelease(tag: string, published: string, data: unknown = CHANGED): string[] {
      const asked: string[] = [];
      const answers = new Map<string, unknown>([
        [RELEASE_URL, { tag_name: tag, published_at: published }],
        [placeOfData(tag), data],
      ]);
      const answer = (url: string | URL | globalThis.Request): Promise<Response> => {
        const address = url instanceof globalThis.Request ? url.url : String(url);
        asked.push(address);
        return Promise.resolve(
          answers.has(address) ? Response.json(answers.get(address)) : new Response("", { status: 404 }),
        );
      };
      globalThis.fetch = Object.assign(answer, { preconnect: real.preconnect });
      return asked;
    }

    test("`prices update` takes the data of the newest release, and says its name, day and hash", async () => {
      using folder = open(["claude-sonnet-5"]);
      const asked = publishRelease("v0.9.1", "2027-01-05T23:59:59Z");
      const { status, stdout, stderr } = await gateway(folder, "prices update --yes --json");
      expect(status).toBe(0);
      expect(asked).toEqual([RELEASE_URL, placeOfData("v0.9.1")]);
      const sha256 = new Bun.CryptoHasher("sha256").update(JSON.stringify(CHANGED)).digest("hex");
      expect(stderr).toContain(`Read genai-prices v0.9.1 of 2027-01-05, SHA-256 ${sha256}.`);
      expect(JSON.parse(stdout)).toMatchObject({
        source: "genai-prices v0.9.1 of 2027-01-05",
        source_sha256: sha256,
      });
      const [head = ""] = readFileSync(folder.join("gateway.prices.jsonl"), "utf8").split("\n");
      expect(JSON.parse(head)).toMatchObject({
        date: "2027-01-05",
        source: "genai-prices v0.9.1 of 2027-01-05",
      });
    });

    test("P57: `prices update` refuses a release that is older than the prices in use, and --dry-run says so", async () => {
      using folder = open();
      publishRelease("v0.9.1", "2027-01-05T00:00:00Z");
      expect((await gateway(folder, "prices update --yes")).status).toBe(0);
      publishRelease("v0.9.0", "2027-01-04T23:59:59Z");
      const older = await gateway(folder, "prices update --yes");
      expect([older.status, older.stderr]).toEqual([
        1,
        expect.stringMatching(/v0\.9\.0 of 2027-01-04, is older than the prices in use \(book 2027-01-05#/),
      ]);
      const diff = await gateway(folder, "prices update --dry-run");
      expect([diff.status, diff.stderr]).toEqual([
        0,
        expect.stringContaining("is older than the prices in use"),
      ]);
      expect(readFileSync(folder.join("gateway.prices.jsonl"), "utf8")).toContain("v0.9.1");
      // A release of the same day is not older.
      publishRelease("v0.9.2", "2027-01-05T12:00:00Z");
      expect((await gateway(folder, "prices update --yes")).status).toBe(0);
    });

    test.each([
      ["a page without a release", { message: "Not Found" }],
      ["a tag with a relative path", { tag_name: "../../other", published_at: "2027-01-05T00:00:00Z" }],
      ["a release without a day", { tag_name: "v1", published_at: "soon" }],
    ])("`prices update` refuses %s", async (_, release) => {
      using folder = open();
      const answer = (): Promise<Response> => Promise.resolve(Response.json(release));
      globalThis.fetch = Object.assign(answer, { preconnect: real.preconnect });
      const { status, stderr } = await gateway(folder, "prices update --yes");
      expect([status, stderr]).toEqual([1, expect.stringContaining("does not name a release")]);
    });
  });

  test("`prices update` reads only over https, and follows no redirect", async () => {
    using folder = open();
    const to = (location: string) =>
      Bun.serve({
        port: 0,
        hostname: "127.0.0.1",
        fetch: () => new Response("", { status: 302, headers: { location } }),
      });
    using away = to("http://127.0.0.2:1/data.json");
    for (const [place, why] of [
      ["http://prices.example/data.json", "only https is accepted"],
      [away.url.href, "the answer is 302"],
    ] as const) {
      const { status, stderr } = await gateway(folder, `prices update --from ${place} --yes`);
      expect([status, stderr]).toEqual([1, expect.stringContaining(why)]);
    }
  });

  test("the data of a release is read from the address from which the price package updates itself", () => {
    expect(placeOfData("main")).toBe(REMOTE_DATA_JSON_URL);
  });
});

describe("`doctor` says what is wrong with prices", () => {
  const examine = async (folder: TempFolder) => {
    const { stdout } = await run(
      { folder: folder.path, env: { XDG_RUNTIME_DIR: folder.path } },
      "doctor",
      "--json",
    );
    const { checks }: { checks: { check: string; state: string; detail: string; mend: string | null }[] } =
      JSON.parse(stdout);
    return checks.filter(({ check }) => check === "prices");
  };

  test("`doctor` mentions a price book that is older than thirty days", async () => {
    const book = { label: "book 2026-11-21", date: "2026-11-21" };
    expect(describeBook(book, new Date("2026-12-21T23:59:59Z"))).toMatchObject({ state: "ok" });
    expect(describeBook(book, new Date("2026-12-22T00:00:00Z"))).toMatchObject({
      state: "note",
      detail: "book 2026-11-21 is 31 days old: newer models have no price",
      fix: "gateway prices update",
    });
    using folder = open();
    expect(await examine(folder)).toHaveLength(1);
  });

  test("`doctor` names a provider of the config that the price book does not have", async () => {
    const channel = { ...CONFIG.channels.claude, price_provider: "antropic" };
    using folder = open([], { ...CONFIG, channels: { claude: channel } });
    expect(await examine(folder)).toMatchObject([
      { state: "wrong", detail: expect.stringContaining('no provider "antropic"') },
    ]);
    expect((await gateway(folder, "serve")).stderr).toContain('did you mean "anthropic"');
  });
});
