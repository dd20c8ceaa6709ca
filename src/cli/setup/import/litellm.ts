// The config of LiteLLM's proxy: config.yaml. Deployments with the same provider, address and credential are one channel.
// Each provider has a group of its own: a prompt for one of them never goes to another.

import { getField } from "../../../lib/json/json.ts";
import {
  addChannel,
  addKey,
  addToGroup,
  describeChatServer,
  type Draft,
  findFreeName,
  findProvider,
  noteOthers,
  type Place,
  readAddress,
  readList,
  readText,
} from "./draft.ts";

export function readLitellm(document: unknown, draft: Draft): void {
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
