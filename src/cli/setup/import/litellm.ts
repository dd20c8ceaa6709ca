// The config of LiteLLM's proxy: config.yaml. Deployments with the same provider, address and credential are one channel.

import { getField } from "../../../lib/json/json.ts";
import {
  addChannel,
  addKey,
  describeChatServer,
  type Draft,
  findProvider,
  noteOthers,
  readList,
  readText,
} from "./draft.ts";

export function readLitellm(document: unknown, draft: Draft): void {
  const channels = new Map<string, string>();
  for (const entry of readList(document, "model_list")) {
    const wanted = readText(entry, "model_name") ?? "";
    const params = getField(entry, "litellm_params");
    const [provider = "", ...rest] = (readText(params, "model") ?? "").split("/");
    const [model, address, credential] = [
      rest.join("/"),
      readText(params, "api_base"),
      getField(params, "api_key"),
    ];
    const preset = model === "" ? null : (findProvider(address, provider) ?? findServer(address, provider));
    if (preset === null) {
      draft.lost.push(
        `model_list ${wanted}: the provider ${model === "" ? "of a model without one" : provider}${address === null ? "" : " at another address"}`,
      );
      continue;
    }
    const id = JSON.stringify([provider, address, credential]);
    const name = channels.get(id) ?? addChannel(draft, { name: preset.channel, preset, credential });
    channels.set(id, name);
    addModel(draft, name, wanted, model);
    noteOthers(draft, params, ["model", "api_key", "api_base"], `model_list ${wanted}: `);
  }
  addKey(
    draft,
    "master",
    getField(getField(document, "general_settings"), "master_key"),
    "general_settings.master_key",
  );
  noteOthers(draft, getField(document, "general_settings"), ["master_key"], "general_settings.");
  noteOthers(draft, document, ["model_list", "general_settings"]);
}

/** Their names for a server of Chat Completions at an address of one's own. */
const CHAT_SERVERS =
  /^(?:openai|openai_like|custom_openai|hosted_vllm|vllm|ollama|ollama_chat|lm_studio|llamafile)$/;

function findServer(address: string | null, provider: string) {
  if (address === null || !CHAT_SERVERS.test(provider)) return null;
  return { ...describeChatServer(address), channel: URL.parse(address)?.hostname ?? provider };
}

/** `claude-*` with `anthropic/*` lets these names pass. Another name for a model is an alias. */
function addModel(draft: Draft, name: string, wanted: string, model: string): void {
  const channel = draft.channels[name];
  if (channel === undefined || wanted === "") return;
  const isAlias = model !== wanted && !model.includes("*");
  if (isAlias) channel.aliases = { ...channel.aliases, [wanted]: model };
  channel.models = [...new Set([...(channel.models ?? []), isAlias ? model : wanted])];
}
