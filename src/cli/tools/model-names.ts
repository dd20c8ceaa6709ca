// The models that a key can call, for tools that need them in their settings: from the gateway's own list, otherwise
// from the config.

import { PLATFORM_ROWS, readPathPrefix } from "../../dialects/platforms.ts";
import type { Group } from "../../config/catalog.ts";
import type { Platform } from "../../config/schema.ts";
import { createClient } from "../../lib/http/client.ts";
import { originOf } from "../../lib/http/upstream.ts";
import { getCount, getField, getList, isObject, parseJson } from "../../lib/json/json.ts";
import { isPrintable } from "../../lib/text/printable.ts";
import { fetchWhole } from "../../gateway/upstream/fetch.ts";
import type { Connection, ModelLimits } from "./programs/tool.ts";

const LIST_WAIT_MS = 5000;
const MAX_LIST_BYTES = 4 * 1024 * 1024;
/** Who asks: a replay knows that the tool did not. */
export const LIST_AGENT = "gateway-run";

export interface ListedModel extends ModelLimits {
  readonly id: string;
}

/** Null when the gateway does not answer with a list. */
export async function fetchModels(connection: Omit<Connection, "models">): Promise<ListedModel[] | null> {
  const list = await fetchList(connection);
  return isObject(list) ? readModels(list) : null;
}

/** The platform whose list the key gets; the first if it gets none, or if there is no other. */
export async function findPlatform(
  platforms: readonly Platform[],
  connection: Omit<Connection, "models" | "platform">,
): Promise<Platform | undefined> {
  const [first, ...others] = platforms;
  for (const platform of others.length === 0 ? [] : platforms) {
    const list = await fetchList({ ...connection, platform });
    if (list === undefined) break;
    if (getField(list, PLATFORM_ROWS[platform].listMark) !== undefined) return platform;
  }
  return first;
}

/** Null: a refusal. Undefined: no answer, which the tool itself will report. */
async function fetchList(connection: Omit<Connection, "models">): Promise<unknown> {
  const base = new URL(connection.base);
  // Not `fetch`: it would send the key to the proxy that HTTP_PROXY names.
  const client = createClient();
  try {
    const request = {
      origin: originOf(base),
      method: "GET",
      target: base.pathname.replace(/\/+$/, "") + placeList(connection),
      fields: [
        ["accept", "application/json"],
        ["accept-encoding", "identity"],
        ["user-agent", LIST_AGENT],
        ["authorization", `Bearer ${connection.secret}`],
      ] as const,
      body: null,
      deadlines: { connectMs: LIST_WAIT_MS, firstByteMs: LIST_WAIT_MS, idleMs: LIST_WAIT_MS },
    };
    const { response, body, isCut } = await fetchWhole(client, request, MAX_LIST_BYTES);
    if (isCut || response.status !== 200) return null;
    return parseJson(new TextDecoder().decode(body)) ?? null;
  } catch {
    return undefined;
  } finally {
    client.close();
  }
}

/** Each dialect has its own name for the size of a page. */
const WHOLE_LIST = "?limit=1000&pageSize=1000";

function placeList({ platform, relayPrefix }: Omit<Connection, "models">): string {
  return readPathPrefix(platform, relayPrefix) + PLATFORM_ROWS[platform].listPath + WHOLE_LIST;
}

/** `{data: [{id}]}`, or `{models: [{name: "models/…"}]}`. */
function readModels(list: unknown): ListedModel[] {
  const entries = getList(getField(list, "data") ?? getField(list, "models"));
  return entries.flatMap((entry) => {
    const name = getField(entry, "id") ?? getField(entry, "name");
    if (typeof name !== "string" || !isPrintable(name)) return [];
    const [context, output] = [CONTEXT_FIELDS, OUTPUT_FIELDS].map((fields) => findCount(entry, fields));
    return { id: name.replace(/^models\//, ""), context: context ?? null, output: output ?? null };
  });
}

/** Where providers put the tokens of a model's window, and of its longest answer: OpenRouter and Together, Groq, Mistral, vLLM,
 *  Anthropic, Google, llama.cpp. */
const CONTEXT_FIELDS = [
  ["context_length"],
  ["context_window"],
  ["max_context_length"],
  ["max_model_len"],
  ["max_input_tokens"],
  ["inputTokenLimit"],
  ["meta", "n_ctx"],
];
const OUTPUT_FIELDS = [
  ["top_provider", "max_completion_tokens"],
  ["max_completion_tokens"],
  ["max_output_tokens"],
  ["outputTokenLimit"],
];

function findCount(entry: unknown, fields: readonly (readonly string[])[]): number | undefined {
  return fields.flatMap((path) => getCount(path.reduce<unknown>(getField, entry)) || [])[0];
}

/** The models that the config names. A tool knows its platform's own models by itself. */
export function listConfiguredModels({ channels }: Group): string[] {
  const names = channels.flatMap(({ aliases, models }) => [
    ...aliases.keys(),
    ...(models ?? []).filter((model) => !model.includes("*")),
  ]);
  return [...new Set(names.filter(isPrintable))];
}
