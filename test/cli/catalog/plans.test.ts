import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";
import { type Outcome, run } from "../driving.ts";

const CONFIG = `channels: { a: { platform: messages, base_url: https://a.example, credential: x } }
groups:
  claude: { platform: messages, multiplier: 1.0, channels: [a], description: at cost }
  max: { platform: messages, multiplier: 0.20, channels: [a], exclusive: true }
plans:
  gold:
    groups: [max]
    active: false # bought in spring
  past: { groups: [max], active: true, until: 2020-01-01 }
`;

let folder: TempFolder;
beforeEach(() => {
  folder = makeTempFolder();
  writeFileSync(folder.join("gateway.yaml"), CONFIG, { mode: 0o600 });
});
afterEach(() => folder.remove());

const gateway = (...args: string[]): Promise<Outcome> => run({ folder: folder.path }, ...args);
const text = (): string => readFileSync(folder.join("gateway.yaml"), "utf8");
const names = async (...flags: string[]): Promise<string[]> => {
  const { stdout } = await gateway("groups", "list", "--json", ...flags);
  return JSON.parse(stdout).map(
    ({ name, selectable }: { name: string; selectable: boolean }) => `${name} ${selectable}`,
  );
};

test("--config can come before the command, and one after the command has precedence", async () => {
  const list = (...words: string[]) => run({ folder: "/" }, ...words);
  const path = folder.join("gateway.yaml");
  const { stdout } = await list("groups", "list", "--config", path);
  expect(stdout).toContain("at cost");
  expect((await list("--config", path, "groups", "list")).stdout).toBe(stdout);
  expect((await list("--config", "/none.yaml", "groups", "list", "--config", path)).stdout).toBe(stdout);
  expect((await list("--config", "/none.yaml", "groups", "list")).status).toBe(2);
});

describe("groups list", () => {
  test("--json has the fields of the contract, decimals as text", async () => {
    const { stdout } = await gateway("groups", "list", "--json");
    expect(JSON.parse(stdout)).toEqual([
      {
        name: "claude",
        platform: "messages",
        multiplier: "1",
        description: "at cost",
        exclusive: false,
        convert: false,
        selectable: true,
        plans: [],
        channels: ["a"],
        default_model: null,
        limits: {},
      },
    ]);
  });

  test("an exclusive group is listed while its plan is active; --all always lists it, marked", async () => {
    expect(await names()).toEqual(["claude true"]);
    expect(await names("--all")).toEqual(["claude true", "max false"]);
    expect((await gateway("groups", "list", "--all")).stdout).toMatch(
      /^max +messages +×0\.2 +plan inactive/m,
    );
    await gateway("plans", "activate", "gold");
    expect(await names()).toEqual(["claude true", "max true"]);
    await gateway("plans", "deactivate", "gold");
    expect(await names()).toEqual(["claude true"]);
  });
});

describe("plans", () => {
  test("list shows which plans are in force", async () => {
    const { stdout } = await gateway("plans", "list", "--json");
    expect(JSON.parse(stdout)).toEqual([
      { name: "gold", groups: ["max"], active: false, until: null, in_force: false },
      { name: "past", groups: ["max"], active: true, until: "2020-01-01T00:00:00Z", in_force: false },
    ]);
    expect((await gateway("plans", "list")).stdout).toMatch(/^past +ended +2020-01-01 +max$/m);
  });

  test("activate and deactivate write `active`, and `until` only if given", async () => {
    await gateway("plans", "activate", "gold");
    expect(text()).toBe(CONFIG.replace("active: false #", "active: true #"));
    await gateway("plans", "activate", "gold", "--until", "2099-01-31");
    expect(text()).toContain("active: true # bought in spring\n    until: 2099-01-31\n");
    await gateway("plans", "activate", "gold", "--until", "never");
    await gateway("plans", "deactivate", "gold");
    expect(text()).toBe(CONFIG);
  });

  test("if the plans of all groups are inactive, the error says so", async () => {
    writeFileSync(
      folder.join("gateway.yaml"),
      CONFIG.replace(/ {2}claude: .*\n/, "").replace(/ {2}past: .*\n/, ""),
    );
    const { status, stderr } = await gateway("groups", "list");
    expect(stderr).toBe(
      "The plans of all groups are inactive: `gateway groups list --all` shows them, `gateway plans activate` activates one.\n",
    );
    expect(status).toBe(0);
    const models = await gateway("models");
    expect(models).toEqual({ status: 0, stdout: "", stderr });
  });

  test("the advice for a plan that has ended includes --until", async () => {
    const add = (plans: string) => {
      writeFileSync(
        folder.join("gateway.yaml"),
        `${CONFIG.slice(0, CONFIG.indexOf("plans:"))}plans:\n${plans}`,
      );
      return gateway("keys", "add", "--name", "x", "--group", "max");
    };
    const ended = await add("  past: { groups: [max], active: true, until: 2020-01-01 }\n");
    expect(ended.stderr).toContain("`gateway plans activate past --until DATE` activates the plan.");
    const paused = await add("  gold: { groups: [max], active: false, until: 2099-01-01 }\n");
    expect(paused.stderr).toContain("`gateway plans activate gold` activates the plan.");
  });

  test.each([
    ["an unknown plan", 1, 'There is no plan "glod" (did you mean "gold"?).', ["glod"]],
    ["a plan that ended, without a new end", 2, "--until is missing", ["past"]],
    ["an end that has passed", 2, "--until: 2020-01-01 has passed.", ["gold", "--until", "2020-01-01"]],
    ["an end beyond the calendar", 2, "--until: expected a date or", ["gold", "--until", "99999999d"]],
    ["an end that is none", 2, "--until: expected a date or a duration", ["gold", "--until", "soon"]],
  ])("activate refuses %s", async (_, expected, sentence, args) => {
    const { status, stderr } = await gateway("plans", "activate", ...args);
    expect(stderr).toContain(sentence);
    expect([status, text()]).toEqual([expected, CONFIG]);
  });
});
