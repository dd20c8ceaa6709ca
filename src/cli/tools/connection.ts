// What was typed after `gateway env` and `gateway run` → the tool, and what it has to be told.

import { z } from "zod";
import type { Catalog, Group } from "../../config/catalog.ts";
import { type Loaded, loadConfig } from "../../config/file.ts";
import { findConfig } from "../../config/find.ts";
import { suggestNearest } from "../../config/nearest.ts";
import { readHttpUrl } from "../../config/scalars.ts";
import { sha256Hex } from "../../lib/secret.ts";
import { tryGateway } from "../control.ts";
import { chooseKey, type ChosenKey, type KeyFlags } from "./key-secret.ts";
import { type ConfigFlags, describe, refuseUnknown } from "../config-access.ts";
import { askSecret, canAsk, fail, readAll, refuseUsage } from "../terminal.ts";
import { type Connection, type Tool, TOOLS } from "./tools.ts";

export interface ToolFlags extends ConfigFlags, KeyFlags {
  readonly url?: string;
}

export interface Connected {
  readonly tool: Tool;
  readonly connection: Connection;
  /** Null where the gateway is another machine's, whose keys are not known here. */
  readonly key: ChosenKey | null;
  /** Whether a gateway of this config answers; null where that cannot be told. */
  readonly running: boolean | null;
}

export function findTool(name: string): Tool {
  const known = [...TOOLS.keys()];
  return (
    TOOLS.get(name) ??
    refuseUsage(`There is no tool "${name}"${suggestNearest(name, known)}. Known: ${known.join(", ")}.`)
  );
}

/** `claude`, `claude laptop` or `laptop claude`, and a secret wherever a key's name may stand. */
export function splitWords(words: readonly string[]): { tool: Tool; key: string | null } {
  const [first = "", second] = words;
  if (second === undefined) return { tool: findTool(first), key: null };
  const swapped = TOOLS.get(second);
  return swapped === undefined ? { tool: findTool(first), key: second } : { tool: swapped, key: first };
}

export async function connect(tool: Tool, word: string | null, flags: ToolFlags): Promise<Connected> {
  const loaded = openIfThere(flags);
  const wanted = await readDash(readWord(word, flags, loaded?.catalog));
  if (loaded === null) return connectElsewhere(tool, wanted);
  const { catalog, path } = loaded;
  const elsewhere = flags.url !== undefined;
  if (elsewhere && !isKnown(wanted, catalog)) return connectElsewhere(tool, wanted);
  const address = elsewhere ? null : await askAddress(catalog);
  const base = readUrl(flags.url) ?? formatBase(address ?? catalog.listen);
  const key = await chooseKey(tool, wanted, { catalog, path, now: new Date() });
  const { relayPrefix } = catalog;
  const { platform } = key.group;
  const connection = { base, relayPrefix, platform, secret: key.secret, models: listOwnNames(key.group) };
  return { tool, connection, key, running: elsewhere ? null : address !== null };
}

/** With an address and a secret at hand no config is needed. */
function openIfThere(flags: ToolFlags): Loaded | null {
  try {
    return loadConfig(findConfig(flags.config, process.env), process.env, { missing: "keep" });
  } catch (error) {
    if (flags.url === undefined || flags.config !== undefined) throw error;
    return null;
  }
}

function readWord(word: string | null, flags: ToolFlags, catalog: Catalog | undefined): ToolFlags {
  if (word === null) return flags;
  if (catalog?.keys.has(word) === true) {
    if (flags.key !== undefined && flags.key !== word) refuseUsage(`--key names another key than "${word}".`);
    return { ...flags, key: word };
  }
  if (!word.startsWith("sk-") && catalog?.keysBySha256.has(sha256Hex(word)) !== true) {
    return refuseUnknown("key", word, catalog?.keys ?? new Map());
  }
  if (flags.secret !== undefined) refuseUsage("The secret is there twice: as a word and by --secret.");
  return { ...flags, secret: word };
}

/** `--secret -` is stdin: what stands among the arguments is seen by every process of the machine. */
async function readDash(flags: ToolFlags): Promise<ToolFlags> {
  if (flags.secret !== "-") return flags;
  const text = canAsk() ? await askSecret({ message: "The key's secret" }) : (await readAll()).trim();
  return text === "" ? refuseUsage("--secret -: stdin is empty.") : { ...flags, secret: text };
}

function isKnown({ secret }: ToolFlags, { keysBySha256 }: Catalog): boolean {
  const given = secret ?? process.env["GATEWAY_KEY"] ?? "";
  return given === "" || keysBySha256.has(sha256Hex(given));
}

/** Nothing is known of the key: it is taken to be of the tool's own platform. */
function connectElsewhere(tool: Tool, flags: ToolFlags): Connected {
  const secret = flags.secret ?? process.env["GATEWAY_KEY"] ?? "";
  const [platform] = tool.platforms;
  if (secret === "" || platform === undefined || flags.new === true) {
    return refuseUsage("Without a config file here the key's secret is needed: --secret, or GATEWAY_KEY.");
  }
  const base = readUrl(flags.url) ?? fail("--url is missing.");
  return {
    tool,
    connection: { base, relayPrefix: "relay", platform, secret, models: [] },
    key: null,
    running: null,
  };
}

function readUrl(text: string | undefined): string | null {
  if (text === undefined) return null;
  try {
    return readHttpUrl(text).href.replace(/\/+$/, "");
  } catch (error) {
    return refuseUsage(`--url: ${describe(error)}.`);
  }
}

const runningSchema = z.object({ address: z.object({ host: z.string(), port: z.number() }) });

type Address = z.infer<typeof runningSchema>["address"];

/** Where the running gateway listens: `serve --port` may differ from the config. Null when none runs. */
async function askAddress(catalog: Catalog): Promise<Address | null> {
  if (process.platform === "win32") return null;
  try {
    const state = await tryGateway({ ledgerPath: catalog.ledger.path }, "GET", "/state");
    return runningSchema.safeParse(state).data?.address ?? null;
  } catch {
    // Whoever cannot be asked is taken to be where the config says.
    return null;
  }
}

/** As a client on this machine reaches it. */
export function formatBase({ host, port }: Address): string {
  if (port === 0) {
    return fail(
      "The config's port is 0 (any free one), and no gateway is running: start it, or name it with --url.",
    );
  }
  const reached = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `http://${reached.includes(":") && !reached.startsWith("[") ? `[${reached}]` : reached}:${port}`;
}

/** What the config alone calls models; the rest a tool knows by itself. */
function listOwnNames({ channels }: Group): string[] {
  const names = channels.flatMap(({ aliases, models }) => [
    ...aliases.keys(),
    ...(models ?? []).filter((model) => !model.includes("*")),
  ]);
  return [...new Set(names)];
}
