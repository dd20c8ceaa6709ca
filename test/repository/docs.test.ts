// The documents are true: links lead somewhere, the files, commands and flags that they name exist, and nothing outside of
// a clone is needed to understand them.

import { describe, expect, test } from "bun:test";
import { Glob } from "bun";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { type CommandRow, listFlags } from "../../src/cli/terminal/command.ts";
import { GATEWAY } from "../../src/commands/commands.ts";

const ROOT = join(import.meta.dir, "../..");
const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");

const documents = [
  ...new Glob("*.md").scanSync(ROOT),
  ...new Glob("{docs,examples,src,test}/**/*.md").scanSync(ROOT),
].toSorted();
/** The changelog may name files and commands that are gone: only its links are checked. */
const present = documents.filter((file) => file !== "CHANGELOG.md");
/** This document is made from the table of commands itself. */
const MADE = "docs/commands.md";

/** Lists the anchors that GitHub makes of headings. */
function listAnchors(text: string): Set<string> {
  const headings = [...text.matchAll(/^#{1,6} (.+)$/gm)].map(([, title = ""]) => title);
  return new Set(
    headings.map((title) =>
      title
        .toLowerCase()
        .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
        .replace(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );
}

/** Code of a document: between backticks, in fences and in indented blocks. */
function listCode(text: string): string[] {
  const fences = [...text.matchAll(/^```\w*\n([\s\S]*?)^```/gm)].map(([, code = ""]) => code);
  const prose = text.replace(/^```[\s\S]*?^```/gm, "");
  const blocks = prose.match(/^ {4}\S.*$/gm) ?? [];
  const spans = [...prose.matchAll(/`([^`\n]+)`/g)].map(([, code = ""]) => code);
  return [...fences, ...blocks, ...spans].flatMap((code) => code.split("\n"));
}

describe("links in documents lead somewhere", () => {
  test.each(documents)("the links of %s lead somewhere", (file) => {
    const prose = read(file).replace(/^```[\s\S]*?^```/gm, "");
    const links = [...prose.matchAll(/\]\((?!https?:|mailto:)([^)\s]+)\)/g)].map(([, link = ""]) => link);
    const broken = links.filter((link) => {
      const [path = "", anchor] = link.split("#");
      const target = path === "" ? file : normalize(join(dirname(file), path));
      if (!existsSync(join(ROOT, target))) return true;
      return anchor !== undefined && !listAnchors(read(target)).has(anchor);
    });
    expect(broken).toEqual([]);
  });
});

describe("files that documents name exist", () => {
  test.each(present)("files that %s names exist", (file) => {
    const named = listCode(read(file)).flatMap((code) =>
      [...code.matchAll(/(?<![\w./-])(?:src|test|docs|examples|\.ci|\.github)\/[\w./-]*\w\/?/g)].map(
        ([path]) => path,
      ),
    );
    const missing = [...new Set(named)].filter((path) => !existsSync(join(ROOT, path)));
    expect(missing).toEqual([]);
  });

  test("the decisions are in their list, each with a date, its evidence and what would change our mind", () => {
    const decisions = documents.filter((file) => /^docs\/decisions\/\d/.test(file));
    expect(decisions.length).toBeGreaterThan(5);
    const listed = [...read("docs/decisions/README.md").matchAll(/\((\d{4}-[\w-]+\.md)\)/g)].map(
      ([, name]) => name,
    );
    expect(listed).toEqual(decisions.map((file) => file.slice("docs/decisions/".length)));
    for (const file of decisions) {
      expect(read(file)).toMatch(/^# .+\n\nDate: \d{4}-\d{2}-\d{2}\. Status: /);
      for (const title of ["Decision", "Evidence", "What would change our mind"])
        expect(read(file)).toContain(`\n## ${title}\n`);
    }
  });
});

interface CommandHelp {
  readonly subcommands: readonly string[];
  readonly flags: ReadonlySet<string>;
}

/** The subcommands and flags of each command, by its words. */
const tree = new Map<string, CommandHelp>();

function readTree(row: CommandRow, path: readonly string[] = []): void {
  const below = Object.entries(row.commands ?? {}).filter(([, { hidden }]) => hidden !== true);
  const forms = [
    ...(path.length === 0 ? ["--version"] : []),
    ...listFlags(row).map(([form]) => form),
    "--help",
  ];
  const flags = new Set(forms.flatMap((form) => form.match(/--[a-z][a-z-]*/g) ?? []));
  tree.set(path.join(" "), { subcommands: below.map(([name]) => name), flags });
  for (const [name, each] of below) readTree(each, [...path, name]);
}
readTree(GATEWAY);

/** `gateway keys add|list` → ["keys", "add"] and ["keys", "list"], with the words that follow. */
function listUses(code: string): string[][] {
  const bare = code.replace(/(?:^|\s)#.*$/, "");
  const uses = [...bare.matchAll(/(?:^|[\s`$(/"])gateway ((?:[a-z-]|\\?\||\s(?=[a-z-]))+.*)/g)];
  return uses.flatMap(([, rest = ""]) => {
    const [words = ""] = rest.split(/\s*(?:[#&;<>)]|\|\s|$)/);
    const parts = words
      .replaceAll("\\|", "|")
      .split(/[\s[\]]+/)
      .filter((word) => word !== "");
    const at = parts.findIndex((word) => /^[a-z-]+(?:\|[a-z-]+)+$/.test(word));
    if (at < 0 || at > 1) return [parts];
    return (parts[at] ?? "").split("|").map((choice) => parts.with(at, choice));
  });
}

/** Finds the problem with a use of a command; null if there is none. */
function findFault(words: readonly string[]): string | null {
  const path: string[] = [];
  let help = tree.get("");
  for (const word of words) {
    if (help === undefined || !help.subcommands.includes(word)) break;
    path.push(word);
    help = tree.get(path.join(" "));
  }
  const next = words[path.length] ?? "";
  if (help !== undefined && help.subcommands.length > 0 && /^[a-z]/.test(next) && next !== "help")
    return `no command ${[...path, next].join(" ")}`;
  const own = words.includes("--") ? words.slice(0, words.indexOf("--")) : words;
  const named = own.flatMap((word) => word.split("|")).filter((word) => word.startsWith("--"));
  const flags = named.map((word) => word.replace(/[=,.:'"…].*$/, ""));
  const strange = flags.find(
    (flag) => help?.flags.has(flag) !== true && tree.get("")?.flags.has(flag) !== true,
  );
  return strange === undefined ? null : `${path.join(" ")} has no ${strange}`;
}

describe("commands that documents name exist, with their flags", () => {
  test("documents are compared with the program's own list of commands", () => {
    expect(tree.get("")?.subcommands).toContain("serve");
    expect(tree.get("keys")?.subcommands).toContain("add");
    expect(tree.get("usage")?.flags).toContain("--since");
  });

  test("a wrong name of a command or flag is found", () => {
    expect(findFault(["kyes", "add"])).toBe("no command kyes");
    expect(findFault(["keys", "adn"])).toBe("no command keys adn");
    expect(findFault(["keys", "add", "--nmae", "x"])).toBe("keys add has no --nmae");
    expect(findFault(["run", "claude", "--", "--anything"])).toBeNull();
    expect(listUses("gateway keys add|list NAME")).toEqual([
      ["keys", "add", "NAME"],
      ["keys", "list", "NAME"],
    ]);
  });

  test.each(present.filter((file) => file !== MADE))("commands that %s names exist", (file) => {
    const uses = listCode(read(file)).flatMap(listUses);
    const faults = uses
      .map((words) => ({ words: words.join(" "), fault: findFault(words) }))
      .filter(({ fault }) => fault !== null);
    expect(faults).toEqual([]);
  });
});

test("documents, sources and configs name no package registry and no folder outside of a clone", () => {
  const files = [
    ...documents,
    ...new Glob("{src,examples,.ci,.github,.vscode}/**/*.{ts,mjs,sh,yml,yaml,json}").scanSync({
      cwd: ROOT,
      dot: true,
    }),
    ...new Glob("*.{json,yaml,toml}").scanSync(ROOT),
    ".npmrc",
    ".ci/run",
  ];
  expect(files.length).toBeGreaterThan(200);
  const strays = files.flatMap((file) => {
    const text = read(file);
    return [/\.\.\/shared\b/, /\bregistry\.[\w-]+\.(?:org|com|dev|io)\b/]
      .filter((pattern) => pattern.test(text))
      .map((pattern) => `${file}: ${pattern}`);
  });
  expect(strays).toEqual([]);
});
