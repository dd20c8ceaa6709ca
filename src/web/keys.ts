// The keys on the page: the list, and changes of the config file by the same code as `gateway keys …`.

import { z } from "zod";
import { findWarning, listLimitUses, type LimitUse } from "../billing/limits/alerts.ts";
import { type Catalog, judgeKey, type Key } from "../config/catalog.ts";
import {
  bindKey,
  createKey,
  listSelectableGroups,
  removeKeys,
  replaceSecret,
  switchKeys,
} from "../config/changes/keys.ts";
import { changeLimits, readLimits } from "../config/changes/limits.ts";
import { findKey, formatMoment, listLimits, readExpiry } from "../config/changes/names.ts";
import { loadConfig } from "../config/file/load.ts";
import { type ConfigFile, editConfig } from "../config/file/replace.ts";
import { ENV_TOOLS, PLATFORM_ROWS, type ToolName } from "../dialects/platforms.ts";
import type { ConsoleParts } from "../gateway/control/console.ts";
import { describeBaseUrl } from "../gateway/intake/own-host.ts";
import { isObject } from "../lib/json/json.ts";
import { formatUsd, subtractUsd, ZERO_USD } from "../lib/money.ts";
import { fail, refuseUsage } from "../lib/refusal.ts";
import { newSecret } from "../lib/secret.ts";
import { quoteWord } from "../lib/text/shell-word.ts";
import type { Connect, KeyRow, KeysChanged, KeysReply, LimitRow } from "./api.ts";

/** A record of zod leaves out the name `__proto__` in silence. */
const readLimitTexts = () =>
  z.custom<Readonly<Record<string, string | null>>>(
    (value) =>
      isObject(value) && Object.values(value).every((each) => each === null || typeof each === "string"),
  );
const newKeySchema = z.lazy(() =>
  z.strictObject({ name: z.string(), group: z.string(), expires: z.string(), limits: readLimitTexts() }),
);
const changeSchema = z.lazy(() =>
  z.strictObject({
    name: z.string(),
    action: z.enum(["disable", "enable", "rotate", "move", "limit", "remove"]),
    group: z.string().optional(),
    limits: readLimitTexts().optional(),
  }),
);
type Change = z.infer<typeof changeSchema>;

export interface Keys {
  list(): KeysReply;
  create(body: unknown): Promise<KeysChanged>;
  change(body: unknown): Promise<KeysChanged>;
}

/** `command`: how the user starts this program. */
export function createKeyPages(parts: ConsoleParts, command: string): Keys {
  const list = (): KeysReply => listKeys(parts);
  const show = (name: string, group: string, secret: string): Omit<KeysChanged, "problem"> => ({
    ...list(),
    secret: { name, text: secret, connect: describeConnection(parts, command, group) },
  });
  return {
    list,
    create: async (body) => {
      const wish = read(newKeySchema, body);
      const now = new Date();
      const secret = newSecret();
      const { name, group } = wish;
      const { file, problem } = openFile(parts);
      await createKey(file, {
        name,
        group,
        secret,
        expires: readExpiry(wish.expires, now),
        limits: dropNulls(readLimits(writeWords(wish.limits))),
        now,
      });
      return { ...show(name, group, secret), problem: problem() };
    },
    change: async (body) => {
      const change = read(changeSchema, body);
      const { file, problem } = openFile(parts);
      if (change.action !== "rotate") {
        await applyChange(file, change);
        return { ...list(), problem: problem() };
      }
      const secret = newSecret();
      const { key } = findKey(readCatalog(parts), change.name);
      await replaceSecret(file, change.name, secret, { grace: null });
      return { ...show(change.name, key.group.name, secret), problem: problem() };
    },
  };
}

async function applyChange(
  file: ConfigFile,
  { name, action, group, limits: changes }: Change,
): Promise<void> {
  if (action === "move") await bindKey(file, name, group ?? refuseUsage("The group is missing."), new Date());
  else if (action === "remove") await removeKeys(file, [name]);
  else if (action === "limit")
    await changeLimits(file, { kind: "key", name }, readLimits(writeWords(changes ?? {})));
  else await switchKeys(file, [name], action === "disable");
}

function read<T>(schema: z.ZodType<T>, body: unknown): T {
  const parsed = schema.safeParse(body);
  return parsed.success
    ? parsed.data
    : refuseUsage("The page sent something that this gateway does not expect.");
}

const NO_FILE = "A demo has no config file, so its keys cannot be changed.";

interface OpenFile {
  readonly file: ConfigFile;
  /** Why the gateway does not use the changed file; null: it does. */
  readonly problem: () => string | null;
}

/** The gateway uses the changed file before the page gets its answer. */
function openFile({ configPath, follow }: ConsoleParts): OpenFile {
  const path = configPath ?? fail(NO_FILE);
  let problem: string | null = null;
  const edit: ConfigFile["edit"] = async (decide) => {
    const { catalog, sha256 } = await editConfig(path, process.env, decide);
    const outcome = await follow.config(sha256);
    if (outcome?.kind === "refused")
      problem = `The change is in the file, but the gateway refuses the file: ${outcome.message}`;
    return catalog;
  };
  return { file: { path, edit }, problem: () => problem };
}

/** As the file is: the gateway may have refused it. */
function readCatalog({ gateway, configPath }: ConsoleParts): Catalog {
  if (configPath === null) return gateway.catalog;
  return loadConfig(configPath, process.env, { missing: "keep" }).catalog;
}

function writeWords(changes: Readonly<Record<string, string | null>>): string[] {
  return Object.entries(changes).map(([name, value]) => `${name}=${value ?? "none"}`);
}

function dropNulls(changes: Readonly<Record<string, string | null>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(changes).flatMap(([name, value]) => (value === null ? [] : [[name, value]])),
  );
}

function listKeys(parts: ConsoleParts): KeysReply {
  const catalog = readCatalog(parts);
  const now = new Date(parts.gateway.now());
  return {
    keys: [...catalog.keys.values()].map((key) => describeKey(key, parts, now)),
    groups: listSelectableGroups(catalog, now).map(({ name, platform, multiplier, description }) => ({
      name,
      platform,
      multiplier,
      description,
    })),
    fixed: parts.configPath === null ? NO_FILE : null,
  };
}

function describeKey(key: Key, { gateway }: ConsoleParts, now: Date): KeyRow {
  const { ledger, catalog } = gateway;
  const { name, group } = key;
  const holder = { kind: "key", name } as const;
  const uses = listLimitUses([key], ledger, now.getTime()).filter((use) => use.holder.kind === "key");
  const limitTexts = Object.entries(listLimits(key.limits)).map(([limit, value]) => [limit, String(value)]);
  return {
    name,
    group: group.name,
    platform: group.platform,
    multiplier: group.multiplier,
    state: judgeKey(key, now),
    created: formatOptional(key.created),
    expires: formatOptional(key.expires),
    last_used: ledger.lastUsed(name),
    spent_today_usd: formatUsd(ledger.spentOf(holder, "day")),
    spent_total_usd: formatUsd(ledger.spentOf(holder, "total")),
    limits: Object.fromEntries(limitTexts),
    limits_used: uses.map((use) => describeLimit(use, catalog.alerts.at)),
  };
}

function formatOptional(moment: Date | null): string | null {
  return moment === null ? null : formatMoment(moment);
}

export function describeLimit(use: LimitUse, percentages: readonly number[]): LimitRow {
  const { holder, limit, usd, spent, resets } = use;
  const left = spent < usd ? subtractUsd(usd, spent) : ZERO_USD;
  return {
    holder: { kind: holder.kind, name: holder.name },
    limit,
    usd: formatUsd(usd),
    spent_usd: formatUsd(spent),
    left_usd: formatUsd(left),
    resets: resets === null ? null : new Date(resets).toISOString(),
    warning: findWarning(use, percentages)?.percent ?? null,
  };
}

/** How tools and programs use a key of this group. */
function describeConnection({ gateway, port }: ConsoleParts, command: string, group: string): Connect {
  const url = describeBaseUrl(gateway.catalog.listen.host, port());
  const platform = gateway.catalog.groups.get(group)?.platform;
  const tools = platform === undefined ? [] : PLATFORM_ROWS[platform].tools;
  const start = `${command} run --url ${quoteWord(url)} --secret -`;
  return {
    url,
    tools: tools.filter(isProgram).map((name) => ({ name, line: `${start} ${name}` })),
    sdk: tools.flatMap((tool) => SDK_LINES[tool]?.(url) ?? []),
  };
}

/** The secret is in a variable, so that no file has it. */
const SDK_LINES: Readonly<Partial<Record<ToolName, (url: string) => readonly string[]>>> = {
  anthropic: (url) => [
    "from anthropic import Anthropic",
    `client = Anthropic(base_url="${url}", ${SDK_KEY})`,
  ],
  openai: (url) => ["from openai import OpenAI", `client = OpenAI(base_url="${url}/v1", ${SDK_KEY})`],
  google: (url) => [
    "from google import genai",
    `client = genai.Client(http_options={"base_url": "${url}"}, ${SDK_KEY})`,
  ],
};
const SDK_KEY = 'api_key=os.environ["GATEWAY_KEY"]';

/** The others are SDKs, for which `gateway env` prints the settings. */
function isProgram(tool: string): boolean {
  return !["anthropic", "openai", "google"].includes(tool) && !ENV_TOOLS.has(tool);
}
