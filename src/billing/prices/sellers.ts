// Whose prices a channel pays.

import type { Channel, Group } from "../../config/catalog.ts";
import { PLATFORM_FACTS } from "../../config/schema.ts";
import type { Tariff } from "../usage.ts";
import { NAMED_MAKERS } from "./names.ts";

export interface Seller {
  /** Null: a relay or somebody's own proxy. */
  readonly provider: string | null;
  /** For an unknown address: the makers whose lists are searched first. */
  readonly makers: readonly string[];
  readonly free: boolean;
  /** Where OpenAI processes requests, such as `eu`. A region costs more. */
  readonly region: string | null;
  /** The book's price, or the amount in the answer. */
  readonly bill: "book" | "reported";
}

/** At an unknown address, the model's name decides. */
export const ANY_SELLER: Seller = {
  provider: null,
  makers: ["anthropic", "openai", "google"],
  free: false,
  region: null,
  bill: "book",
};

/** The makers to search by name, without zhipuai, which is zai in another market. */
export const ALL_MAKERS: readonly string[] = [...NAMED_MAKERS, "voyageai", "arcee", "alibaba"];

/** Providers behind Hugging Face, each at its own address. */
const HUGGING_FACE =
  "cerebras fireworks-ai groq hyperbolic nebius novita nscale ovhcloud publicai sambanova together".split(
    " ",
  );

/** Provider → its hosts. `*` stands for labels of the host's name, or for a part of a label.
 *  A path follows if providers share the host. */
const ADDRESSES: Readonly<Record<string, string>> = {
  anthropic: "api.anthropic.com",
  openai: "api.openai.com *.api.openai.com",
  google: "generativelanguage.googleapis.com *googleapis.com",
  // Mainland China has other prices.
  alibaba: "dashscope-intl.aliyuncs.com",
  arcee: "api.arcee.ai",
  avian: "api.avian.io",
  aws: "bedrock-runtime.*.amazonaws.com",
  azure: "*.openai.azure.com *.azure-api.net *.cognitiveservices.azure.com *.services.ai.azure.com",
  baseten: "inference.baseten.co",
  cerebras: "api.cerebras.ai",
  cloudflare: "api.cloudflare.com/client/v4/accounts/",
  cohere: "api.cohere.ai api.cohere.com",
  cursor: "api.cursor.com",
  deepseek: "api.deepseek.com",
  doubleword: "api.doubleword.ai",
  fireworks: "api.fireworks.ai",
  "github-copilot": "api.githubcopilot.com",
  groq: "api.groq.com",
  ...Object.fromEntries(HUGGING_FACE.map((name) => [`huggingface_${name}`, `router.huggingface.co/${name}`])),
  minimax: "api.minimax.io api.minimax.com api.minimaxi.com",
  mistral: "api.mistral.ai",
  modal: "*.modal.run *.modal.direct",
  moonshotai: "api.moonshot.ai api.moonshot.cn",
  novita: "api.novita.ai",
  openrouter: "openrouter.ai api.openrouter.ai",
  ovhcloud: "oai.endpoints.kepler.ai.cloud.ovh.net",
  perplexity: "api.perplexity.ai",
  quicksilverpro: "api.quicksilverpro.io",
  together: "api.together.xyz",
  typesafe: "api.typesafe.ai",
  vercel: "ai-gateway.vercel.sh",
  voyageai: "api.voyageai.com",
  "x-ai": "api.x.ai",
  zai: "api.z.ai",
  zhipuai: "open.bigmodel.cn",
};

export const KNOWN_PROVIDERS: readonly string[] = Object.keys(ADDRESSES);

export function findProvider({ hostname, pathname }: URL): string | null {
  const host = hostname.toLowerCase();
  const isAt = (address: string): boolean => {
    const [pattern = "", ...path] = address.split("/");
    return matchesHost(pattern, host) && pathname.startsWith(`/${path.join("/")}`);
  };
  const found = Object.entries(ADDRESSES).find(([, addresses]) => addresses.split(" ").some(isAt));
  return found?.[0] ?? null;
}

export function isAllAt({ channels }: Pick<Group, "channels">, provider: string): boolean {
  return channels.length > 0 && channels.every((channel) => addressProvider(channel) === provider);
}

/** A login belongs to its maker, whatever address it is sent through. */
function addressProvider({ usesLogin, platform, baseUrl }: Channel): string | null {
  return usesLogin ? (PLATFORM_FACTS[platform].makers[0] ?? null) : findProvider(baseUrl);
}

/** `*.example.com`: subdomains. `*example.com`: also the domain. */
function matchesHost(pattern: string, host: string): boolean {
  const star = pattern.indexOf("*");
  if (star < 0) return host === pattern;
  const [head, tail] = [pattern.slice(0, star), pattern.slice(star + 1)];
  if (star === 0 && !tail.startsWith(".")) return host === tail || host.endsWith(`.${tail}`);
  return host.length > head.length + tail.length && host.startsWith(head) && host.endsWith(tail);
}

/** The host sets the region: https://developers.openai.com/api/docs/guides/data-residency */
const REGIONAL = /^(us|eu|au|in|jp)\.api\.openai\.com$/;

export function addRegion(tariff: Tariff, seller: Seller | undefined): Tariff {
  const region = seller?.region ?? null;
  return region === null ? tariff : { ...tariff, region };
}

/** These sellers' prices change, and each answer names its cost. */
const SELLERS_THAT_NAME: ReadonlySet<string> = new Set(["openrouter", "vercel"]);

const sellers = new WeakMap<Channel, Seller>();

export function sellerOf(channel: Channel): Seller {
  const known = sellers.get(channel);
  if (known !== undefined) return known;
  const { platform, baseUrl, priceProvider, free, bill } = channel;
  const names = !free && SELLERS_THAT_NAME.has(findProvider(baseUrl) ?? "");
  const seller: Seller = {
    provider: priceProvider ?? addressProvider(channel),
    makers: PLATFORM_FACTS[platform].makers,
    free,
    region: REGIONAL.exec(baseUrl.hostname.toLowerCase())?.[1] ?? null,
    bill: bill ?? (names ? "reported" : "book"),
  };
  sellers.set(channel, seller);
  return seller;
}
