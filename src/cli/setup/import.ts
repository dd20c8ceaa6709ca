// `gateway import`: writes a config from another gateway's.

import { existsSync, statSync } from "node:fs";
import { stringify } from "yaml";
import type { Catalog } from "../../config/catalog.ts";
import { readEnvFile } from "../../config/file/env-file.ts";
import { placeConfig } from "../../config/file/find.ts";
import { checkConfigText } from "../../config/file/load.ts";
import { isLoopback } from "../../config/proxy.ts";
import { type Environment, listVariables } from "../../config/yaml/expand.ts";
import { messageOf } from "../../lib/errors.ts";
import { ForeignFile, readPlain } from "../../lib/files/own-file.ts";
import { escapeText } from "../../lib/text/printable.ts";
import type { ListFlags } from "../access/config.ts";
import { proposeCommand } from "../terminal/own-command.ts";
import { createTable } from "../terminal/listing.ts";
import { fail, printJson, printNote, refuseUsage } from "../terminal/terminal.ts";
import { changeVariables, requireWritable } from "../channels/env-file.ts";
import { Draft, readCcr, readLitellm } from "./import-draft.ts";
import { refuseOverwrite, writeNew } from "./init.ts";

const READERS = {
  ccr: {
    title: "claude-code-router",
    parse: Bun.JSONC.parse,
    read: readCcr,
  },
  litellm: {
    title: "LiteLLM",
    parse: Bun.YAML.parse,
    read: readLitellm,
  },
};

export async function importConfig(
  kind: keyof typeof READERS,
  file: string,
  flags: ListFlags,
): Promise<void> {
  const path = placeConfig(flags.config, process.env);
  if (existsSync(path)) refuseOverwrite(path);
  const { title, parse, read } = READERS[kind];
  const kept = readEnvFile(path);
  const draft = new Draft(path);
  read(parseFile(file, parse), draft);
  const lost = draft.lost.map((each) => `\n  ${escapeText(each)}`).join("");
  const lack = lost === "" ? "" : ` No counterpart:${lost}`;
  if (Object.keys(draft.channels).length === 0)
    fail(`${file} has no upstream that the gateway can use, so nothing was written.${lack}`);
  const text = `# Written by \`gateway import ${kind}\`.\n${stringify(draft.describe(), { lineWidth: 0 })}`;
  const { catalog } = checkConfigText(text, path, process.env, { missing: "keep" });
  requireWritable(path, draft.variables);
  writeNew(path, text);
  await changeVariables(path, draft.variables);
  if (flags.json === true)
    printJson({
      config: path,
      channels: [...catalog.channels.keys()],
      groups: [...catalog.groups.keys()],
      keys: [...catalog.keys.keys()],
      no_counterpart: draft.lost,
    });
  printNote(`Wrote ${path} from the config of ${title}.${lack}`);
  for (const line of describeReach(draft, catalog, kept)) printNote(line);
  const doctor = `\`${proposeCommand("doctor")}\``;
  printNote(`Check these addresses first: ${doctor} sends the credentials there.`);
}

const MAX_BYTES = 1024 * 1024;

function parseFile(file: string, parse: (text: string) => unknown): unknown {
  let text = "";
  try {
    if (statSync(file).size > MAX_BYTES) throw new Error("it has more than 1 MiB");
    text = readPlain(file);
  } catch (error) {
    const reason = error instanceof ForeignFile ? "it is not a regular file" : messageOf(error);
    fail(`${file} cannot be read: ${reason}.`);
  }
  try {
    return parse(text);
  } catch {
    // The parser's message may quote secrets.
    return refuseUsage(`${file}: it cannot be parsed.`);
  }
}

function describeReach(draft: Draft, catalog: Catalog, kept: Environment): string[] {
  const groups = [...catalog.groups.values()];
  const rows = Object.entries(draft.channels).map(([name, { base_url, proxy, credential, platform }]) => {
    const hidden = proxy?.replace(/^([a-z]+:\/\/[^/@:]*):[^/@]*@/i, "$1:…@");
    const serving = groups.filter(({ listed }) => listed.includes(name)).map((group) => group.name);
    const to = hidden === undefined ? base_url : `${base_url} through ${hidden}`;
    return {
      name,
      to,
      secret: describeSecret(draft, credential, kept),
      serving,
      platform,
    };
  });
  const table = createTable<(typeof rows)[number]>([
    ["CHANNEL", "name"],
    ["SENDS PROMPTS TO", "to"],
    ["WITH THE CREDENTIAL", "secret"],
    ["GROUP", ({ serving }) => serving.join(", ") || "none"],
  ]).draw(rows, Infinity);
  const add = (group: string, channel: string, converts: boolean): string => {
    const more = converts ? " --convert messages" : "";
    return `  ${proposeCommand(`groups add ${group} --channel ${channel}${more}`)}`;
  };
  const idle = rows.filter(({ serving }) => serving.length === 0);
  const hasClaude = groups.some(({ platform }) => platform === "messages");
  const other = hasClaude ? undefined : rows.find(({ serving }) => serving.length > 0);
  const { host } = catalog.listen;
  return [
    ...table.map((line) => `  ${line}`),
    ...draft.keys.map(({ name, group, secret = "" }) => {
      const [variable] = listVariables(secret);
      const from = variable === undefined ? "" : ` (its secret: ${variable} of your environment)`;
      return `Whoever has the key "${name}"${from} can use the group ${group}.`;
    }),
    ...(isLoopback(host) ? [] : [`It listens on ${host}: other machines can reach it.`]),
    ...(idle.length === 0 ? [] : ["Channels without a group get no requests. Add groups with:"]),
    ...idle.map(({ name, platform }) => add(name, name, platform !== "messages")),
    ...(other === undefined
      ? []
      : ["No group is for Claude Code. Add one with:", add(`claude-${other.name}`, other.name, true)]),
  ];
}

function describeSecret({ variables }: Draft, credential: string | undefined, kept: Environment): string {
  const [variable] = listVariables(credential);
  if (variable === undefined) return "none";
  if (Object.hasOwn(variables, variable)) return `${variable} of gateway.env (from the imported config)`;
  if ((process.env[variable] ?? "") !== "") return `${variable} of your environment`;
  if (kept[variable] !== undefined) return `${variable} of gateway.env`;
  return `${variable} of your environment (not set)`;
}
