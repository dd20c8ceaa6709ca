// `gateway import`: writes a config from that of another gateway. Before anything goes to the network, it shows where
// prompts and credentials will go, and it lists settings without a counterpart.

import { closeSync, existsSync, readSync } from "node:fs";
import { stringify } from "yaml";
import type { Catalog } from "../../config/catalog.ts";
import { placeConfig } from "../../config/file/find.ts";
import { checkConfigText } from "../../config/file/load.ts";
import { listVariables } from "../../config/yaml/expand.ts";
import { isLoopback } from "../../config/proxy.ts";
import { getErrorMessage } from "../../lib/errors.ts";
import { ForeignFile, openPlain } from "../../lib/files/own-file.ts";
import { quoteWord } from "../../lib/text/shell-word.ts";
import { escapeUnprintable } from "../../lib/text/printable.ts";
import type { ListFlags } from "../access/config.ts";
import { nameOwnCommand } from "../terminal/own-command.ts";
import { createTable } from "../terminal/table.ts";
import { fail, printJson, printNote, readGiven } from "../terminal/terminal.ts";
import { addVariables, requireWritable } from "./env-file.ts";
import { refuseOverwrite, writeNew } from "./init.ts";
import {
  addChannel,
  addKey,
  addToGroup,
  createDraft,
  describeChatServer,
  describeDraft,
  type Draft,
  type DraftChannel,
  findFreeName,
  findProvider,
  noteOthers,
  type Place,
  readAddress,
  readList,
  readText,
} from "./import-draft.ts";
import { PLATFORMS } from "../../config/schema.ts";
import { PLATFORM_ROWS } from "../../dialects/platforms.ts";
import { getField } from "../../lib/json/json.ts";

interface Reader {
  readonly title: string;
  readonly parse: (text: string) => unknown;
  readonly read: (document: unknown, draft: Draft) => void;
}

const READERS = {
  ccr: { title: "claude-code-router", parse: Bun.JSONC.parse, read: readCcr },
  litellm: { title: "LiteLLM", parse: Bun.YAML.parse, read: readLitellm },
} as const satisfies Record<string, Reader>;

export async function importConfig(
  kind: keyof typeof READERS,
  file: string,
  flags: ListFlags,
): Promise<void> {
  const path = placeConfig(flags.config, process.env);
  if (existsSync(path)) refuseOverwrite(path);
  const { title, parse, read } = READERS[kind];
  const draft = createDraft();
  read(parseFile(file, parse), draft);
  if (Object.keys(draft.channels).length === 0)
    fail(`${file} has no upstream that the gateway can use, so nothing was written.${listLost(draft)}`);
  const text = `# Written by \`gateway import ${kind}\`.\n${stringify(describeDraft(draft), { lineWidth: 0 })}`;
  const { catalog } = checkConfigText(text, path, process.env, { missing: "keep" });
  requireWritable(path, draft.variables);
  writeNew(path, text);
  await addVariables(path, draft.variables);
  if (flags.json === true)
    printJson({
      config: path,
      channels: [...catalog.channels.keys()],
      groups: [...catalog.groups.keys()],
      keys: [...catalog.keys.keys()],
      no_counterpart: draft.lost,
    });
  printNote(`Wrote ${path} from the config of ${title}.${listLost(draft)}`);
  const config = path === placeConfig(undefined, process.env) ? "" : ` --config ${quoteWord(path)}`;
  for (const line of describeReach(draft, catalog, config)) printNote(line);
  printNote(
    `Check these addresses first: \`${nameOwnCommand()} doctor${config}\` and \`serve\` send the credentials there.`,
  );
}

const MAX_BYTES = 1024 * 1024;

function parseFile(file: string, parse: Reader["parse"]): unknown {
  const text = readSmall(file);
  // The parser's message may repeat the text, which holds secrets.
  return readGiven(() => {
    try {
      return parse(text);
    } catch {
      throw new Error("it cannot be parsed");
    }
  }, file);
}

function readSmall(file: string): string {
  const bytes = Buffer.alloc(MAX_BYTES + 1);
  let size = 0;
  try {
    const handle = openPlain(file);
    try {
      for (let count = -1; count !== 0; size += count)
        count = readSync(handle, bytes, size, bytes.length - size, null);
    } finally {
      closeSync(handle);
    }
  } catch (error) {
    const reason = error instanceof ForeignFile ? "it is not a regular file" : getErrorMessage(error);
    return fail(`${file} cannot be read: ${reason}.`);
  }
  if (size > MAX_BYTES) fail(`${file} has more than 1 MiB, so it is not a config of another gateway.`);
  return bytes.toString("utf8", 0, size);
}

function listLost({ lost }: Draft): string {
  if (lost.length === 0) return "";
  return ` No counterpart:${lost.map((each) => `\n  ${escapeUnprintable(each)}`).join("")}`;
}

/** Where each prompt and each secret goes. */
function describeReach(draft: Draft, catalog: Catalog, config: string): string[] {
  const groups = [...catalog.groups.values()];
  const rows = Object.entries(draft.channels).map(([name, { base_url, proxy, credential, platform }]) => {
    const through = proxy === undefined ? "" : ` through ${hidePassword(proxy)}`;
    const serving = groups.filter(({ listed }) => listed.includes(name)).map((group) => group.name);
    const [variable] = listVariables(credential);
    return { name, to: `${base_url}${through}`, secret: describeSecret(draft, variable), serving, platform };
  });
  const table = createTable<(typeof rows)[number]>([
    { title: "CHANNEL", read: ({ name }) => name },
    { title: "SENDS PROMPTS TO", read: ({ to }) => to },
    { title: "WITH THE CREDENTIAL", read: ({ secret }) => secret },
    { title: "GROUP", read: ({ serving }) => serving.join(", ") || "none" },
  ]).draw(rows, Number.POSITIVE_INFINITY);
  const add = (group: string, channel: string, converts: boolean) =>
    `  ${nameOwnCommand()} groups add ${group} --channel ${channel}${converts ? " --convert messages" : ""}${config}`;
  const idle = rows.filter(({ serving }) => serving.length === 0);
  const hasClaude = groups.some(({ platform }) => platform === "messages");
  const other = rows.find(({ serving }) => serving.length > 0);
  const { host } = catalog.listen;
  return [
    ...table.map((line) => `  ${line}`),
    ...draft.keys.map(({ name, group, secret }) => {
      const from =
        secret === undefined ? "" : ` (its secret: ${listVariables(secret).join()} of your environment)`;
      return `Whoever has the key "${name}"${from} can use the group ${group}.`;
    }),
    ...(isLoopback(host) ? [] : [`It listens on ${host}: other machines can reach it.`]),
    ...(idle.length === 0 ? [] : ["Not in a group, so no request goes there. Add them with:"]),
    ...idle.map(({ name, platform }) => add(name, name, platform !== "messages")),
    ...(hasClaude || other === undefined ? [] : ["No group is for Claude Code. Add one, for example with:"]),
    ...(hasClaude || other === undefined ? [] : [add(`claude-${other.name}`, other.name, true)]),
  ];
}

function describeSecret({ variables }: Draft, variable: string | undefined): string {
  if (variable === undefined) return "none";
  if (Object.hasOwn(variables, variable)) return `${variable} of gateway.env (was in the file)`;
  return `${variable} of your environment${(process.env[variable] ?? "") === "" ? " (not set)" : ""}`;
}

/** The password in `http://user:password@host`. */
function hidePassword(url: string): string {
  return url.replace(/^([a-z]+:\/\/[^/@:]*):[^/@]*@/i, "$1:…@");
}

/** claude-code-router's config.json. Its only client is Claude Code, so the group `claude` has the channel of the default
 *  route. The other providers get a channel and no group: nothing that it did not route there goes to them. */
function readCcr(document: unknown, draft: Draft): void {
  const timeout = Number(getField(document, "API_TIMEOUT_MS") ?? Number.NaN);
  const proxy = readText(document, "PROXY_URL");
  const shared: Partial<DraftChannel> = {
    ...(proxy !== null && { proxy }),
    ...(Number.isInteger(timeout) && timeout > 0 && { timeouts: { first_byte: `${timeout}ms` } }),
  };
  const channels = new Map<string, string>();
  for (const provider of readList(document, "Providers")) addProvider(draft, provider, shared, channels);
  readRoutes(getField(document, "Router"), channels, draft);
  const [host, port] = [readText(document, "HOST"), Number(getField(document, "PORT") ?? Number.NaN)];
  draft.listen = { ...(host !== null && { host }), ...(Number.isInteger(port) && { port }) };
  addKey(draft, "ccr", getField(document, "APIKEY"), "APIKEY");
  noteOthers(draft, document, [
    "Providers",
    "Router",
    "APIKEY",
    "HOST",
    "PORT",
    "PROXY_URL",
    "API_TIMEOUT_MS",
  ]);
}

/** `channels`: our names of channels by their names of providers. */
function addProvider(
  draft: Draft,
  provider: unknown,
  shared: Partial<DraftChannel>,
  channels: Map<string, string>,
): void {
  const name = readText(provider, "name") ?? "provider";
  const address = readAddress(provider, "api_base_url") ?? "";
  const place = findProvider(address, name) ?? describePlace(address, name);
  if (place === null) {
    const host = URL.parse(address)?.host ?? "its address";
    draft.lost.push(`Providers ${name}: what ${host} speaks is not known`);
    return;
  }
  const models = readList(provider, "models").filter((model) => typeof model === "string");
  const more = { ...shared, ...(models.length > 0 && { models }) };
  channels.set(name, addChannel(draft, { name, place, credential: getField(provider, "api_key"), more }));
  noteOthers(draft, provider, ["name", "api_base_url", "api_key", "models"], `Providers ${name}: `);
}

/** A route becomes an alias for all names that Claude Code asks for. */
function readRoutes(router: unknown, channels: ReadonlyMap<string, string>, draft: Draft): void {
  noteOthers(draft, router, ["default", "background"], "Router.");
  if (channels.size === 0) return;
  const route = readRoute(router, "default");
  const name = channels.get(route?.provider ?? "") ?? "";
  const channel = draft.channels[name];
  if (route === null || channel === undefined) {
    draft.lost.push(
      `Router.default: ${route === null ? "it is missing" : "its provider has no counterpart"}`,
    );
    return;
  }
  addToGroup(draft, "claude", name, "messages");
  channel.aliases = { "claude-*": route.model };
  const background = readRoute(router, "background");
  if (background?.provider === route.provider) channel.aliases["claude-haiku-*"] = background.model;
  else if (background !== null)
    draft.lost.push("Router.background: another provider. Its requests go where the default's go");
  const routed = Object.values(channel.aliases);
  if (channel.models !== undefined) channel.models = [...new Set([...channel.models, ...routed])];
}

/** `provider,model` */
function readRoute(router: unknown, name: string): { provider: string; model: string } | null {
  const [provider = "", model = ""] = (readText(router, name) ?? "").split(",");
  return provider === "" || model === "" ? null : { provider, model };
}

/** An address that no preset has, whose path says what it speaks. */
function describePlace(address: string, name: string): Place | null {
  const [, chat] = /^(.*\/v\d+\w*(?:\/openai)?)\/chat\/completions$/.exec(address) ?? [];
  if (chat !== undefined) return describeChatServer(chat, name);
  for (const platform of PLATFORMS) {
    const [path = ""] = PLATFORM_ROWS[platform].answerPaths;
    if (address.endsWith(path)) return { platform, baseUrl: address.slice(0, -path.length), kind: "key" };
  }
  return null;
}

/** LiteLLM's config.yaml. Deployments with the same provider, address and credential are one channel. Each provider has a
 *  group of its own: a prompt for one of them never goes to another. */
function readLitellm(document: unknown, draft: Draft): void {
  const known: Known = { channels: new Map(), groups: new Map() };
  for (const entry of readList(document, "model_list")) addDeployment(draft, entry, known);
  const general = getField(document, "general_settings");
  addKey(draft, "master", getField(general, "master_key"), "general_settings.master_key");
  noteOthers(draft, general, ["master_key"], "general_settings.");
  noteOthers(draft, document, ["model_list", "general_settings"]);
}

/** Names in our config: of channels by provider and credential, of groups by provider. */
interface Known {
  readonly channels: Map<string, string>;
  readonly groups: Map<string, string>;
}

function addDeployment(draft: Draft, entry: unknown, { channels, groups }: Known): void {
  const wanted = readText(entry, "model_name") ?? "";
  const params = getField(entry, "litellm_params");
  const [provider = "", ...rest] = (readText(params, "model") ?? "").split("/");
  const model = rest.join("/");
  const address = readAddress(params, "api_base");
  const place = model === "" ? null : findPlace(address, provider);
  if (place === null) {
    draft.lost.push(
      `model_list ${wanted}: the provider ${model === "" ? "of a model without one" : provider}${address === null ? "" : " at another address"}`,
    );
    return;
  }
  const seller = `${place.platform} ${place.baseUrl}`;
  const credential = readText(params, "api_key");
  const id = JSON.stringify([seller, credential]);
  let name = channels.get(id);
  if (name === undefined) {
    name = addChannel(draft, { name: place.channel, place, credential });
    channels.set(id, name);
    const group = groups.get(seller) ?? findFreeName(place.group ?? name, draft.groups);
    groups.set(seller, group);
    addToGroup(draft, group, name);
  }
  addModel(draft, name, wanted, model);
  noteOthers(draft, params, ["model", "api_key", "api_base"], `model_list ${wanted}: `);
}

/** Their names for a server of Chat Completions at an address of one's own. */
const CHAT_SERVERS =
  /^(?:openai|openai_like|custom_openai|hosted_vllm|vllm|ollama|ollama_chat|lm_studio|llamafile)$/;

type Server = Place & { readonly channel: string; readonly group?: string };

function findPlace(address: string | null, provider: string): Server | null {
  const preset = findProvider(address, provider);
  const url = URL.parse(address ?? "");
  const speaksMessages = provider === "anthropic";
  if (preset !== null && !(speaksMessages && preset.platform !== "messages")) return preset;
  if (address === null || url === null) return null;
  const channel = url.hostname;
  if (speaksMessages) {
    const baseUrl = address.replace(/\/v1\/messages\/?$/, "");
    return { platform: "messages", baseUrl, kind: "key", channel, group: "claude" };
  }
  if (!CHAT_SERVERS.test(provider)) return null;
  // Theirs is the address of Ollama's own API.
  const baseUrl = provider.startsWith("ollama") && url.pathname === "/" ? `${url.origin}/v1` : address;
  return { ...describeChatServer(baseUrl, provider), channel };
}

/** `claude-*` with `anthropic/*` lets these names pass. Another name for a model is an alias. */
function addModel(draft: Draft, name: string, wanted: string, model: string): void {
  const channel = draft.channels[name];
  if (channel === undefined || wanted === "") return;
  if (model.includes("*") && wanted.includes("/")) {
    draft.lost.push(`model_list ${wanted}: a prefix for many models. Clients name them without it`);
    channel.models = ["*"];
    return;
  }
  const isAlias = model !== wanted && !model.includes("*");
  if (isAlias) channel.aliases = { ...channel.aliases, [wanted]: model };
  channel.models = [...new Set([...(channel.models ?? []), isAlias ? model : wanted])];
}
