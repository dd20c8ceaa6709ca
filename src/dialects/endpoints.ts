// Which platform serves which paths, in which dialect.

import { KEY_SOURCES, type KeySource, nameField } from "../config/key-fields.ts";
import { type Platform, PLATFORMS } from "../config/schema.ts";
import { chat } from "./formats/chat.ts";
import { content } from "./formats/content.ts";
import type { Dialect, DialectName, Endpoint, Purpose, Target } from "./dialect.ts";
import { messages } from "./formats/messages.ts";
import { readPathPrefix } from "./platforms.ts";
import { relay } from "./formats/relay.ts";
import { embeddings, images, responses, search } from "./formats/responses.ts";
import { SEARCH_PRICE } from "./meters/calls.ts";

export type OwnPage = "root" | "hello" | "healthz" | "metrics" | "console";

export type ClientKind = "messages" | "responses" | "content";
export type ByClient<T> = Readonly<Record<ClientKind, T>>;

/** On a shared path, the client kind decides the dialect. */
type ListedEndpoint = Endpoint & { readonly shared?: ByClient<Dialect> };
export type ListedTarget = Target & { readonly endpoint: ListedEndpoint };

export type PathRow =
  | { readonly kind: "own"; readonly page: OwnPage; readonly dialect: Dialect }
  | { readonly kind: "target"; readonly target: ListedTarget };

/** Paths that end in a model: `…/models/{id}` and `…/models/{id}:verb`. */
export interface ModelPaths {
  /** What comes before the id in the upstream's path. */
  readonly upstream: string;
  readonly single: ListedEndpoint;
  readonly verbs: ReadonlyMap<string, Endpoint>;
}

export type EndpointTable = ReturnType<typeof buildTable>;

export interface Naming {
  readonly relayPrefix: string;
  readonly vendor: string;
}

type Family = Omit<ListedEndpoint, "label" | "purpose">;
type Line = readonly [method: string, path: string, purpose: Purpose, family: Family];

const BEARER: readonly KeySource[] = ["authorization"];
const MESSAGES_KEYS: readonly KeySource[] = ["authorization", "x-api-key"];
const CONTENT_KEYS: readonly KeySource[] = ["authorization", "x-{vendor}-api-key", "query"];

export const SHARED_DIALECTS: ByClient<Dialect> = { messages, responses, content };
const RELAY_DIALECTS: ByClient<Dialect> = { messages: relay, responses: relay, content };

function familyOf(dialect: Dialect, platform: Platform, keySources: readonly KeySource[]): Family {
  return { dialect, platforms: [platform], keySources };
}

const RESPONSES = familyOf(responses, "responses", BEARER);
/** https://platform.openai.com/docs/api-reference/responses/compact */
const COMPACTION: Family = { ...RESPONSES, ignoresCaps: true };
const MESSAGES = familyOf(messages, "messages", MESSAGES_KEYS);
const CHAT = familyOf(chat, "responses", BEARER);
const EMBEDDINGS: Family = { ...RESPONSES, dialect: embeddings, alsoOn: "chat" };
/** For Codex's tools: https://github.com/openai/codex/blob/main/codex-rs/codex-api/src/search.rs */
const SEARCH: Family = {
  ...RESPONSES,
  dialect: search,
  onlyAt: "openai",
  pricedAs: SEARCH_PRICE,
};
const IMAGES: Family = { ...COMPACTION, dialect: images, onlyAt: "openai" };
const CONTENT = familyOf(content, "content", CONTENT_KEYS);
const RELAY_MESSAGES = familyOf(messages, "relay", MESSAGES_KEYS);
const RELAY_CONTENT = familyOf(content, "relay", CONTENT_KEYS);
const RELAY_LIST = familyOf(relay, "relay", KEY_SOURCES);
const SHARED: Family = {
  dialect: responses,
  shared: SHARED_DIALECTS,
  platforms: PLATFORMS.filter((platform) => platform !== "relay"),
  keySources: KEY_SOURCES,
};
const RELAY_SHARED: Family = { ...RELAY_LIST, shared: RELAY_DIALECTS };

/** Clients of the relay put a prefix before its paths. */
const LINES: Readonly<Record<Platform, readonly Line[]>> = {
  messages: [
    ["POST", "/v1/messages", "generate", MESSAGES],
    ["POST", "/v1/messages/count_tokens", "count", MESSAGES],
  ],
  responses: [
    ["GET", "/v1/models", "list", SHARED],
    ["POST", "/v1/responses", "generate", RESPONSES],
    ["POST", "/v1/responses/compact", "generate", COMPACTION],
    ["POST", "/v1/responses/input_tokens", "count", RESPONSES],
    ["POST", "/v1/chat/completions", "generate", CHAT],
    ["POST", "/v1/embeddings", "embed", EMBEDDINGS],
    ["POST", "/v1/alpha/search", "embed", SEARCH],
    ["POST", "/v1/images/generations", "generate", IMAGES],
    ["POST", "/v1/images/edits", "generate", IMAGES],
  ],
  content: [["GET", "/v1beta/models", "list", CONTENT]],
  relay: [
    ["POST", "/v1/messages", "generate", RELAY_MESSAGES],
    ["POST", "/v1/messages/count_tokens", "count", RELAY_MESSAGES],
    ["GET", "/models", "list", RELAY_LIST],
    ["GET", "/v1/models", "list", RELAY_SHARED],
    ["GET", "/v1beta/models", "list", RELAY_CONTENT],
  ],
};

export const VERBS: readonly (readonly [verb: string, purpose: Purpose])[] = [
  ["streamGenerateContent", "generate"],
  ["generateContent", "generate"],
  ["countTokens", "count"],
  ["embedContent", "embed"],
  ["batchEmbedContents", "embed"],
];

function storedAt(method: string, tail: string): readonly [string, string, Endpoint] {
  return [method, tail, { label: `/v1/responses/{id}${tail}`, purpose: "resource", ...RESPONSES }];
}

export const STORED_RESPONSE = [
  storedAt("GET", ""),
  storedAt("DELETE", ""),
  storedAt("GET", "/input_items"),
  storedAt("POST", "/cancel"),
];

/** Unknown paths with this text get errors in this dialect. */
export const ERROR_PATHS: readonly (readonly [string, Dialect])[] = [
  ["/v1/messages", messages],
  ["/v1/responses", responses],
  ["/v1/chat/", chat],
  ["/v1beta", content],
];

export const DIALECTS: Readonly<Record<DialectName, Dialect>> = { messages, responses, chat, content };

export function buildTable({ relayPrefix, vendor }: Naming) {
  const relayPath = `/${relayPrefix}`;
  const served = PLATFORMS.flatMap((platform) =>
    formRows(readPathPrefix(platform, relayPrefix), LINES[platform]),
  );
  const exact = new Map<string, Map<string, PathRow>>();
  for (const [method, path, row] of [...listOwnRows(relayPath), ...served])
    exact.getOrInsertComputed(path, () => new Map()).set(method, row);
  // The key is the path up to its first `/models/`, inclusive.
  const models = new Map<string, ModelPaths>([
    ...listModelPaths("", SHARED, CONTENT),
    ...listModelPaths(relayPath, RELAY_SHARED, RELAY_CONTENT),
  ]);
  return { relayPath, vendorHeader: nameField("x-{vendor}-api-key", vendor), exact, models };
}

type MethodRow = readonly [method: string, path: string, row: PathRow];

/** Claude Code requests `api/hello` under the base URL. */
function listOwnRows(relayPath: string): MethodRow[] {
  const pages: readonly [string, OwnPage][] = [
    ["/", "root"],
    ["/api/hello", "hello"],
    ["/healthz", "healthz"],
    ["/metrics", "metrics"],
    [relayPath, "root"],
    [`${relayPath}/api/hello`, "hello"],
  ];
  return pages.map(([path, page]) => ["GET", path, { kind: "own", page, dialect: responses }]);
}

function formRows(prefix: string, lines: readonly Line[]): MethodRow[] {
  return lines.map(([method, path, purpose, family]) => {
    const label = prefix + path;
    const stream = purpose === "generate" ? null : false;
    const target = { endpoint: { label, purpose, ...family }, path, model: null, stream };
    return [method, label, { kind: "target", target }];
  });
}

function listModelPaths(prefix: string, shared: Family, family: Family): [string, ModelPaths][] {
  const versions: readonly (readonly [string, Family])[] = [
    ["/v1/models/", shared],
    ["/v1beta/models/", family],
  ];
  return versions.map(([upstream, own]) => {
    const start = prefix + upstream;
    const verbs = VERBS.map(([verb, purpose]): [string, Endpoint] => [
      verb,
      { label: `${start}{id}:${verb}`, purpose, ...family },
    ]);
    const single = { label: `${start}{id}`, purpose: "model", ...own } as const;
    return [start, { upstream, single, verbs: new Map(verbs) }];
  });
}
