// `gateway run`, `env`, `serve` and `open`.

import { InvalidArgumentError } from "commander";
import type { ReplayFlags } from "../cli/serve/replay.ts";
import type { ServeFlags } from "../cli/serve/serve.ts";
import { call, CONFIG, type CommandTable, type Parameter } from "../cli/terminal/command.ts";
import { refuseUsage } from "../cli/terminal/terminal.ts";
import { SHELLS } from "../cli/tools/shells.ts";
import { readListenHost } from "../config/yaml/scalars.ts";
import { JSON_FORM, LEDGER } from "./flags.ts";

const TOOLS = "claude, codex, gemini, opencode, pi; openai, anthropic, google (SDKs)";

const KEY_FLAGS: readonly Parameter[] = [
  ["--key <name>", "the key's name; with --new, the new key's"],
  ["--secret <secret>", "the key's secret, - for stdin (default: GATEWAY_KEY)"],
  ["--new", "create a key for this tool"],
  ["--group <group>", "the group for the tool's own key, or for --new"],
  ["--cache <lifetime>", "ask for prompt caches of this lifetime (Claude Code)", { choices: ["5m", "1h"] }],
  ["--url <url>", "the gateway's address, if not the config's"],
];

export const USE: CommandTable = {
  run: {
    about: "start a tool that uses this gateway, with a key of its own",
    usage: "[options] <tool> [args...]",
    args: [
      ["[tool]", TOOLS],
      ["[args...]", "the tool's arguments; for an SDK, the command that uses it"],
    ],
    flags: [
      ["--statusline", "show spending in Claude Code's status line, for this run"],
      ["--record <name>", "record prompts and answers, for `gateway serve --replay`"],
      ["--budget <usd>", "refuse further requests of this run when it has cost this much"],
      ["--quiet", "do not say what the run has cost"],
      ["--list", "list the tools, and which are installed"],
      ["--json", "with --list: one JSON document on stdout"],
      ["--yes", "agree to metered billing, although the tool has a plan"],
      ...KEY_FLAGS,
    ],
    examples: [
      "gateway run claude  # options after the tool's name are the tool's own",
      'gateway run codex exec "say hello"  # one prompt to Codex',
      'gateway run --record agent-test claude -p "say hello"  # a run to replay',
      "gateway run --budget 0.50 claude  # a run that may cost half a dollar",
      "gateway run openai python app.py  # a program that uses the OpenAI SDK",
    ],
    run: call(() => import("../cli/tools/run.ts"), "runTool"),
    passesOptions: true,
  },
  env: {
    about: "print the settings with which a tool uses this gateway",
    args: [
      ["<tool>", `${TOOLS}; qwen, copilot, continue, cline; claude-desktop, codex-app`],
      ["[key]", "a key's name or secret; it can also come before the tool"],
    ],
    flags: [
      ["--shell <shell>", "the shell to write for (default: yours)", { choices: SHELLS }],
      JSON_FORM,
      ...KEY_FLAGS,
    ],
    examples: [
      'eval "$(gateway env claude)"  # set up Claude Code in this shell',
      "gateway env codex laptop --secret - < secret.txt  # with the key laptop",
      "GATEWAY_KEY=sk-… gateway env openai --json  # for a script",
      "gateway env claude-desktop  # what to enter in the app; also for codex-app",
    ],
    run: call(() => import("../cli/tools/env.ts"), "printEnv"),
  },
  serve: {
    about: "run the gateway",
    flags: [
      CONFIG,
      ["--port <n>", "listen on this port instead of the config's (0: any free one)", { read: readPort }],
      ["--host <host>", "listen on this address instead of the config's", { read: readHost }],
      ["--demo", "use simulated upstreams, without a config or account"],
      ["--replay <name>", "answer from this recording, for any key"],
      ["--curl", "with --demo: print every key, and a curl line for each endpoint"],
      [
        "--log <form>",
        "how to print a line for each request",
        { choices: ["text", "json", "off"], default: "text" },
      ],
    ],
    examples: [
      "gateway serve --demo  # try it",
      "gateway serve  # use the default config",
      "gateway serve --replay agent-test --port 8790  # for a test without an account",
      "gateway serve --log json > requests.jsonl  # log JSON",
    ],
    run: async (flags: ServeFlags & Partial<ReplayFlags>) => {
      const { replay } = flags;
      requireTogether(flags);
      return replay === undefined
        ? (await import("../cli/serve/serve.ts")).serve(flags)
        : (await import("../cli/serve/replay.ts")).serveReplay({ ...flags, replay });
    },
  },
  open: {
    about: "open the console's page in the browser, signed in",
    flags: [
      ["--print", "print the link instead; it works once, within a minute"],
      ["--url <url>", "the gateway at this address, instead of the config's"],
      LEDGER,
    ],
    examples: [
      "gateway open  # spending, requests, keys and channels",
      "gateway open --url http://127.0.0.1:4141  # a gateway with another config, or a demo",
    ],
    run: call(() => import("../cli/serve/open.ts"), "openPage"),
  },
};

const EXCLUDED = [
  ["demo", "replay"],
  ["curl", "replay"],
  ["demo", "config"],
] as const;

function requireTogether(flags: ServeFlags & Partial<ReplayFlags>): void {
  for (const [one, other] of EXCLUDED)
    if (flags[one] !== undefined && flags[other] !== undefined)
      refuseUsage(`--${one} and --${other} exclude each other.`);
  if (flags.replay !== undefined && flags.log === "json")
    refuseUsage("--log json: a replay writes text only.");
}

function readPort(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535)
    throw new InvalidArgumentError("A port is a number from 0 to 65535.");
  return port;
}

function readHost(text: string): string {
  try {
    return readListenHost(text);
  } catch {
    throw new InvalidArgumentError("A host is a name or an address without scheme and port.");
  }
}
