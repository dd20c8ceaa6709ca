// Finds who sent a request (tool, session, agent) for the ledger, without prompts.

import type { Catalog } from "../../config/catalog.ts";
import type { Ledger } from "../../billing/ledger/ledger.ts";
import type { Identity } from "../../billing/ledger/line.ts";
import { listSessions } from "../../billing/ledger/shares.ts";
import { asBuffer } from "../../lib/memory/bytes.ts";
import { getField, parseJson } from "../../lib/json/json.ts";
import { BoundedMap, remember } from "../../lib/memory/bounded-map.ts";
import { sha256Hex } from "../../lib/secret.ts";
import type { ScannedBody } from "../../dialects/prompt/prompt.ts";
import type { Exchange } from "../../lib/http/exchange.ts";
import { listOwnSecrets } from "./authenticate.ts";
import type { UnroutedCall } from "./call.ts";
import { secretsOf } from "./secrets.ts";

type Ids = Pick<Identity, "session" | "agent" | "parent">;
type FoundIds = { readonly [name in keyof Ids]: string | undefined };

interface ToolRow {
  readonly tool: string;
  readonly userAgent: RegExp;
  readonly read?: (exchange: Exchange, body: ScannedBody | null) => Partial<FoundIds>;
}

/** The first matching row counts. Decision 0018 has the evidence. */
const TOOLS: readonly ToolRow[] = [
  // On the messages dialect, Qwen Code calls itself `claude-cli/0.x`.
  { tool: "qwen-code", userAgent: /^(?:QwenCode\/|claude-cli\/0\.)/ },
  { tool: "claude-code", userAgent: /^claude-(?:cli|code)\//, read: readClaudeCode },
  { tool: "codex", userAgent: /^codex[_-]/, read: readCodex },
  {
    tool: "opencode",
    userAgent: /^opencode\//,
    read: (exchange) => ({ parent: exchange.field("x-parent-session-id") }),
  },
  { tool: "gemini-cli", userAgent: /^GeminiCLI[-/]/ },
  { tool: "copilot", userAgent: /^(?:copilot|GitHubCopilot)/i },
];

/** A product's name ends at the first slash, or with the user agent. */
const PRODUCT = /^([A-Za-z][A-Za-z0-9._ -]{0,63})(?:\/|$)/;

/** An SDK names its language before its version: `Anthropic/JS 0.115.0`. */
const VERSION = /^[^/]{1,64}\/(?:[A-Za-z]{1,16} )?v?(\d[\w.+-]{0,31})(?:[\s/(;]|$)/;

interface Agent extends Pick<Identity, "tool" | "version"> {
  readonly read: ToolRow["read"];
}

/** The user agent of an SDK does not say which tool uses it,
 *  but `gateway run` does. */
const readAgent = remember(1000, (agent): Agent => {
  const [userAgent = "", named = ""] = agent.split("\n");
  const row = TOOLS.find((each) => each.userAgent.test(userAgent));
  const own = row?.tool ?? readProduct(userAgent);
  const tool = row?.tool ?? readProduct(named) ?? own;
  return { tool, version: tool === own ? VERSION.exec(userAgent)?.[1] : undefined, read: row?.read };
});

function readClient({ tool, version, read }: Agent, exchange: Exchange, body: ScannedBody | null): Identity {
  const ids = read?.(exchange, body) ?? {};
  const session = ids.session ?? (ids.agent === undefined ? readSessionField(exchange) : undefined);
  return {
    tool,
    version,
    session: storeId(session),
    agent: storeId(ids.agent),
    parent: storeId(ids.parent),
    label: storeLabel(exchange.field("x-gateway-label")),
  };
}

function readProduct(userAgent: string): string | undefined {
  const product = PRODUCT.exec(userAgent)?.[1]?.toLowerCase();
  return product === undefined || KEY.test(product) ? undefined : product;
}

/** Leaves out what holds a secret. */
export function readSender(
  { exchange }: UnroutedCall,
  catalog: Catalog,
  own: readonly string[] = listOwnSecrets(exchange),
  body: ScannedBody | null = null,
): Identity {
  // Keeps the case: in lower case, a key would not match its hash.
  const agent = `${exchange.field("user-agent") ?? ""}\n${exchange.field("x-gateway-tool") ?? ""}`;
  const client = readClient(readAgent(agent), exchange, body);
  const known = secretsOf(catalog);
  const sent = known.forSender(own);
  const holds = (text: string): boolean => known.holds(text) || sent.holds(text);
  const { session = "", agent: member = "", parent = "", label = "" } = client;
  if (!holds(`${agent} ${session} ${member} ${parent}`) && !holds(label)) return client;
  const { tool, version, ...ids } = client;
  const kept = Object.entries(ids).filter(([, text]) => typeof text !== "string" || !holds(text));
  return { ...(holds(agent) ? {} : { tool, version }), ...Object.fromEntries(kept) };
}

/** Ids are short. A longer member holds something else. */
const MAX_MEMBER_BYTES = 16 * 1024;

export function readMember(body: ScannedBody | null, name: string): string | undefined {
  const span = body?.scan.get(name);
  if (body === null || span === undefined || span.end - span.start > MAX_MEMBER_BYTES) return undefined;
  return asBuffer(body.bytes).toString("utf8", span.start, span.end);
}

function readClaudeCode(exchange: Exchange, body: ScannedBody | null): Partial<FoundIds> {
  return {
    session: exchange.field("x-claude-code-session-id") ?? readUserId(readMember(body, "metadata")),
    agent: exchange.field("x-claude-code-agent-id"),
    parent: exchange.field("x-claude-code-parent-agent-id"),
  };
}

/** `metadata.user_id`: JSON text, formerly `user_…_account_…_session_ID`. */
function readUserId(metadata: string | undefined): string | undefined {
  const id = metadata === undefined ? undefined : getField(parseJson(metadata), "user_id");
  if (typeof id !== "string") return undefined;
  const session = id.startsWith("{") ? getField(parseJson(id), "session_id") : undefined;
  if (typeof session === "string") return session;
  return /_session_([0-9a-f-]{36})$/.exec(id)?.[1];
}

/** A thread that does not have the session's id is a subagent. */
function readCodex(exchange: Exchange, body: ScannedBody | null): Partial<FoundIds> {
  const field = (name: string): string | undefined => exchange.field(name);
  const turn = parseJson(field("x-codex-turn-metadata") ?? "");
  const read = (name: string): string | undefined => textOf(getField(turn, name));
  const session =
    field("session-id") ??
    read("session_id") ??
    textOf(parseJson(readMember(body, "prompt_cache_key") ?? ""));
  const thread = field("thread-id") ?? read("thread_id");
  if (thread === undefined || thread === session) return { session };
  const parent = field("x-codex-parent-thread-id") ?? read("parent_thread_id");
  return { session, agent: thread, parent: parent === session ? undefined : parent };
}

const SESSION_FIELDS = [
  "x-claude-code-session-id",
  "x-session-id",
  "session-id",
  "session_id",
  "x-session-affinity",
  "x-conversation-id",
  "conversation-id",
  "conversation_id",
  "thread-id",
  "thread_id",
  // `gateway run` sends this, in case the tool names no session.
  "x-gateway-session",
];
const SESSION_RANKS = new Map(SESSION_FIELDS.map((name, rank) => [name, rank]));

export function readSessionField({ fields }: Pick<Exchange, "fields">): string | undefined {
  let [rank, session]: [number, string | undefined] = [SESSION_FIELDS.length, undefined];
  for (const field of fields) {
    const own = SESSION_RANKS.get(field[0]);
    if (own !== undefined && own < rank && field[1] !== "") [rank, session] = [own, field[1]];
  }
  return session;
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

const PLAIN_ID = /^[A-Za-z0-9._:/-]{1,128}$/;

/** A key that was sent as an id or a label. */
const KEY = /sk-[\w-]{24}/;

/** Hashes an id that may hold something else. */
export function storeId(id: string | undefined): string | undefined {
  if (id === undefined || id === "") return undefined;
  return PLAIN_ID.test(id) && !KEY.test(id) ? id : sha256Hex(id);
}

const MAX_LABEL_LENGTH = 128;
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Headers have one character per byte. Labels may be UTF-8 or percent-encoded. */
function storeLabel(value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  const text = decodePercents(Buffer.from(value, "latin1").toString("utf8")).replace(HIDDEN, "").trim();
  return text === "" || KEY.test(text) ? undefined : Array.from(text).slice(0, MAX_LABEL_LENGTH).join("");
}

function decodePercents(text: string): string {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const SESSION_GAP_MS = 30 * 60_000;
const MAX_INFERRED_SESSIONS = 10_000;

function nameSender({ tool, label }: Identity, key: string): string {
  return `${key}\n${tool ?? ""}\n${label ?? ""}`;
}

export class InferredSessions {
  readonly #sessions = new BoundedMap<string, { readonly id: string; lastAt: number }>(MAX_INFERRED_SESSIONS);

  /** Reads the last sessions, which go on after a restart. */
  constructor({ sums }: Pick<Ledger, "sums">, now: number) {
    const sessions = sums.ask((table) => listSessions(table, now - SESSION_GAP_MS));
    for (const { at, key, client, session: id, isInferred } of sessions)
      if (isInferred) this.#sessions.set(nameSender(client, key), { id, lastAt: at });
  }

  complete(client: Identity, key: string, now: number): Identity {
    if (client.session !== undefined) return client;
    const name = nameSender(client, key);
    const known = this.#sessions.get(name);
    const isOver = known === undefined || Math.abs(now - known.lastAt) > SESSION_GAP_MS;
    const session = isOver
      ? { id: `inferred-${sha256Hex(`${name}\n${now}`).slice(0, 16)}`, lastAt: now }
      : known;
    session.lastAt = now;
    this.#sessions.set(name, session);
    return { ...client, session: session.id, inferred: true };
  }
}
