// A key's secret where the config file itself holds it.

import { expandTree } from "../../config/yaml/expand.ts";
import { readConfigText } from "../../config/file.ts";
import { parseSource } from "../../config/yaml/source.ts";
import type { Key } from "../../config/catalog.ts";
import { getField } from "../../lib/json/json.ts";
import { sha256Hex } from "../../lib/secret.ts";

/** Null when the file has only the hash, or a variable that is not set. */
export function readPlainSecret({ name, secretSha256 }: Key, configPath: string): string | null {
  const keys = getField(parseSource(readConfigText(configPath)).tree, "keys");
  const entry = Array.isArray(keys) ? keys.find((each) => getField(each, "name") === name) : undefined;
  const written = getField(entry, "secret");
  if (typeof written !== "string") return null;
  const { tree: secret, unset } = expandTree(written, process.env);
  const isKnown = typeof secret === "string" && unset.length === 0;
  return isKnown && sha256Hex(secret) === secretSha256 ? secret : null;
}
