// The config of CLIProxyAPI: config.yaml. Each entry with an API key is a channel.

import { getField, isObject } from "../../../lib/json/json.ts";
import { addChannel, addKey, type Draft, noteOthers, readList, readText } from "./draft.ts";
import { PRESETS } from "../presets.ts";

const SECTIONS: Readonly<Record<string, string>> = {
  "claude-api-key": "anthropic",
  "codex-api-key": "openai",
  "gemini-api-key": "google",
};

const KNOWN = ["api-key", "base-url", "proxy-url", "headers", "models", "weight"];

export function readCliproxy(document: unknown, draft: Draft): void {
  const proxy = readText(document, "proxy-url");
  for (const [section, id] of Object.entries(SECTIONS))
    for (const entry of readList(document, section)) {
      const preset = PRESETS.find((each) => each.id === id);
      if (preset === undefined) continue;
      const [address, own] = [readText(entry, "base-url"), readText(entry, "proxy-url") ?? proxy];
      const [headers, weight] = [getField(entry, "headers"), getField(entry, "weight")];
      const aliases = readAliases(entry);
      const more = {
        ...(own !== null && { proxy: own }),
        ...(isObject(headers) && {
          headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)])),
        }),
        ...(typeof weight === "number" && { weight: String(weight) }),
        ...(Object.keys(aliases).length > 0 && { aliases }),
      };
      const place = address === null ? preset : { ...preset, baseUrl: address };
      addChannel(draft, {
        name: preset.channel,
        preset: place,
        credential: getField(entry, "api-key"),
        more,
      });
      noteOthers(draft, entry, KNOWN, `${section}: `);
    }
  const [host, port] = [readText(document, "host"), getField(document, "port")];
  if (getField(document, "host") === "")
    draft.lost.push("host: empty, for all interfaces. The gateway listens on 127.0.0.1");
  draft.listen = { ...(host !== null && { host }), ...(typeof port === "number" && { port }) };
  for (const [index, secret] of readList(document, "api-keys").entries())
    addKey(draft, `client-${index + 1}`, secret, `api-keys[${index}]`);
  noteOthers(draft, document, [...Object.keys(SECTIONS), "proxy-url", "host", "port", "api-keys"]);
}

function readAliases(entry: unknown): Record<string, string> {
  const named = readList(entry, "models").flatMap((model) => {
    const [name, alias] = [readText(model, "name"), readText(model, "alias")];
    return name === null || alias === null || name === alias ? [] : [[alias, name] as const];
  });
  return Object.fromEntries(named);
}
