// Clients and upstreams choose names of models, and clients choose labels. No escape sequence, line
// break or override in them reaches the terminal, or a program that reads the output.

import { afterAll, expect, test } from "bun:test";
import { findProvider } from "@pydantic/genai-prices";
import { writeFileSync } from "node:fs";
import { KNOWN_PROVIDERS } from "../../../src/billing/prices/sellers.ts";
import { encodeLine, GENESIS } from "../../../src/billing/ledger/line.ts";
import { startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { draftOf } from "../../billing/ledger/ledger-samples.ts";
import { makeTempFolder } from "../../harness/temp.ts";
import { run, runOnTerminal } from "../driving.ts";

/** A hostile name. It also has the escape for red, which commands themselves write. */
const HOSTILE = "zz\u001B[31m\u001B]0;x\u0007\u001B[8m\u009B31m\u202Eb\u2066\u200B\u2028\r\nfaked line\tc";
/** The name without its line break. A command may print a line break that the user has typed. */
const TYPED = HOSTILE.replace("\r\n", "");
const STEERING = /(?![\n\u200C\u200D])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]|^faked line/mu;

/** Bold, dim and cyan, which tables and bars have. */
const OWN_STYLES = ["0", "1", "2", "36"].map((code) => `\u001B[${code}m`);

const folder = makeTempFolder();
const upstream = startDemoUpstream();
afterAll(() => {
  upstream.stop();
  folder.remove();
});

function writeFiles(): void {
  const channel = {
    platform: "messages",
    base_url: "http://127.0.0.1:1",
    credential: "x",
    models: [HOSTILE, "*"],
    aliases: { [`${HOSTILE}-alias`]: "claude-sonnet-4-5" },
  };
  const config = {
    channels: { main: channel },
    groups: { g: { platform: "messages", channels: ["main"], description: HOSTILE } },
    keys: [{ name: "k", group: "g", secret: "sk-0123456789abcdef0123" }],
    prices: { [HOSTILE]: { input: 1 } },
  };
  writeFileSync(folder.join("gateway.yaml"), JSON.stringify(config), { mode: 0o600 });
  const client = { tool: HOSTILE, session: HOSTILE, agent: HOSTILE, label: HOSTILE };
  const line = encodeLine(
    draftOf("req_1", { channel: "main", model: HOSTILE, upstream_model: HOSTILE, client }),
    GENESIS,
  );
  writeFileSync(folder.join("ledger.jsonl"), `${line}\n`);
  const providers = KNOWN_PROVIDERS.map((id) => {
    const { models, ...provider } = structuredClone(findProvider({ providerId: id })) ?? { models: [] };
    const own = { id: HOSTILE, match: { contains: "zz" }, prices: { input_mtok: 3, output_mtok: 15 } };
    return { ...provider, models: id === "anthropic" ? [...models, own] : models };
  });
  writeFileSync(folder.join("data.json"), JSON.stringify(providers));
}

const COMMANDS = [
  ["usage", "--by", "model,label"],
  ["usage", "--by", "model,label", "--csv"],
  ["usage", "--by", "session,agent", "--json"],
  ["usage", "--as", TYPED],
  ["cache"],
  ["sessions"],
  ["sessions", "show", "last"],
  ["sessions", "show", "last", "--json"],
  ["prices", "show", HOSTILE],
  ["prices", "show", HOSTILE, "--json"],
  ["prices", "check"],
  ["prices", "update", "--from", "data.json", "--yes"],
  // From here on, the commands use the book that `prices update` wrote.
  ["prices", "show", "zz"],
  ["ledger", "verify"],
  ["ledger", "show", "last"],
  ["channels"],
  ["groups", "list"],
  ["keys", "list"],
  ["keys", "show", TYPED],
  ["doctor"],
  ["env", "opencode", "k"],
  ["__complete", "usage", "--model", ""],
  ["__complete", "keys", "add", "--group", ""],
] as const;

test("no command prints a name that could control a terminal", async () => {
  writeFiles();
  const steered: string[] = [];
  for (const command of COMMANDS) {
    const { stdout, stderr } = await run({ folder: folder.path }, ...command);
    expect({ command, silent: stdout + stderr === "" }).toEqual({ command, silent: false });
    const found = STEERING.exec(stdout) ?? STEERING.exec(stderr);
    if (found !== null) steered.push(`${command.join(" ")}: ${JSON.stringify(found[0])}`);
  }
  expect(steered).toEqual([]);
});

test("on a terminal, a name cannot even choose its colour", async () => {
  writeFiles();
  const commands = [
    ["usage", "--by", "model,label", "--csv"],
    ["usage", "--by", "model,label"],
    ["sessions", "show", "last"],
    ["ledger", "show", "last"],
    ["prices", "show", HOSTILE],
    ["groups", "list"],
    ["keys", "show", "k"],
    ["cache"],
  ];
  for (const command of commands) {
    const { status, raw } = runOnTerminal({ folder: folder.path }, ...command);
    expect({ command, status: await status }).toEqual({ command, status: 0 });
    expect({ command, shown: raw() }).toEqual({ command, shown: expect.not.stringContaining("\u001B[31m") });
    const others = OWN_STYLES.reduce((text, style) => text.replaceAll(style, ""), raw());
    expect(others.replaceAll("\r\n", "\n")).not.toMatch(STEERING);
  }
});
