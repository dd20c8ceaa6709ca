// Tests the commands that change groups, plans and prices in the config, and keep its comments and order.

import { describe, expect, test } from "bun:test";
import { useFolder } from "../../harness/temp.ts";
import { type Outcome, run } from "../driving.ts";

const CONFIG = `# mine
channels:
  main: { platform: messages, base_url: "https://a.example", credential: x } # theirs
  openai: { platform: responses, base_url: "https://o.example", credential: y }
groups:
  # the usual one
  claude: { platform: messages, channels: [main] } # at cost
keys:
  - { name: laptop, group: claude, secret: sk-laptop } # by hand
`;

const folder = useFolder(CONFIG);
const { catalog, text } = folder;
const gateway = (...args: string[]): Promise<Outcome> => run({ folder: folder.path }, ...args);

describe("`gateway groups` changes the groups of the config", () => {
  test("P18: `groups add`, `groups set` and `groups remove` leave the rest of the file as it is", async () => {
    const flags = ["--channel", "main", "--multiplier", "0.2", "--exclusive", "--description", "for max"];
    const added = await gateway("groups", "add", "max", ...flags);
    expect(added.stderr).toBe(
      'Added the group "max".\nKeys can use it while a plan is active: gateway plans add PLAN --group max\n',
    );
    expect(catalog().groups.get("max")).toMatchObject({
      platform: "messages",
      multiplier: "0.2",
      exclusive: true,
      description: "for max",
    });
    const set = await gateway("groups", "set", "max", "multiplier=0.25", "description=none");
    expect(set.stderr).toBe('Changed the group "max": multiplier 0.25, no description.\n');
    expect(catalog().groups.get("max")).toMatchObject({ multiplier: "0.25", description: "" });
    expect((await gateway("groups", "remove", "max", "--yes")).status).toBe(0);
    expect(text()).toBe(CONFIG);
  });

  test.each([
    [["add", "claude", "--channel", "main"], 1, 'There is already a group "claude".'],
    [["add", "x y", "--channel", "main"], 2, '"x y" cannot be a name'],
    [["add", "new"], 2, "--channel is missing"],
    [["add", "new", "--channel", "mian"], 1, 'There is no channel "mian" (did you mean "main"?)'],
    [["add", "new", "--channel", "main", "openai"], 2, "is of another platform than its group"],
    [["set", "claude", "platform=relay"], 2, 'There is no setting "platform"'],
    [["set", "claude", "channels=none"], 2, "channels cannot be removed."],
    [["set", "claude", "multiplier=twice"], 2, "groups.claude.multiplier"],
    [["set", "cluade", "multiplier=2"], 1, '(did you mean "claude"?)'],
    [["remove", "claude", "--yes"], 1, "it has 1 key (laptop). Use `gateway keys move` first."],
  ])("`gateway groups` refuses %j", async (args, exitStatus, problem) => {
    const { status, stderr } = await gateway("groups", ...args);
    expect(stderr).toContain(problem);
    expect(status).toBe(exitStatus);
    expect(text()).toBe(CONFIG);
  });
});

test("the words create, new, delete, rm, ls and version are understood, and so is `keys add NAME` without --name", async () => {
  const groups = ["create a --channel main", "new b --channel main", "delete a --yes", "rm b --yes"];
  const keys = ["keys add phone --group claude", "keys rm phone --yes"];
  for (const line of [...groups.map((words) => `groups ${words}`), ...keys])
    expect([line, (await gateway(...line.split(" "))).status]).toEqual([line, 0]);
  expect(text()).toBe(CONFIG);
  for (const what of ["keys", "groups", "plans", "channels", "recordings", "credentials"])
    expect(await gateway(what, "ls")).toEqual(await gateway(what));
  expect(await gateway("models", "ls", "--json")).toEqual(await gateway("models", "--json"));
  expect(await gateway("version")).toEqual(await gateway("--version"));
});

describe("`gateway plans` changes the plans of the config", () => {
  test("`gateway plans` adds and removes plans", async () => {
    await gateway("groups", "add", "max", "--channel", "main", "--exclusive");
    expect((await gateway("plans", "add", "pro", "--group", "max")).stderr).toBe(
      'Added the plan "pro". `gateway plans activate pro` activates it.\n',
    );
    expect((await gateway("plans", "add", "team", "--group", "max", "claude", "--active")).status).toBe(0);
    expect(catalog().plans.get("team")).toMatchObject({ groups: ["max", "claude"], active: true });

    const needed = await gateway("groups", "remove", "max", "--yes");
    expect(needed.stderr).toContain('"pro" has no other group. Use `gateway plans remove pro` first.');
    expect((await gateway("plans", "remove", "pro", "--yes")).stderr).toBe('Removed the plan "pro".\n');
    expect((await gateway("groups", "remove", "max", "--yes")).status).toBe(0);
    expect(catalog().plans.get("team")?.groups).toEqual(["claude"]);
  });

  test("`gateway plans` refuses an unknown group, a taken name and a removal without --yes", async () => {
    expect((await gateway("plans", "add", "pro", "--group", "cluade")).stderr).toContain(
      '(did you mean "claude"?)',
    );
    await gateway("plans", "add", "pro", "--group", "claude");
    expect((await gateway("plans", "add", "pro", "--group", "claude")).stderr).toContain(
      "There is already a plan",
    );
    expect((await gateway("plans", "remove", "pro")).stderr).toContain("--yes is missing");
    expect((await gateway("plans", "remove", "por", "--yes")).stderr).toContain('(did you mean "pro"?)');
  });
});

describe("`gateway prices set` changes the prices of the config", () => {
  test("`gateway prices set` sets, changes and removes prices", async () => {
    const { status, stderr } = await gateway("prices", "set", "my/model-1.5", "input=3", "output=15");
    expect(stderr).toBe('In the config, "my/model-1.5" costs input $3, output $15 from now on.\n');
    expect(status).toBe(0);
    await gateway("prices", "set", "my/model-1.5", "output=12.5", "cache_read=0.3");
    expect(catalog().prices.get("my/model-1.5")).toEqual({ input: "3", output: "12.5", cache_read: "0.3" });
    expect(text()).toStartWith(CONFIG);
    const all = ["input=none", "output=none", "cache_read=none"];
    expect((await gateway("prices", "set", "my/model-1.5", ...all)).stderr).toContain("no prices for");
    expect(catalog().prices.get("my/model-1.5") ?? {}).toEqual({});
  });

  test.each([
    [["m", "imput=3"], 'There is no setting "imput" (did you mean "input"?)'],
    [["m", "input=cheap"], "prices.m.input"],
  ])("`gateway prices set` refuses %j", async (args, problem) => {
    const { status, stderr } = await gateway("prices", "set", ...args);
    expect(stderr).toContain(problem);
    expect(status).toBe(2);
    expect(text()).toBe(CONFIG);
  });
});
