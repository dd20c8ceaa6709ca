// Tests what the gateway says about each setting and each command that only earlier versions had.

import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { stringify } from "yaml";
import { explainRetired, RETIRED_COMMANDS, RETIRED_SETTINGS } from "../../../src/config/file/retired.ts";
import { checkConfigText } from "../../../src/config/file/load.ts";
import { run } from "../../cli/driving.ts";
import { makeTempFolder } from "../../harness/temp.ts";

/** The settings that are retired whatever their value is, each with a value as an example. */
const OLD_VALUES: Readonly<Record<string, unknown>> = {
  "channels.*.warm": true,
  "channels.*.balance": "off",
  "channels.*.credit": {},
  "ledger.rotate.size": "1GiB",
  "keys.*.limits.agents": 10,
  "groups.*.limits.agents": 10,
};

/** The old command had these arguments. Without them, `sessions` would take `diff` for its own argument. */
const ARGUMENTS: Readonly<Record<string, readonly string[]>> = { "sessions diff": ["last", "db7f03b5"] };

const CONFIG = {
  listen: { port: 0 },
  channels: { main: { platform: "messages", base_url: "http://127.0.0.1:9", credential: "x" } },
  groups: { claude: { platform: "messages", channels: ["main"] } },
  keys: [{ name: "laptop", group: "claude", secret: "sk-laptop" }],
};

const NAMES: Readonly<Record<string, string | number>> = { channels: "main", groups: "claude", keys: 0 };

/** Returns the config with this setting, and the number of the line that has it. */
function configWith(place: string, value: unknown): { text: string; line: number } {
  const config = structuredClone(CONFIG);
  const steps = place.split(".");
  let node: object = config;
  for (const [index, step] of steps.slice(0, -1).entries()) {
    const name = step === "*" ? (NAMES[steps[index - 1] ?? ""] ?? "") : step;
    if (Reflect.get(node, name) === undefined) Reflect.set(node, name, {});
    node = Reflect.get(node, name);
  }
  const last = steps.at(-1) ?? "";
  Reflect.set(node, last, value);
  const text = stringify(config);
  const line = text.split("\n").findIndex((each) => each.trim().startsWith(`${last}:`)) + 1;
  return { text, line };
}

const rows = RETIRED_SETTINGS.flatMap((row) =>
  (row.values ?? [OLD_VALUES[row.place]]).map(
    (value) => [`${row.place}: ${JSON.stringify(value)}`, row, value] as const,
  ),
);
const harmless = rows.filter(([, { isGuard }]) => isGuard !== true);
const guards = rows.filter(([, { isGuard }]) => isGuard === true);

describe("P11: a retired setting gets a warning, or is refused with the edit to make", () => {
  test.each(harmless)(
    "%s is accepted with one warning that names its line",
    (_, { place, text: said }, value) => {
      expect(value).toBeDefined();
      const { text, line } = configWith(place, value);
      expect(line).toBeGreaterThan(0);
      const { warnings } = checkConfigText(text, "/gateway.yaml", {});
      expect(warnings).toEqual([expect.stringMatching(new RegExp(`^/gateway\\.yaml:${line}:\\d+: `))]);
      expect(warnings[0]).toEndWith(said);
    },
  );

  test.each(guards)(
    "%s is refused with the edit to make, and doctor prints that edit",
    async (_, { place, text: said }, value) => {
      using folder = makeTempFolder();
      const { text, line } = configWith(place, value);
      const path = folder.join("gateway.yaml");
      writeFileSync(path, text, { mode: 0o600 });
      const around = { folder: folder.path };
      for (const words of [["keys", "list"], ["doctor"]]) {
        const { status, stdout, stderr } = await run(around, ...words);
        const shown = `${stdout}${stderr}`.replaceAll(/\s+/g, " ");
        expect(status).not.toBe(0);
        expect(shown).toContain(`gateway.yaml:${line}:`);
        expect(shown).toContain(said);
      }
    },
  );
});

test.each(Object.keys(RETIRED_COMMANDS))(
  "`gateway %s` answers in one line with what to use instead",
  async (words) => {
    using folder = makeTempFolder();
    const { status, stdout, stderr } = await run(
      { folder: folder.path, env: { COLUMNS: "1000" } },
      ...words.split(" "),
      ...(ARGUMENTS[words] ?? []),
    );
    expect([status, stdout]).toEqual([2, ""]);
    expect(stderr).toBe(`gateway: ${explainRetired(words)}\n`);
  },
);
