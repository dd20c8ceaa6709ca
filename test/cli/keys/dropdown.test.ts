import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { sha256Hex } from "../../../src/lib/secret.ts";
import { useFolder } from "../../harness/temp.ts";
import { KEYS, runOnTerminal } from "../driving.ts";

const CONFIG = `channels:
  a: { platform: messages, base_url: https://a.example, credential: x }
  o: { platform: responses, base_url: https://o.example, credential: x }
groups:
  claude: { platform: messages, multiplier: 1, channels: [a], description: Anthropic at cost }
  codex: { platform: responses, multiplier: 0.80, channels: [o], description: "OpenAI, 20% off 漢字" }
  bare: { platform: messages, channels: [a] }
  max: { platform: messages, multiplier: 0.2, channels: [a], exclusive: true }
plans: { gold: { groups: [max] } }
keys:
  - { name: laptop, group: claude, secret: sk-laptop }
`;

const folder = useFolder(CONFIG);
const { catalog, text } = folder;
const groupOf = (name: string) => catalog().keys.get(name)?.group.name;

test("P33: `keys add` offers the selectable groups with platform, multiplier and description", async () => {
  const screen = runOnTerminal({ folder: folder.path }, "keys", "add", "--name", "new");
  await screen.shows("● claude  messages   ×1    Anthropic at cost");
  await screen.shows("○ codex   responses  ×0.8  OpenAI, 20% off 漢字");
  await screen.shows("○ bare    messages   ×1");
  screen.press(KEYS.down);
  await screen.shows("● codex");
  screen.press(KEYS.enter);
  await screen.shows('"new" is bound to codex (responses, ×0.8)');
  expect(await screen.status).toBe(0);
  expect(screen.raw()).not.toContain("max");
  expect(groupOf("new")).toBe("codex");
});

test("P28: on a terminal, no command asks for a value that a flag has given", async () => {
  const silent = async (...words: string[]): Promise<void> => {
    const screen = runOnTerminal({ folder: folder.path }, ...words);
    expect([words.join(" "), await screen.status]).toEqual([words.join(" "), 0]);
    expect(screen.raw()).not.toMatch(/[◆◇●○]/);
  };
  await silent("keys", "add", "--name", "new", "--group", "codex");
  await silent("keys", "move", "new", "--group", "claude");
  await silent("keys", "remove", "new", "--yes");
  await silent("plans", "remove", "gold", "--yes");
  expect(groupOf("new")).toBeUndefined();
});

test("P28, P29: no command asks if stderr, which shows the prompts, is not a terminal", async () => {
  const captured = folder.join("messages");
  const screen = runOnTerminal({ folder: folder.path, captured, what: 2 }, "keys", "add", "--name", "new");
  expect(await screen.status).toBe(2);
  expect(readFileSync(captured, "utf8")).toContain("--group");
});

test("a taken name is reported during typing, and another can be typed", async () => {
  const screen = runOnTerminal({ folder: folder.path }, "keys", "add", "--group", "codex");
  await screen.shows("Name of the key");
  screen.press(`laptop${KEYS.enter}`);
  await screen.shows('There is already a key "laptop".');
  screen.press(`-2${KEYS.enter}`);
  await screen.shows('"laptop-2" is bound to codex');
  expect(await screen.status).toBe(0);
});

test("the dropdown shows while stdout is captured, and only the secret is captured", async () => {
  const captured = folder.join("secret");
  const screen = runOnTerminal({ folder: folder.path, captured }, "keys", "add", "--name", "new");
  await screen.shows("● claude");
  screen.press(KEYS.enter);
  await screen.shows("is bound to claude");
  expect(await screen.status).toBe(0);
  const secret = readFileSync(captured, "utf8");
  expect(secret).toMatch(/^sk-[0-9A-Za-z]{43}\n$/);
  expect(screen.raw()).not.toContain(secret.trim());
  expect(text()).toContain(sha256Hex(secret.trim()));
});

test("Ctrl-C at the dropdown changes nothing, shows the cursor again and exits with 130", async () => {
  const screen = runOnTerminal({ folder: folder.path }, "keys", "add", "--name", "new");
  await screen.shows("● claude");
  screen.press(KEYS.interrupt);
  expect(await screen.status).toBe(130);
  expect(screen.raw().lastIndexOf("\u001B[?25h")).toBeGreaterThan(screen.raw().lastIndexOf("\u001B[?25l"));
  expect(screen.raw()).toContain("Cancelled: nothing was changed.");
  expect(screen.raw()).not.toContain("sk-");
  expect(text()).toBe(CONFIG);
});

test("`keys move` lets the user choose a group, and `keys remove` asks before it removes a key", async () => {
  const move = runOnTerminal({ folder: folder.path }, "keys", "move", "laptop");
  await move.shows("● claude");
  move.press(KEYS.down);
  await move.shows("● codex");
  move.press(KEYS.enter);
  expect(await move.status).toBe(0);
  expect(groupOf("laptop")).toBe("codex");

  const keep = runOnTerminal({ folder: folder.path }, "keys", "remove", "laptop");
  await keep.shows('Remove the key "laptop" for good?');
  keep.press(KEYS.enter);
  expect(await keep.status).toBe(1);
  expect(groupOf("laptop")).toBe("codex");

  const remove = runOnTerminal({ folder: folder.path }, "keys", "remove", "laptop");
  await remove.shows('Remove the key "laptop" for good?');
  remove.press("y");
  expect(await remove.status).toBe(0);
  expect(groupOf("laptop")).toBeUndefined();
});

test.each([
  "keys list",
  "channels",
  "usage yesterday",
  "doctor",
  "keys lst",
  "--help",
  "keys add --name new",
])("P30: with NO_COLOR, output on a terminal has no colour codes: %s", async (line) => {
  const options = { folder: folder.path, env: { NO_COLOR: "yes" } };
  const screen = runOnTerminal(options, ...line.split(" "));
  if (line.startsWith("keys add")) {
    await screen.shows("claude");
    screen.press(KEYS.interrupt);
  }
  await screen.status;
  expect(screen.raw()).not.toBe("");
  expect(screen.raw()).not.toMatch(/\u001B\[[\d;]*m/); // oxlint-disable-line no-control-regex -- of colours
});

test("a terminal gets colours", async () => {
  const coloured = runOnTerminal({ folder: folder.path }, "keys", "list");
  await coloured.status;
  expect(coloured.raw()).toContain("\u001B[2mNAME");
});
