// Whose prices a channel pays, by its address or its config.

import type { Channel, Group } from "../../config/catalog.ts";
import type { ChannelPlatform } from "../../config/schema.ts";
import type { Tariff } from "../usage.ts";

export interface Seller {
  /** The price book's name. Null: the address is a relay or somebody's own proxy. */
  readonly provider: string | null;
  /** At an unknown address: the platform's makers. Their lists are searched first. */
  readonly makers: readonly string[];
  readonly free: boolean;
  /** The region of an OpenAI address that processes in one region, which costs more: `eu`. */
  readonly region: string | null;
  /** What is charged: the book's price, or the amount in the answer. */
  readonly bill: "book" | "reported";
}

/** For an unknown channel: the model's name decides. */
export const ANY_SELLER: Seller = {
  provider: null,
  makers: ["anthropic", "openai", "google"],
  free: false,
  region: null,
  bill: "book",
};

export const MAKERS_OF: Readonly<Record<ChannelPlatform, readonly string[]>> = {
  messages: ["anthropic"],
  responses: ["openai"],
  content: ["google"],
  relay: ["anthropic", "google"],
  chat: [],
};

/** The makers searched for a name without a seller. Not zhipuai: that is zai in another market. */
export const ALL_MAKERS: readonly string[] = [
  "anthropic",
  "openai",
  "google",
  "deepseek",
  "moonshotai",
  "zai",
  "minimax",
  "x-ai",
  "mistral",
  "cohere",
  "perplexity",
  "voyageai",
  "arcee",
  "alibaba",
];

/** Providers behind Hugging Face, each at its own address. */
const HUGGING_FACE =
  "cerebras fireworks-ai groq hyperbolic nebius novita nscale ovhcloud publicai sambanova together".split(
    " ",
  );

/** Host (`*`: one or more labels, or a part of one) and path → provider. From the price package's
 *  patterns for whole hosts, and the overlay's own providers. A test compares them. */
const ADDRESSES: ReadonlyArray<readonly [host: string, provider: string, path?: string]> = [
  ["api.anthropic.com", "anthropic"],
  ["api.openai.com", "openai"],
  ["*.api.openai.com", "openai"],
  ["generativelanguage.googleapis.com", "google"],
  ["*googleapis.com", "google"],
  // Singapore, in dollars. Mainland China has other prices.
  ["dashscope-intl.aliyuncs.com", "alibaba"],
  ["api.arcee.ai", "arcee"],
  ["api.avian.io", "avian"],
  ["bedrock-runtime.*.amazonaws.com", "aws"],
  ["*.openai.azure.com", "azure"],
  ["*.azure-api.net", "azure"],
  ["*.cognitiveservices.azure.com", "azure"],
  ["*.services.ai.azure.com", "azure"],
  ["inference.baseten.co", "baseten"],
  ["api.cerebras.ai", "cerebras"],
  ["api.cloudflare.com", "cloudflare", "/client/v4/accounts/"],
  ["api.cohere.ai", "cohere"],
  ["api.cohere.com", "cohere"],
  ["api.cursor.com", "cursor"],
  ["api.deepseek.com", "deepseek"],
  ["api.doubleword.ai", "doubleword"],
  ["api.fireworks.ai", "fireworks"],
  ["api.githubcopilot.com", "github-copilot"],
  ["api.groq.com", "groq"],
  ...HUGGING_FACE.map((name) => ["router.huggingface.co", `huggingface_${name}`, `/${name}`] as const),
  ["api.minimax.io", "minimax"],
  ["api.minimax.com", "minimax"],
  ["api.minimaxi.com", "minimax"],
  ["api.mistral.ai", "mistral"],
  ["*.modal.run", "modal"],
  ["*.modal.direct", "modal"],
  ["api.moonshot.ai", "moonshotai"],
  ["api.moonshot.cn", "moonshotai"],
  ["api.novita.ai", "novita"],
  ["openrouter.ai", "openrouter"],
  ["api.openrouter.ai", "openrouter"],
  ["oai.endpoints.kepler.ai.cloud.ovh.net", "ovhcloud"],
  ["api.perplexity.ai", "perplexity"],
  ["api.quicksilverpro.io", "quicksilverpro"],
  ["api.together.xyz", "together"],
  ["api.typesafe.ai", "typesafe"],
  ["ai-gateway.vercel.sh", "vercel"],
  ["api.voyageai.com", "voyageai"],
  ["api.x.ai", "x-ai"],
  ["api.z.ai", "zai"],
  ["open.bigmodel.cn", "zhipuai"],
];

export const KNOWN_PROVIDERS: readonly string[] = [...new Set(ADDRESSES.map(([, provider]) => provider))];

export function findProvider({ hostname, pathname }: URL): string | null {
  const host = hostname.toLowerCase();
  const found = ADDRESSES.find(
    ([pattern, , path]) => matchesHost(pattern, host) && (path === undefined || pathname.startsWith(path)),
  );
  return found?.[1] ?? null;
}

/** Whether all channels of the group are at the provider's own address. */
export function isAllAt({ channels }: Pick<Group, "channels">, provider: string): boolean {
  return channels.length > 0 && channels.every((channel) => addressProvider(channel) === provider);
}

/** A tool's login belongs to its maker, whatever is between. */
function addressProvider({ usesLogin, platform, baseUrl }: Channel): string | null {
  return usesLogin ? (MAKERS_OF[platform][0] ?? null) : findProvider(baseUrl);
}

/** `*.example.com`: subdomains. `*example.com`: also the domain. `a.*.example.com`: any labels. */
function matchesHost(pattern: string, host: string): boolean {
  const star = pattern.indexOf("*");
  if (star < 0) return host === pattern;
  const [head, tail] = [pattern.slice(0, star), pattern.slice(star + 1)];
  if (star === 0 && !tail.startsWith(".")) return host === tail || host.endsWith(`.${tail}`);
  return host.length > head.length + tail.length && host.startsWith(head) && host.endsWith(tail);
}

/** The host sets the region: https://developers.openai.com/api/docs/guides/data-residency */
const REGIONAL = /^(us|eu|au|in|jp)\.api\.openai\.com$/;

/** The address is the only sign of the region. */
export function addRegion(tariff: Tariff, seller: Seller | undefined): Tariff {
  const region = seller?.region ?? null;
  return region === null ? tariff : { ...tariff, region };
}

/** These sell all makers' models at changing prices, and each answer names its cost. */
const SELLERS_THAT_NAME: ReadonlySet<string> = new Set(["openrouter", "vercel"]);

const sellers = new WeakMap<Channel, Seller>();

export function sellerOf(channel: Channel): Seller {
  const known = sellers.get(channel);
  if (known !== undefined) return known;
  const { platform, baseUrl, priceProvider, free, bill } = channel;
  const names = !free && SELLERS_THAT_NAME.has(findProvider(baseUrl) ?? "");
  const seller: Seller = {
    provider: priceProvider ?? addressProvider(channel),
    makers: MAKERS_OF[platform],
    free,
    region: REGIONAL.exec(baseUrl.hostname.toLowerCase())?.[1] ?? null,
    bill: bill ?? (names ? "reported" : "book"),
  };
  sellers.set(channel, seller);
  return seller;
}
