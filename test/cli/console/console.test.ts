import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { loadConfig } from "../../../src/config/file/load.ts";
import { type DemoUpstream, startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { keyOf, makeConfig, startGateway } from "../../harness/gateway.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";
import { KEYS, run, runOnTerminal, type TerminalRun } from "../driving.ts";

const CONFIG = `channels:
  a: { platform: messages, base_url: http://127.0.0.1:9, credential: x }
  o: { platform: responses, base_url: http://127.0.0.1:9, credential: x }
groups:
  claude: { platform: messages, multiplier: 1, channels: [a], description: Anthropic at cost }
  codex: { platform: responses, multiplier: 0.80, channels: [o], description: "OpenAI, 20% off" }
  max: { platform: messages, multiplier: 0.2, channels: [a], exclusive: true }
plans: { gold: { groups: [max] } }
keys:
  - { name: laptop, group: claude, secret: sk-laptop }
`;
const ESCAPE = "\u001B";
const MAIN_MENU = "What do you want to do?";

let folder: TempFolder;
beforeEach(() => {
  folder = makeTempFolder();
  writeFileSync(folder.join("gateway.yaml"), CONFIG, { mode: 0o600 });
});
afterEach(() => folder.remove());
const text = () => readFileSync(folder.join("gateway.yaml"), "utf8");
const keyNamed = (name: string) => loadConfig(folder.join("gateway.yaml"), {}).catalog.keys.get(name);

/** Goes down to the entry of a menu that is shown, and takes it. */
async function pick(screen: TerminalRun, steps: number, label: string): Promise<void> {
  if (steps > 0) {
    screen.press(KEYS.down.repeat(steps));
    await screen.shows(`● ${label}`);
  }
  screen.press(KEYS.enter);
}

async function openConsole(...args: string[]): Promise<TerminalRun> {
  const screen = runOnTerminal({ folder: folder.path }, ...args);
  await screen.shows("○ Leave");
  return screen;
}

async function openKeys(): Promise<TerminalRun> {
  const screen = await openConsole("console");
  await pick(screen, 0, "API keys");
  await screen.shows("● Create a key");
  return screen;
}

async function openLaptop(): Promise<TerminalRun> {
  const screen = await openKeys();
  await pick(screen, 1, "Change a key");
  await screen.shows("● laptop · claude (messages, ×1)");
  screen.press(KEYS.enter);
  await screen.shows("○ Remove");
  return screen;
}

async function leave(screen: TerminalRun): Promise<void> {
  screen.press(KEYS.interrupt);
  expect(await screen.status).toBe(0);
}

const showsCursor = ({ raw }: TerminalRun): boolean =>
  raw().lastIndexOf("\u001B[?25h") > raw().lastIndexOf("\u001B[?25l");

test("plain gateway on a terminal is the console, and its last entry ends it", async () => {
  const screen = await openConsole();
  screen.press(KEYS.up);
  await screen.shows("● Leave");
  screen.press(KEYS.enter);
  expect(await screen.status).toBe(0);
  expect(showsCursor(screen)).toBe(true);
  expect(text()).toBe(CONFIG);
});

test.each(["--config FILE", "--config=FILE"])("%s alone opens the console with that config", async (line) => {
  const other = folder.join("other.yaml");
  writeFileSync(other, CONFIG, { mode: 0o600 });
  const env = { GATEWAY_CONFIG: folder.join("missing.yaml") };
  const words = line.split(" ").map((word) => word.replace("FILE", other));
  const screen = runOnTerminal({ folder: folder.path, env }, ...words);
  await screen.shows(MAIN_MENU);
  await leave(screen);
  expect((await run({ folder: folder.path, env }, ...words)).stdout).toContain("Usage: gateway");
});

test("without a terminal plain gateway prints help, and the console says what it needs", async () => {
  const plain = await run({ folder: folder.path });
  expect(plain.status).toBe(0);
  expect(plain.stdout).toContain("Usage: gateway");
  const asked = await run({ folder: folder.path }, "console");
  expect(asked.status).toBe(2);
  expect(asked.stderr).toContain("The console needs a terminal");
});

describe("keys", () => {
  test("keys are listed, and created in a group chosen from a dropdown", async () => {
    const screen = await openKeys();
    expect(Bun.stripANSI(screen.raw())).toMatch(/laptop +claude +messages +active/);
    await pick(screen, 0, "Create a key");
    await screen.shows("Name of the key");
    screen.press(`ci${KEYS.enter}`);
    await screen.shows("○ codex   responses  ×0.8  OpenAI, 20% off");
    await pick(screen, 1, "codex");
    await screen.shows('"ci" is bound to codex (responses, ×0.8)');
    await screen.shows("● Create a key");
    expect(screen.raw()).toMatch(/sk-[0-9A-Za-z]{43}/);
    await leave(screen);
    expect(keyNamed("ci")?.group.name).toBe("codex");
  });

  test("keys are disabled and enabled again", async () => {
    for (const [label, disabled] of [
      ["Disable", true],
      ["Enable", false],
    ] as const) {
      const screen = await openKeys();
      await pick(screen, 1, "Change a key");
      await screen.shows("● laptop");
      screen.press(KEYS.enter);
      await screen.shows(`○ ${label}`);
      await pick(screen, 1, label);
      await screen.shows("● Create a key");
      await leave(screen);
      expect(keyNamed("laptop")?.disabled).toBe(disabled);
    }
  });

  test("keys get a new secret or are removed only after a confirmation", async () => {
    const before = keyNamed("laptop")?.secretSha256;
    const screen = await openLaptop();
    await pick(screen, 2, "Create a new secret");
    await screen.shows('Create a new secret for "laptop"?');
    screen.press(KEYS.enter);
    await screen.shows("● Create a key");
    expect(keyNamed("laptop")?.secretSha256).toBe(before ?? "");
    await pick(screen, 1, "Change a key");
    await screen.shows("● laptop");
    screen.press(KEYS.enter);
    await screen.shows("○ Remove");
    await pick(screen, 2, "Create a new secret");
    await screen.shows('Create a new secret for "laptop"?');
    screen.press("y");
    await screen.shows("has a new secret, shown only this once");
    await leave(screen);
    expect(keyNamed("laptop")?.secretSha256).not.toBe(before ?? "");

    const again = await openLaptop();
    await pick(again, 5, "Remove");
    await again.shows('Remove the key "laptop" for good?');
    again.press("y");
    await again.shows('Removed the key "laptop".');
    await leave(again);
    expect(keyNamed("laptop")).toBeUndefined();
  });
});

test("a plan is activated, with an end, and deactivated", async () => {
  const screen = await openConsole("console");
  await pick(screen, 1, "Groups and plans");
  await screen.shows("plan inactive");
  await screen.shows("● Activate a plan");
  await pick(screen, 0, "Activate a plan");
  await screen.shows("● gold · max");
  screen.press(KEYS.enter);
  await screen.shows("Active until when?");
  screen.press(`x${KEYS.enter}`);
  await screen.shows("Enter a duration or a future date");
  screen.press(`${"\u007F".repeat(10)}30d${KEYS.enter}`);
  await screen.shows('The plan "gold" is active');
  await screen.shows("○ Deactivate a plan");
  await pick(screen, 1, "Deactivate a plan");
  await screen.shows("● gold · max");
  screen.press(KEYS.enter);
  await screen.shows("is no longer active");
  await leave(screen);
  expect(text()).toContain("active: false");
});

describe("the session", () => {
  test("continues after an error and shows it", async () => {
    const screen = await openConsole("console");
    await pick(screen, 5, "Spending");
    await screen.shows("● By day");
    screen.press(KEYS.enter);
    await screen.shows("● Today");
    screen.press(KEYS.enter);
    await screen.shows("There is no ledger at");
    await screen.shows("● By day");
    await leave(screen);
  });

  test("continues while the config file is broken, and after it is fixed", async () => {
    const screen = await openKeys();
    writeFileSync(folder.join("gateway.yaml"), "groups: 7");
    screen.press(KEYS.enter);
    await screen.shows("gateway.yaml:1:");
    await screen.shows(MAIN_MENU);
    writeFileSync(folder.join("gateway.yaml"), CONFIG);
    screen.press(KEYS.enter);
    await screen.shows("● Create a key");
    await leave(screen);
  });

  test("goes back one question at Escape", async () => {
    const screen = await openLaptop();
    await pick(screen, 3, "Move to another group");
    await screen.shows("● claude");
    screen.press(ESCAPE);
    await screen.shows("● Create a key");
    expect(screen.raw()).not.toContain("Cancelled");
    expect(screen.raw().match(/NAME +GROUP/g)).toHaveLength(1);
    screen.press(ESCAPE);
    await screen.shows(MAIN_MENU);
    screen.press(ESCAPE);
    expect(await screen.status).toBe(0);
    expect(text()).toBe(CONFIG);
  });

  test("ends cleanly at Ctrl-C, also in a question within an entry", async () => {
    for (const question of [null, "for good?"]) {
      const screen = await openLaptop();
      if (question !== null) {
        await pick(screen, 5, "Remove");
        await screen.shows(question);
      }
      await leave(screen);
      expect(showsCursor(screen)).toBe(true);
      expect(text()).toBe(CONFIG);
    }
  });
});

describe("with a gateway that runs", () => {
  let upstream: DemoUpstream;
  beforeEach(() => {
    upstream = startDemoUpstream();
  });
  afterEach(() => upstream.stop());

  test("channels, models, spending and the live view are there", async () => {
    const gateway = await startGateway({ config: makeConfig(upstream), folder });
    const messages = [{ role: "user", content: "Hello" }];
    await fetch(`${gateway.url}/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": keyOf("messages"), "content-type": "application/json" },
      body: JSON.stringify({ model: "claude-haiku-4-5", max_tokens: 64, messages }),
    }).then((answer) => answer.text());
    const screen = await openConsole("console");

    await pick(screen, 2, "Channels");
    await screen.shows("○ Disable a channel");
    expect(Bun.stripANSI(screen.raw())).toMatch(/messages +.*available/);
    await pick(screen, 3, "Disable a channel");
    await screen.shows("● messages");
    screen.press(KEYS.enter);
    await screen.shows('The channel "messages" is disabled');
    screen.press(ESCAPE);
    await screen.shows(MAIN_MENU);

    await pick(screen, 3, "Models");
    await screen.shows("● All groups");
    await pick(screen, 1, "messages");
    await screen.shows("claude-hai");
    await screen.shows(MAIN_MENU);

    await pick(screen, 5, "Spending");
    await screen.shows("○ By model");
    await pick(screen, 4, "By model");
    await screen.shows("● Today");
    screen.press(KEYS.enter);
    await screen.shows("CHARGED $");
    await screen.shows("● By day");
    screen.press(ESCAPE);
    await screen.shows(MAIN_MENU);

    await pick(screen, 6, "Live view");
    await screen.shows("q: quit");
    screen.press("q");
    await screen.shows(MAIN_MENU);
    await pick(screen, 6, "Live view");
    await screen.shows("q: quit");
    await leave(screen);
    expect(showsCursor(screen)).toBe(true);
    expect(screen.raw()).toEndWith("\u001B[?1049l");
    await gateway.stop();
  });
});

describe("the config is changed from the menus", () => {
  const load = () => loadConfig(folder.join("gateway.yaml"), {}).catalog;

  test("the menus set a key's limit, with the check of the command", async () => {
    const screen = await openLaptop();
    await pick(screen, 4, "Set a limit");
    await screen.shows("● usd_per_day · none");
    screen.press(KEYS.enter);
    await screen.shows("At most how many USD?");
    screen.press(`much${KEYS.enter}`);
    await screen.shows("usd_per_day: expected an amount in USD");
    // The question stays until its answer is right.
    screen.press(`${KEYS.backspace.repeat("much".length)}2.5${KEYS.enter}`);
    await screen.shows("is limited to usd_per_day 2.5");
    await leave(screen);
    expect(load().keys.get("laptop")?.limits.usdPerDay).toBe("2.5");
  });

  test("the menus add, limit, change and remove a group", async () => {
    const screen = await openConsole("console");
    await pick(screen, 1, "Groups and plans");
    await screen.shows("● Activate a plan");
    await pick(screen, 3, "Add a group");
    await screen.shows("Name of the group");
    screen.press(`cheap${KEYS.enter}`);
    await screen.shows("Which channels serve it?");
    screen.press(`${KEYS.space}${KEYS.enter}`);
    await screen.shows("Multiplier");
    screen.press(KEYS.enter);
    await screen.shows("Description");
    screen.press(`for tests${KEYS.enter}`);
    await screen.shows("Only while a plan");
    screen.press(KEYS.enter);
    await screen.shows('Added the group "cheap".');
    expect(load().groups.get("cheap")).toMatchObject({ platform: "messages", description: "for tests" });

    const open = async (steps: number, label: string): Promise<void> => {
      await screen.shows("● Activate a plan");
      await pick(screen, 4, "Change a group");
      await screen.shows("● claude");
      await pick(screen, 3, "cheap");
      await screen.shows("● Change a setting");
      await pick(screen, steps, label);
    };
    await open(0, "Change a setting");
    await screen.shows("● channels");
    await pick(screen, 1, "multiplier");
    await screen.shows("New value of multiplier");
    screen.press(`0.7${KEYS.enter}`);
    await screen.shows("multiplier 0.7.");
    await open(1, "Set a limit");
    await screen.shows("● usd_per_day · none");
    await pick(screen, 1, "usd_per_month · none");
    await screen.shows("At most how many USD?");
    screen.press(`50${KEYS.enter}`);
    await screen.shows("is limited to usd_per_month 50");
    expect(load().groups.get("cheap")).toMatchObject({ multiplier: "0.7", limits: { usdPerMonth: "50" } });
    await open(2, "Remove");
    await screen.shows("for good?");
    screen.press("y");
    await screen.shows('Removed the group "cheap"');
    await leave(screen);
    expect(text()).toBe(CONFIG);
  });

  test("the menus add and remove a plan", async () => {
    const screen = await openConsole("console");
    await pick(screen, 1, "Groups and plans");
    await screen.shows("● Activate a plan");
    await pick(screen, 1, "Add a plan");
    await screen.shows("Name of the plan");
    screen.press(`silver${KEYS.enter}`);
    await screen.shows("Which groups does it include?");
    screen.press(`${KEYS.space}${KEYS.enter}`);
    await screen.shows("Is it bought already?");
    screen.press("y");
    await screen.shows('Added the plan "silver".');
    expect(load().plans.get("silver")).toMatchObject({ groups: ["claude"], active: true });
    await screen.shows("● Activate a plan");
    await pick(screen, 3, "Remove a plan");
    await screen.shows("● gold");
    await pick(screen, 1, "silver");
    await screen.shows("for good?");
    screen.press("y");
    await screen.shows('Removed the plan "silver".');
    await leave(screen);
    expect(text()).toBe(CONFIG);
  });

  test("the menus add a channel with a check, change and remove it, and set a price", async () => {
    const upstream = startDemoUpstream({ platform: "messages" });
    const screen = await openConsole("console");
    await pick(screen, 2, "Channels");
    await screen.shows("● Refresh");
    await pick(screen, 5, "Add a channel");
    await screen.shows("Which provider?");
    screen.press(KEYS.up);
    await screen.shows("● Another one, by its base URL");
    screen.press(KEYS.enter);
    await screen.shows("The base URL");
    screen.press(`${upstream.url}${KEYS.enter}`);
    await screen.shows("Name of the channel");
    screen.press(`spare${KEYS.enter}`);
    await screen.shows("● A new group");
    await pick(screen, 1, "claude (messages)");
    await screen.shows("Which platform is it?");
    screen.press(KEYS.enter);
    await screen.shows("where is the credential?");
    screen.press(KEYS.enter);
    await screen.shows("The credential");
    screen.press(`pasted-12345${KEYS.enter}`);
    await screen.shows('Added the channel "spare" to the group "claude".');
    expect(load().channels.get("spare")?.credential).toBe("pasted-12345");

    const open = async (steps: number, label: string): Promise<void> => {
      await screen.shows("● Refresh");
      await pick(screen, 6, "Change a channel");
      await screen.shows("● a");
      await pick(screen, 2, "spare");
      await screen.shows("● Change a setting");
      await pick(screen, steps, label);
    };
    await open(0, "Change a setting");
    await screen.shows("● base_url");
    await pick(screen, 2, "priority");
    await screen.shows("New value of priority");
    screen.press(`3${KEYS.enter}`);
    await screen.shows('Changed the channel "spare": priority 3.');
    await open(1, "Change the credential");
    await screen.shows("The new credential");
    screen.press(`second-12345${KEYS.enter}`);
    await screen.shows('Changed the channel "spare": credential.');
    expect(load().channels.get("spare")).toMatchObject({ priority: 3, credential: "second-12345" });
    expect(screen.raw()).not.toMatch(/pasted-|second-/);
    await open(2, "Remove");
    await screen.shows("for good?");
    screen.press("y");
    await screen.shows('Removed the channel "spare" from the group "claude"');
    expect(text()).toBe(CONFIG);

    await screen.shows("● Refresh");
    screen.press(ESCAPE);
    await screen.shows(MAIN_MENU);
    await pick(screen, 4, "Prices");
    await screen.shows("● Models in use without a price");
    await pick(screen, 2, "Set a price");
    await screen.shows("Which model?");
    screen.press(`mine${KEYS.enter}`);
    await screen.shows("Prices in USD per million tokens");
    screen.press(`input=3 output=15${KEYS.enter}`);
    await screen.shows('In the config, "mine" costs input $3, output $15.');
    await leave(screen);
    expect(load().prices.get("mine")).toEqual({ input: "3", output: "15" });
    upstream.stop();
  });
});
