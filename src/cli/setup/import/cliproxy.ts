// The config of CLIProxyAPI: config.yaml. Each entry with an API key is a channel.

import { getField, isObject } from "../../../lib/json/json.ts";
import {
  addChannel,
  addKey,
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

const KNOWN = ["api-key", "base-url", "proxy-url", "headers", "models", "weight"];

export function readCliproxy(document: unknown, draft: Draft): void {
  for (const preset of PRESETS) {
    const section = SECTIONS[preset.id];
    for (const entry of section === undefined ? [] : readList(document, section)) {
      const address = readText(entry, "base-url");
      const place = address === null ? preset : { ...preset, baseUrl: address };
      const more = readSettings(entry, readText(document, "proxy-url"));
      addChannel(draft, {
        name: preset.channel,
        preset: place,
        credential: getField(entry, "api-key"),
        more,
      });
      noteOthers(draft, entry, KNOWN, `${section}: `);
    }
  }
  const [host, port] = [readText(document, "host"), getField(document, "port")];
  if (getField(document, "host") === "")
    draft.lost.push("host: empty, for all interfaces. The gateway listens on 127.0.0.1");
  draft.listen = { ...(host !== null && { host }), ...(typeof port === "number" && { port }) };
  for (const [index, secret] of readList(document, "api-keys").entries())
    addKey(draft, `client-${index + 1}`, secret, `api-keys[${index}]`);
  noteOthers(draft, document, [...Object.values(SECTIONS), "proxy-url", "host", "port", "api-keys"]);
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
