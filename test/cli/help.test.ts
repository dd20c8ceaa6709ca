// `--help` of every command has examples, which use only commands and flags that exist.

import { beforeAll, expect, test } from "bun:test";
import { ENV_TOOLS } from "../../src/dialects/platforms.ts";
import { TOOLS } from "../../src/cli/tools/tools.ts";
import { commands } from "../promises/world/contract.ts";
import { run } from "./driving.ts";

interface Page {
  readonly words: readonly string[];
  readonly text: string;
}

async function readPage(words: readonly string[]): Promise<Page> {
  const { stdout, stderr, status } = await run({ folder: "/" }, ...words, "--help");
  expect({ stderr, status }).toEqual({ stderr: "", status: 0 });
  return { words, text: stdout };
}

/** Lists the names under "Commands:", or under the headings of the program's own help. */
function listCommands({ text }: Page): string[] {
  const sections = text.matchAll(/\n(?:Commands|Use|Look|Manage|Set up):\n((?: .*\n?)*)/g);
  return [...sections]
    .flatMap(([, section = ""]) => [...section.matchAll(/^ {2}([\w-]+)/gm)])
    .map(([, name]) => name ?? "")
    .filter((name) => name !== "help");
}

async function readPages(words: readonly string[]): Promise<Page[]> {
  const page = await readPage(words);
  const below = await Promise.all(listCommands(page).map((name) => readPages([...words, name])));
  return [page, ...below.flat()];
}

function listExamples({ text }: Page): string[] {
  const [, section = ""] = /\nExamples:\n([\s\S]*)$/.exec(text) ?? [];
  return [...section.matchAll(/^ {2}(?!#)(.*)$/gm)].map(([, line]) => line ?? "");
}

/** Returns the page without its examples, because an example does not prove that its flag exists. */
const withoutExamples = (page: Page | undefined): string => page?.text.split("\nExamples:")[0] ?? "";

let pages: Page[] = [];
beforeAll(async () => {
  pages = await readPages([]);
});

const READS_LEDGER =
  /^(?:usage|sessions|cache|context|report|statusline|top|prices check|ledger|recordings)\b/;

test("P26, P59: a command has the contract's flags, and --ledger if it reads the ledger", () => {
  expect(commands.size).toBeGreaterThan(50);
  for (const [command, flags] of commands) {
    const name = command.replace(/ --.*/, "");
    const text = withoutExamples(pages.find(({ words }) => words.join(" ") === name));
    const wanted = [...flags, ...(READS_LEDGER.test(command) ? ["--ledger"] : [])];
    const missing = wanted.filter((flag) => !new RegExp(`${flag}(?![a-z-])`).test(text));
    expect([command, missing]).toEqual([command, []]);
  }
});

test("help of every command ends with examples", () => {
  const bare = pages.filter((page) => listExamples(page).length === 0);
  expect(bare.map(({ words }) => words.join(" "))).toEqual([]);
});

test("help has no example with an unknown command or flag", () => {
  const wrong = pages.flatMap((page) => listExamples(page)).filter((line) => !isKnown(line, pages));
  expect(wrong).toEqual([]);
});

test("help begins with what the command does", () => {
  for (const { text } of pages) expect(text).toMatch(/^Usage: gateway.*\n\n\S.{10,}/);
});

/** Whether each `gateway …` in the line is a command, and the command's page of help has the flags. */
function isKnown(line: string, pages: readonly Page[]): boolean {
  const calls = [...line.matchAll(/\bgateway ((?!\w*\.)[a-z][^|>)&"']*)/g)].map(([, rest]) => rest ?? "");
  return calls.every((call) => {
    const [own = ""] = call.split(" -- ");
    const words = own.trim().split(/\s+/);
    const page = pages
      .filter(({ words: names }) => names.length > 0 && names.every((name, index) => words[index] === name))
      .sort((a, b) => b.words.length - a.words.length)[0];
    return (
      page !== undefined &&
      words.filter((word) => /^--\w/.test(word)).every((flag) => withoutExamples(page).includes(flag))
    );
  });
}

test("P26: every command takes --config", async () => {
  const leaves = pages.filter((page) => listCommands(page).length === 0);
  const reported = leaves.map(async ({ words }) => ({
    words,
    ...(await run({ folder: "/" }, ...words, "--config")),
  }));
  const missing = "gateway: option '--config <file>' argument missing\n";
  const other = (await Promise.all(reported)).filter(({ stderr }) => !stderr.startsWith(missing));
  expect(other.map(({ words }) => words.join(" "))).toEqual([]);
});

test.each([
  ["kyes list", '"keys"'],
  ["ledger shwo", '"show"'],
  ["keys add --gruop x", '"--group"'],
  ["usage --by kye", '"key"'],
  ["serve --log jsno", '"json"'],
  ["completions bsh", '"bash"'],
  ["schema confg", '"config"'],
  ["env cluade", '"claude"'],
  ["kyes --help", '"keys"'],
  ["keys lst --help", '"list"'],
  ["help keys lst", '"list"'],
  ["keys help lst", '"list"'],
  ["channels disbale x", '"disable"'],
])("gateway %s: the error names the nearest word, %s", async (line, meant) => {
  const { status, stdout, stderr } = await run({ folder: "/" }, ...line.split(" "));
  expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
  expect(stderr).toContain(`(did you mean ${meant}?)`);
});

test.each(["prices ls", "ledger list"])("gateway %s is an unknown command", async (line) => {
  expect((await run({ folder: "/" }, ...line.split(" "))).stderr).toStartWith("gateway: unknown command 'l");
});

test("`env --help` names every tool, and `run --help` names every tool that `run` starts", async () => {
  for (const command of ["run", "env"]) {
    const { stdout } = await run({ folder: "/" }, command, "--help");
    const missing = [...TOOLS.values()]
      .filter(({ name }) => !ENV_TOOLS.has(name) || command === "env")
      .map(({ name }) => name)
      .filter((name) => !new RegExp(`\\b${name}\\b`).test(stdout));
    expect([command, missing]).toEqual([command, []]);
  }
});

test("a usage error names the help to read", async () => {
  const lines = ["keys rmx x", "channels lst", "env", "serve --port x"];
  const reported = await Promise.all(lines.map((line) => run({ folder: "/" }, ...line.split(" "))));
  expect(reported.map(({ stderr }) => stderr.trimEnd().split("\n").at(-1))).toEqual([
    "See `gateway keys --help`.",
    "See `gateway channels --help`.",
    "See `gateway env --help`.",
    "See `gateway serve --help`.",
  ]);
});
