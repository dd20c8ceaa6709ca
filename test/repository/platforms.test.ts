// The promise about platforms: one row, and the compiler names every other place. A made-up platform is added to a copy
// of the source; what the compiler says is compared with the table in CONTRIBUTING.md.

import { describe, expect, test } from "bun:test";
import { Glob } from "bun";
import { cpSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkConfigText } from "../../src/config/file/load.ts";
import { PLATFORMS } from "../../src/config/schema.ts";
import { buildTable, type Choice, STORED_RESPONSE } from "../../src/dialects/endpoints.ts";
import { DIALECT_NAMES, type Endpoint } from "../../src/dialects/dialect.ts";
import { PLATFORM_ROWS, readPathPrefix } from "../../src/dialects/platforms.ts";
import { findCrossing } from "../../src/gateway/upstream/crossing.ts";
import { startGateway } from "../harness/gateway.ts";
import { makeTempFolder } from "../harness/temp.ts";

const ROOT = join(import.meta.dir, "../..");
const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");

/** The files that a section of CONTRIBUTING.md says the compiler names. */
function listPromised(from: string, to: string): string[] {
  const text = read("CONTRIBUTING.md");
  const section = text.slice(text.indexOf(from), text.indexOf(to));
  return [...section.matchAll(/^\| `(src\/[^`]+)` \|.*\| tsc \|$/gm)].map(([, file = ""]) => file).toSorted();
}

const PLATFORM_PLACES = listPromised("## How to add a platform", "A new dialect needs");
const DIALECT_PLACES = listPromised("A new dialect needs", "## How to record a fixture");

/** A busy machine needs a minute for a run of the compiler. */
const COMPILER_TIMEOUT_MS = 120_000;

/** The files in which the compiler finds something to change, by the made-up word that each error is about. */
function compile(folder: string): Record<string, string[]> {
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  const words = [process.execPath, tsc, "--noEmit", "--pretty", "false", "--singleThreaded"];
  const { stdout } = Bun.spawnSync(words, { cwd: folder });
  const errors = [...stdout.toString().matchAll(/^(src\/[^(]+)\(\d+,\d+\): error .*?(made_\w+|$)/gm)];
  const files = Object.groupBy(errors, ([, , word = ""]) => word);
  const names = (each: RegExpExecArray[] = []) => [...new Set(each.map(([, file = ""]) => file))].toSorted();
  return Object.fromEntries(Object.entries(files).map(([word, each]) => [word, names(each)]));
}

test(
  "the compiler names every place of a new platform and of a new dialect that CONTRIBUTING.md lists, and no other",
  () => {
    using folder = makeTempFolder();
    for (const name of ["src", "packaging"]) cpSync(join(ROOT, name), folder.join(name), { recursive: true });
    symlinkSync(join(ROOT, "node_modules"), folder.join("node_modules"));
    writeFileSync(
      folder.join("tsconfig.json"),
      JSON.stringify({ extends: join(ROOT, "tsconfig.json"), include: ["src"], exclude: ["src/web/page"] }),
    );
    /** Replaces a text that occurs exactly once. */
    const change = (file: string, from: string, to: string): void => {
      const parts = read(file).split(from);
      expect([file, parts.length]).toEqual([file, 2]);
      writeFileSync(folder.join(file), parts.join(to));
    };
    change("src/config/schema.ts", "PLATFORMS = [", 'PLATFORMS = ["made_up", ');
    change("src/dialects/dialect.ts", "DIALECT_NAMES = [", 'DIALECT_NAMES = ["made_too", ');
    const first = compile(folder.path);
    expect(first).toEqual({ made_up: expect.any(Array), made_too: DIALECT_PLACES });
    change("src/demo/models.ts", "export type DemoPlatform = ", 'export type DemoPlatform = "made_up" | ');
    const second = compile(folder.path);
    expect(second["made_too"]).toEqual(DIALECT_PLACES);
    const places = [first, second].flatMap((each) => each["made_up"] ?? []);
    expect([...new Set(places)].toSorted()).toEqual(PLATFORM_PLACES);
    expect(PLATFORM_PLACES.length).toBeGreaterThan(5);
  },
  COMPILER_TIMEOUT_MS,
);

/** Shares all but its path and its errors with the messages dialect. */
const MADE_UP_DIALECT = `
import type { Dialect } from "../dialect.ts";
import { messages } from "./messages.ts";
export const madeUp: Dialect = {
  ...messages,
  name: "made_up",
  upstreamErrors: {
    ...messages.upstreamErrors,
    readMessage: (body) => typeof body === "object" && body !== null && "detail" in body ? String(body.detail) : "",
  },
};
`;
const IMPORT = 'import { madeUp } from "./formats/made_up.ts";\n';
const ENDPOINT =
  '["POST", "/v2/made", "generate", forAll({ dialect: madeUp, platforms: ["made_up"], keySources: BEARER })]';

test(
  "a made-up platform with a dialect of its own is served, billed, and quoted when it refuses",
  async () => {
    using folder = makeTempFolder();
    using data = makeTempFolder();
    cpSync(join(ROOT, "src"), folder.join("src"), { recursive: true });
    cpSync(join(ROOT, "package.json"), folder.join("package.json"));
    symlinkSync(join(ROOT, "node_modules"), folder.join("node_modules"));
    /** Adds a first entry to the list or table with this name. */
    const add = (file: string, name: string, entry: string): void => {
      const path = folder.join(`src/${file}`);
      const text = readFileSync(path, "utf8");
      const changed = text.replace(
        new RegExp(`\\b${name}\\b[^;]*?(?:= |return )[\\[{]`),
        (start) => `${start}${entry}, `,
      );
      expect([file, name, changed !== text]).toEqual([file, name, true]);
      writeFileSync(path, changed);
    };
    const importInto = (file: string): void => {
      const path = folder.join(`src/${file}`);
      writeFileSync(path, IMPORT + readFileSync(path, "utf8"));
    };
    writeFileSync(folder.join("src/dialects/formats/made_up.ts"), MADE_UP_DIALECT);
    add("config/schema.ts", "PLATFORMS", '"made_up"');
    add("dialects/dialect.ts", "DIALECT_NAMES", '"made_up"');
    importInto("dialects/platforms.ts");
    add("dialects/platforms.ts", "forEachPlatform", 'made_up: make("made_up")');
    add(
      "dialects/platforms.ts",
      "PLATFORM_ROWS",
      'made_up: { dialect: madeUp, spoken: ["made_up"], prefixed: false, listPath: "/v1/models", answerPaths: ["/v2/made"], tools: [], demo: { keyHeader: BEARER, listKeyHeader: BEARER, posts: [] } }',
    );
    importInto("dialects/endpoints.ts");
    add("dialects/endpoints.ts", "LINES", `made_up: [${ENDPOINT}]`);
    add("dialects/endpoints.ts", "DIALECT_PATHS", 'made_up: "/v2/made"');
    add("dialects/endpoints.ts", "DIALECTS", "made_up: madeUp");
    add("billing/prices/sellers.ts", "MAKERS_OF", "made_up: []");

    const usage = { input_tokens: 5, output_tokens: 7 };
    const answer = { type: "message", model: "made-1", content: [{ type: "text", text: "Hello" }], usage };
    const upstream = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: async (request) => {
        const { model } = JSON.parse(await request.text());
        if (new URL(request.url).pathname !== "/v2/made") return new Response(null, { status: 404 });
        return model === "made-1"
          ? Response.json(answer)
          : Response.json({ detail: "No tea" }, { status: 401 });
      },
    });
    const secret = "sk-test-made_up";
    const config = {
      listen: { host: "127.0.0.1", port: 0 },
      channels: {
        made: { platform: "made_up", base_url: upstream.url.origin, credential: "credential-of-made-up" },
      },
      groups: { made: { platform: "made_up", multiplier: "1", channels: ["made"] } },
      keys: [{ name: "made", group: "made", secret }],
      prices: { "made-1": { input: "2.5", output: "10" } },
    };
    const program = [process.execPath, folder.join("src/main.ts")] as const;
    const gateway = await startGateway({ config, command: program, folder: data });
    const ask = async (model: string): Promise<Response> =>
      await fetch(`${gateway.url}/v2/made`, {
        method: "POST",
        headers: { authorization: `Bearer ${secret}` },
        body: JSON.stringify({ model, messages: [] }),
      });
    try {
      expect(await (await ask("made-1")).json()).toEqual(answer);
      const refused = await ask("made-2");
      expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining("401 No tea")]);
    } finally {
      await gateway.stop();
      await upstream.stop(true);
    }
    const [line] = gateway.ledger();
    expect(line).toMatchObject({ platform: "made_up", endpoint: "/v2/made", usage: { input: 5, output: 7 } });
    expect(line).toMatchObject({ price_source: "config", charge_usd: "0.0000825" });
  },
  COMPILER_TIMEOUT_MS,
);

/** A list of platforms or dialects that a test writes out stays green without a new one. */
test("no test writes out the list of platforms or of dialects", () => {
  const words = [...PLATFORMS, ...DIALECT_NAMES].map((word) => `"${word}"`).join("|");
  const list = new RegExp(`\\[\\s*(?:(?:${words}),?\\s*){4,}\\]`);
  const files = [...new Glob("**/*.ts").scanSync(join(ROOT, "test"))];
  expect(files.length).toBeGreaterThan(100);
  expect(files.filter((file) => list.test(read(`test/${file}`)))).toEqual([]);
});

function listChoices<T>(choice: Choice<T>): readonly T[] {
  return "one" in choice ? [choice.one] : Object.values(choice.by);
}

function listEndpoints(): Endpoint[] {
  const { exact, models } = buildTable("relay", "goog");
  const rows = [...exact.values()].flatMap((methods) => [...methods.values()]);
  return [
    ...rows
      .flatMap((row) => (row.kind === "target" ? listChoices(row.targets) : []))
      .map((row) => row.endpoint),
    ...[...models.values()].flatMap(({ single, verbs }) => [...listChoices(single), ...verbs.values()]),
    ...STORED_RESPONSE.map(([, , endpoint]) => endpoint),
  ];
}

describe("every platform", () => {
  test("can serve its endpoints: its channels understand the dialect, or a bridge converts it", () => {
    const passed = listEndpoints().filter(({ purpose }) => purpose !== "list" && purpose !== "model");
    expect(passed.length).toBeGreaterThan(20);
    for (const { platforms, dialect } of passed) {
      for (const platform of platforms) expect(() => findCrossing(dialect.name, platform)).not.toThrow();
    }
  });

  test("has the endpoints that its row names", () => {
    const labels = new Set(
      listEndpoints().flatMap(({ label, platforms }) => platforms.map((p) => `${p} ${label}`)),
    );
    for (const platform of PLATFORMS) {
      const { listPath, answerPaths } = PLATFORM_ROWS[platform];
      const prefix = readPathPrefix(platform, "relay");
      for (const path of [listPath, ...answerPaths])
        expect(labels).toContain(`${platform} ${prefix}${path.replace("{model}", "{id}")}`);
    }
  });

  test.each(PLATFORMS)(
    "%s is in the example config, the tables of endpoints and the routing tests",
    (platform) => {
      const { catalog } = checkConfigText(
        read("config.example.yaml"),
        join(ROOT, "config.example.yaml"),
        process.env,
        {
          missing: "keep",
        },
      );
      expect([...catalog.channels.values()].map((channel) => channel.platform)).toContain(platform);
      expect([...catalog.groups.values()].map((group) => group.platform)).toContain(platform);
      expect(read("docs/contract.md")).toMatch(new RegExp(`^\\| ${platform} \\|.*(GET|POST) /`, "m"));
      const [path = ""] = PLATFORM_ROWS[platform].answerPaths;
      const shown = readPathPrefix(platform, "<p>") + path.replace(/\{model\}.*/, "");
      expect(read("README.md").replaceAll(/<prefix>|relay(?=\/v1)/g, "<p>")).toContain(shown);
      expect(read("test/e2e/access/routing.test.ts")).toContain(`"${platform}"`);
    },
  );
});

/** Where the words may be written, and what they mean there. */
const PLACES: Readonly<Record<string, string>> = {
  "config/schema.ts": "the list of platforms",
  "config/yaml/scalars.ts": "path segments that a relay prefix would hide",
  "cli/setup/presets.ts": "the platform of each provider that `gateway init` knows",
  "cli/serve/demo.ts": "a field of a request body",
  "gateway/intake/conversation.ts": "names of fields in request bodies",
  "cli/tools/programs/copilot.ts": "Copilot's name of a wire format",
  "cli/tools/programs/continue.ts": "Continue's names of a model's roles",
  "cli/money/export/spans.ts": "the name of an operation in the conventions of OpenTelemetry",
  "cli/setup/import/ccr.ts": "the dialect of that gateway's only client",
  "cli/setup/import/draft.ts": "a server that no preset knows",
  "cli/setup/channels/change.ts": "the name of a channel's setting",
  "cli/setup/channels/add.ts": "the tool that speaks to a server that no preset knows",
  "billing/history/gemini.ts": "a field of Gemini CLI's chats",
  "billing/limits/client-tools.ts": "the member of a request that has its conversation",
};

test("code asks a platform's row, and compares no platform's or dialect's name", () => {
  const literal = new RegExp(`["'\`](?:${[...PLATFORMS, "chat"].join("|")})["'\`]`);
  const files = [...new Glob("**/*.ts").scanSync(join(ROOT, "src"))].map((file) =>
    file.replaceAll("\\", "/"),
  );
  expect(files.length).toBeGreaterThan(50);
  const strays = files
    .filter((file) => !/^(?:dialects|bridges|demo)\//.test(file) && PLACES[file] === undefined)
    .flatMap((file) =>
      read(`src/${file}`)
        .split("\n")
        .flatMap((line, index) => (literal.test(line) ? [`${file}:${index + 1} ${line.trim()}`] : [])),
    );
  expect(strays).toEqual([]);
});
