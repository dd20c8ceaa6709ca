// The config of CLIProxyAPI: config.yaml. Each entry with an API key is a channel.

import { getField, isObject } from "../../../lib/json/json.ts";
import {
  addChannel,
  addKey,
  addToGroup,
  describeChatServer,
  type Draft,
  type DraftChannel,
  noteOthers,
  readList,
  readText,
} from "./draft.ts";
import { PRESETS } from "../presets.ts";

/** By the provider in presets.ts. */
const SECTIONS: Readonly<Record<string, string>> = {
  anthropic: "claude-api-key",
  openai: "codex-api-key",
  google: "gemini-api-key",
};

const COMPATIBLE = "openai-compatibility";
const KNOWN = ["api-key", "base-url", "proxy-url", "headers", "models", "weight"];

export function readCliproxy(document: unknown, draft: Draft): void {
  for (const preset of PRESETS) {
    const section = SECTIONS[preset.id];
    for (const entry of section === undefined ? [] : readList(document, section)) {
      const address = readText(entry, "base-url");
      const place = address === null ? preset : { ...preset, baseUrl: address };
      const more = readSettings(entry, readText(document, "proxy-url"));
      const credential = getField(entry, "api-key");
      const channel = addChannel(draft, { name: preset.channel, place, credential, more });
      addToGroup(draft, preset.group, channel);
      noteOthers(draft, entry, KNOWN, `${section}: `);
    }
  }
  for (const entry of readList(document, COMPATIBLE)) readServer(entry, document, draft);
  const [host, port] = [readText(document, "host"), getField(document, "port")];
  if (getField(document, "host") === "")
    draft.lost.push("host: empty, for all interfaces. The gateway listens on 127.0.0.1");
  draft.listen = { ...(host !== null && { host }), ...(typeof port === "number" && { port }) };
  for (const [index, secret] of readList(document, "api-keys").entries())
    addKey(draft, `client-${index + 1}`, secret, `api-keys[${index}]`);
  noteOthers(draft, document, [
    ...Object.values(SECTIONS),
    COMPATIBLE,
    "proxy-url",
    "host",
    "port",
    "api-keys",
  ]);
}

/** A server of Chat Completions. Each of its keys is a channel. */
function readServer(entry: unknown, document: unknown, draft: Draft): void {
  const [name, address] = [readText(entry, "name") ?? "server", readText(entry, "base-url")];
  if (address === null) {
    draft.lost.push(`${COMPATIBLE} ${name}: it has no base-url`);
    return;
  }
  const entries = readList(entry, "api-key-entries");
  for (const own of entries.length > 0 ? entries : [{}]) {
    const proxy = readText(own, "proxy-url") ?? readText(document, "proxy-url");
    const more = { ...readSettings(entry, proxy) };
    const place = describeChatServer(address, name);
    const channel = addChannel(draft, { name, place, credential: getField(own, "api-key"), more });
    addToGroup(draft, "codex", channel);
  }
  noteOthers(
    draft,
    entry,
    ["name", "base-url", "api-key-entries", "headers", "models"],
    `${COMPATIBLE} ${name}: `,
  );
}

function readSettings(entry: unknown, shared: string | null): Partial<DraftChannel> {
  const [headers, weight] = [getField(entry, "headers"), getField(entry, "weight")];
  const proxy = readText(entry, "proxy-url") ?? shared;
  const aliases = readAliases(entry);
  const fields = Object.entries(isObject(headers) ? headers : {}).map(([name, value]) => [
    name,
    String(value),
  ]);
  return {
    ...(proxy !== null && { proxy }),
    ...(fields.length > 0 && { headers: Object.fromEntries(fields) }),
    ...(typeof weight === "number" && { weight: String(weight) }),
    ...(Object.keys(aliases).length > 0 && { aliases }),
  };
}

function readAliases(entry: unknown): Record<string, string> {
  const named = readList(entry, "models").flatMap((model) => {
    const [name, alias] = [readText(model, "name"), readText(model, "alias")];
    return name === null || alias === null || name === alias ? [] : [[alias, name] as const];
  });
  return Object.fromEntries(named);
}
