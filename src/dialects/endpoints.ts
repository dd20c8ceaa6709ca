// The endpoint table: which platform answers which paths, in which dialect, and
// where a client's key stands there. How a request finds its row is index.ts.

import type { Platform } from "../config/schema.ts";
import { chat } from "./chat.ts";
import { content } from "./content.ts";
import type { Dialect, Endpoint, KeySource, Purpose, Target } from "./dialect.ts";
import { messages } from "./messages.ts";
import { relay } from "./relay.ts";
import { responses } from "./responses.ts";

export type OwnPage = "root" | "hello" | "healthz" | "metrics";

/** Whose client asks where a path has several owners: its header fields tell. */
export type Owner = "messages" | "responses" | "content";
export type ByOwner<T> = Readonly<Record<Owner, T>>;

/** The same for every client, or by whose client it is. */
export type Choice<T> = { readonly one: T } | { readonly by: ByOwner<T> };

export type Row =
  | { readonly kind: "own"; readonly page: OwnPage }
  | { readonly kind: "upgrade" }
  | { readonly kind: "target"; readonly targets: Choice<Target> };

/** The paths that end in a model: `…/models/{id}` and `…/models/{id}:verb`. */
export interface ModelPaths {
  /** What stands before the id upstream. */
  readonly upstream: string;
  readonly single: Choice<Endpoint>;
  readonly verbs: ReadonlyMap<string, Endpoint>;
}

export interface Table {
  readonly relayPath: string;
  readonly vendorHeader: string;
  /** Path → method → row. */
  readonly exact: ReadonlyMap<string, ReadonlyMap<string, Row>>;
  /** By the path up to its first `/models/`, included. */
  readonly models: ReadonlyMap<string, ModelPaths>;
}

type Family = Pick<Endpoint, "dialect" | "platforms" | "keySources">;
type Line = readonly [method: string, path: string, purpose: Purpose, families: Choice<Family>];

const BEARER: readonly KeySource[] = ["bearer"];
const MESSAGES_KEYS: readonly KeySource[] = ["bearer", "x-api-key"];
const CONTENT_KEYS: readonly KeySource[] = ["bearer", "vendor-header", "query"];
const ALL_KEYS: readonly KeySource[] = ["bearer", "x-api-key", "vendor-header", "query"];
const LISTED: readonly Platform[] = ["messages", "responses", "content"];

/** The dialects of the paths that several platforms share. */
export const OWNERS: ByOwner<Dialect> = { messages, responses, content };
export const RELAY_OWNERS: ByOwner<Dialect> = { messages: relay, responses: relay, content };

const RESPONSES: Family = { dialect: responses, platforms: ["responses"], keySources: BEARER };
const MESSAGES: Choice<Family> = forAll({
  dialect: messages,
  platforms: ["messages"],
  keySources: MESSAGES_KEYS,
});
const CHAT: Choice<Family> = forAll({ dialect: chat, platforms: ["responses"], keySources: BEARER });
const CONTENT: Family = { dialect: content, platforms: ["content"], keySources: CONTENT_KEYS };
const SHARED = forEachOwner(OWNERS, (dialect): Family => ({
  dialect,
  platforms: LISTED,
  keySources: ALL_KEYS,
}));
const RELAY_MESSAGES: Choice<Family> = forAll({
  dialect: messages,
  platforms: ["relay"],
  keySources: MESSAGES_KEYS,
});
const RELAY_CONTENT: Family = { dialect: content, platforms: ["relay"], keySources: CONTENT_KEYS };
const RELAY_LIST: Choice<Family> = forAll({ dialect: relay, platforms: ["relay"], keySources: BEARER });
const RELAY_SHARED = forEachOwner(RELAY_OWNERS, (dialect): Family => ({
  dialect,
  platforms: ["relay"],
  keySources: ALL_KEYS,
}));

const LINES: readonly Line[] = [
  ["POST", "/v1/messages", "generate", MESSAGES],
  ["POST", "/v1/messages/count_tokens", "count", MESSAGES],
  ["POST", "/v1/responses", "generate", forAll(RESPONSES)],
  ["POST", "/v1/responses/compact", "generate", forAll(RESPONSES)],
  ["POST", "/v1/responses/input_tokens", "count", forAll(RESPONSES)],
  ["POST", "/v1/chat/completions", "generate", CHAT],
  ["GET", "/v1/models", "list", SHARED],
  ["GET", "/v1beta/models", "list", forAll(CONTENT)],
];

/** As the upstream has them; clients put the relay's prefix before. */
const RELAY_LINES: readonly Line[] = [
  ["POST", "/v1/messages", "generate", RELAY_MESSAGES],
  ["POST", "/v1/messages/count_tokens", "count", RELAY_MESSAGES],
  ["GET", "/models", "list", RELAY_LIST],
  ["GET", "/v1/models", "list", RELAY_SHARED],
  ["GET", "/v1beta/models", "list", forAll(RELAY_CONTENT)],
];

const VERBS: readonly (readonly [verb: string, purpose: Purpose])[] = [
  ["streamGenerateContent", "generate"],
  ["generateContent", "generate"],
  ["countTokens", "count"],
  ["embedContent", "embed"],
  ["batchEmbedContents", "embed"],
];

/** What may be asked of a stored response: method, what follows its id, endpoint. */
export const STORED: readonly (readonly [method: string, tail: string, endpoint: Endpoint])[] = [
  ["GET", "", { label: "/v1/responses/{id}", purpose: "resource", ...RESPONSES }],
  ["DELETE", "", { label: "/v1/responses/{id}", purpose: "resource", ...RESPONSES }],
  ["GET", "/input_items", { label: "/v1/responses/{id}/input_items", purpose: "resource", ...RESPONSES }],
  ["POST", "/cancel", { label: "/v1/responses/{id}/cancel", purpose: "resource", ...RESPONSES }],
];

/** The manners in which a path is refused that is under a platform, but no endpoint of it. */
export const MANNERS: readonly (readonly [start: string, dialect: Dialect])[] = [
  ["/v1/messages", messages],
  ["/v1/responses", responses],
  ["/v1/chat/", chat],
  ["/v1beta", content],
];

function forAll<T>(value: T): Choice<T> {
  return { one: value };
}

function forEachOwner<T, U>(from: ByOwner<T>, change: (value: T) => U): Choice<U> {
  return {
    by: { messages: change(from.messages), responses: change(from.responses), content: change(from.content) },
  };
}

function mapChoice<T, U>(choice: Choice<T>, change: (value: T) => U): Choice<U> {
  return "one" in choice ? forAll(change(choice.one)) : forEachOwner(choice.by, change);
}

/** The table for one relay prefix and vendor word. */
export function buildTable(relayPrefix: string, vendor: string): Table {
  const relayPath = `/${relayPrefix}`;
  const exact = new Map<string, Map<string, Row>>();
  const add = (method: string, path: string, row: Row): void => {
    const rows = exact.get(path) ?? new Map<string, Row>();
    exact.set(path, rows.set(method, row));
  };
  for (const [method, path, row] of [
    ...listOwn(relayPath),
    ...listRows("", LINES),
    ...listRows(relayPath, RELAY_LINES),
  ]) {
    add(method, path, row);
  }
  // Codex tries a WebSocket first, and takes this status alone as the sign to go on without.
  add("GET", "/v1/responses", { kind: "upgrade" });
  const models = new Map<string, ModelPaths>([
    ...listModelPaths("", SHARED, CONTENT),
    ...listModelPaths(relayPath, RELAY_SHARED, RELAY_CONTENT),
  ]);
  return { relayPath, vendorHeader: `x-${vendor}-api-key`, exact, models };
}

type PlacedRow = readonly [method: string, path: string, row: Row];

/** Claude Code asks after `api/hello` below whichever base URL it was given. */
function listOwn(relayPath: string): PlacedRow[] {
  const pages: readonly (readonly [string, OwnPage])[] = [
    ["/", "root"],
    ["/api/hello", "hello"],
    ["/healthz", "healthz"],
    ["/metrics", "metrics"],
    [relayPath, "root"],
    [`${relayPath}/api/hello`, "hello"],
  ];
  return pages.flatMap(([path, page]) =>
    ["GET", "HEAD"].map((method): PlacedRow => [method, path, { kind: "own", page }]),
  );
}

function listRows(prefix: string, lines: readonly Line[]): PlacedRow[] {
  return lines.map(([method, path, purpose, families]) => {
    const label = prefix + path;
    // Whether the answer streams is for the body of a generating request to say.
    const stream = purpose === "generate" ? null : false;
    const targets = mapChoice(families, (family): Target => {
      return { endpoint: { label, purpose, ...family }, path, model: null, stream };
    });
    return [method, label, { kind: "target", targets }];
  });
}

function listModelPaths(prefix: string, shared: Choice<Family>, family: Family): [string, ModelPaths][] {
  const versions: readonly (readonly [string, Choice<Family>])[] = [
    ["/v1/models/", shared],
    ["/v1beta/models/", forAll(family)],
  ];
  return versions.map(([upstream, families]) => {
    const start = prefix + upstream;
    const single = mapChoice(families, (of): Endpoint => ({
      label: `${start}{id}`,
      purpose: "model",
      ...of,
    }));
    const verbs = VERBS.map(([verb, purpose]): [string, Endpoint] => [
      verb,
      { label: `${start}{id}:${verb}`, purpose, ...family },
    ]);
    return [start, { upstream, single, verbs: new Map(verbs) }];
  });
}
