// Tests completions in the real shells, on a real terminal where the shell needs one.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, writeFileSync } from "node:fs";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";
import { run } from "../driving.ts";
import { PROGRAM } from "../../harness/program.ts";

let folder: TempFolder;

beforeAll(() => {
  folder = makeTempFolder();
  writeFileSync(
    folder.join("gateway"),
    `#!/bin/sh\nexec ${PROGRAM.map((word) => `'${word}'`).join(" ")} "$@"\n`,
  );
  chmodSync(folder.join("gateway"), 0o755);
  const config = {
    channels: {
      "main-upstream": {
        platform: "messages",
        base_url: "http://127.0.0.1:9",
        credential: "x",
        models: ["claude-sonnet-4-*"],
        aliases: { "very-fast": "claude-haiku-4-5" },
      },
    },
    groups: {
      claude: { platform: "messages", multiplier: "0.5", channels: ["main-upstream"] },
      hidden: { platform: "messages", channels: ["main-upstream"], exclusive: true },
    },
    plans: { max: { groups: ["hidden"] } },
    keys: [
      { name: "laptop", group: "claude", secret: "sk-one" },
      { name: "lab", group: "claude", secret: "sk-two" },
      { name: "ci", group: "claude", secret: "sk-three" },
    ],
  };
  writeFileSync(folder.join("gateway.yaml"), JSON.stringify(config), { mode: 0o600 });
});
afterAll(() => folder.remove());

/** Returns the offered values, without their descriptions. */
async function offered(...words: string[]): Promise<string[]> {
  const { stdout, stderr, status } = await run({ folder: folder.path }, "__complete", "--", ...words);
  expect({ stderr, status }).toEqual({ stderr: "", status: 0 });
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => line.split("\t")[0] ?? "");
}

describe("completions suggest commands, flags and names", () => {
  const rows: ReadonlyArray<readonly [line: string[], values: string[]]> = [
    [["ke"], ["keys"]],
    [["keys", "re"], ["remove"]],
    [
      ["keys", "show", ""],
      ["laptop", "lab", "ci"],
    ],
    [
      ["keys", "show", "la"],
      ["laptop", "lab"],
    ],
    [
      ["keys", "remove", "lab", "l"],
      ["laptop", "lab"],
    ],
    [["keys", "add", "--group", ""], ["claude"]],
    [["keys", "add", "--group=c"], ["--group=claude"]],
    [["keys", "add", "--group", "=", "c"], ["claude"]],
    [["keys", "add", "--name", ""], []],
    [["keys", "add", "--gr"], ["--group"]],
    [["plans", "activate", ""], ["max"]],
    [["env", "cl"], ["claude"]],
    [
      ["env", "claude", "l"],
      ["laptop", "lab"],
    ],
    [
      ["run", "o"],
      ["opencode", "openai"],
    ],
    [["serve", "--config", ""], [":files"]],
    [
      ["serve", "--log", ""],
      ["text", "json", "off"],
    ],
    [
      ["completions", ""],
      ["bash", "zsh", "fish"],
    ],
    [["no-such-command", "x"], []],
  ];
  for (const [line, values] of rows) {
    test(`gateway ${line.join(" ")}⇥ offers ${values.join(", ") || "nothing"}`, async () =>
      expect(await offered(...line)).toEqual(values));
  }

  test("hidden commands are not offered", async () => {
    expect(await offered("__")).toEqual([]);
  });
});

const env = () => ({
  ...process.env,
  PATH: `${folder.path}:${process.env["PATH"]}`,
  HOME: folder.path,
  GATEWAY_CONFIG: folder.join("gateway.yaml"),
});

describe("completions work in bash", () => {
  const complete = async (words: string[]): Promise<string[]> => {
    const script = [
      'eval "$(gateway completions bash)"',
      `COMP_WORDS=(gateway ${words.map((word) => `'${word}'`).join(" ")})`,
      `COMP_CWORD=${words.length}`,
      "_gateway gateway",
      'printf "%s\\n" "${COMPREPLY[@]}"',
    ].join("\n");
    const child = Bun.spawn(["bash", "--norc", "-c", script], { cwd: folder.path, env: env() });
    return (await child.stdout.text()).split("\n").filter((line) => line !== "");
  };

  test("bash offers commands, names and files", async () => {
    expect(await complete(["keys", "show", "la"])).toEqual(["laptop", "lab"]);
    expect(await complete(["keys", "add", "--group", "="])).toEqual(["claude"]);
    expect(await complete(["serve", "--config", "gateway.y"])).toEqual(["gateway.yaml"]);
  });

  test("bash completes at the press of the tab key", async () => {
    const screen = await press(
      ["bash", "--norc", "--noprofile", "-i"],
      'eval "$(gateway completions bash)"',
      "gateway keys sh\tlap\t",
    );
    expect(screen).toContain("gateway keys show laptop ");
  });
});

describe.skipIf(Bun.which("zsh") === null)("completions in zsh", () => {
  test("zsh completes at the press of the tab key", async () => {
    const prepare = 'autoload -Uz compinit; compinit -u; eval "$(gateway completions zsh)"';
    const screen = await press(["zsh", "-f", "-i"], prepare, "gateway keys sh\tlap\t");
    expect(screen).toContain("gateway keys show laptop");
  });
});

describe.skipIf(Bun.which("fish") === null)("completions in fish", () => {
  test("fish offers names with descriptions", async () => {
    const script = 'gateway completions fish | source; complete -C "gateway keys show la"';
    const child = Bun.spawn(["fish", "--no-config", "-c", script], { cwd: folder.path, env: env() });
    expect(await child.stdout.text()).toBe("lab\tclaude, messages\nlaptop\tclaude, messages\n");
  });
});

/** Returns the screen of an interactive shell after `prepare` has run and the keys were pressed. */
async function press(command: string[], prepare: string, keys: string): Promise<string> {
  let screen = "";
  let wake = Promise.withResolvers<void>();
  const child = Bun.spawn(command, {
    cwd: folder.path,
    env: { ...env(), TERM: "xterm", PS1: "% ", HISTFILE: "/dev/null" },
    terminal: {
      cols: 120,
      rows: 30,
      data: (_, bytes) => {
        screen += new TextDecoder().decode(bytes);
        wake.resolve();
        wake = Promise.withResolvers();
      },
    },
  });
  const until = async (text: string): Promise<void> => {
    while (!plain(screen).includes(text)) await wake.promise;
  };
  child.terminal?.write(`${prepare}; echo rea''dy\n`);
  await until("\nready");
  // The shell must answer each tab before the next key is sent, because it reads ahead.
  const [first = "", second = ""] = keys.split("\t");
  child.terminal?.write(`${first}\t`);
  await until("gateway keys show ");
  child.terminal?.write(`${second}\t`);
  await until("laptop");
  child.terminal?.write("\u0015exit\n");
  await child.exited;
  child.terminal?.close();
  return plain(screen);
}

/** Returns the text without escapes, carriage returns, bells, and spaces that the shell took back. */
function plain(screen: string): string {
  return Bun.stripANSI(screen).replaceAll("\r", "").replaceAll("\u0007", "").replaceAll(" \b", "");
}
