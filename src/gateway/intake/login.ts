// Which requests may send the login of a vendor's tool upstream (`credential: client`).

import type { Catalog, Group } from "../../config/catalog.ts";
import { KEY_FIELDS, nameField, OWN_KEY_FIELD } from "../../config/key-fields.ts";
import { type Platform, UNVERSIONED } from "../../config/schema.ts";
import { ConfigError } from "../../config/yaml/problems.ts";
import { LISTS, type Target } from "../../dialects/dialect.ts";
import { GatewayError } from "../../lib/errors.ts";
import type { Exchange } from "../../lib/http/exchange.ts";
import type { Field } from "../../lib/http/fields.ts";
import { sha256Hex } from "../../lib/secret.ts";
import { isLoopback } from "../../config/proxy.ts";

const LOGIN_FIELDS: ReadonlySet<string> = new Set(["authorization", "chatgpt-account-id"]);

export function readLogin({ fields }: Pick<Exchange, "fields">): Field[] {
  return [...fields].filter(([name]) => LOGIN_FIELDS.has(name));
}

export function findOwnLogin(
  { exchange, group }: { readonly exchange: Exchange; readonly group: Group },
  catalog: Catalog,
): readonly Field[] | null {
  const isAccount = group.usesLogin || exchange.field("chatgpt-account-id") !== undefined;
  if (!isAccount && (exchange.field("authorization") === undefined || !hasOtherKey(exchange, catalog)))
    return null;
  const login = readLogin(exchange).filter(([, value]) => !holdsKey(value, catalog));
  return login.length === 0 ? null : login;
}

function hasOtherKey(exchange: Exchange, { vendor }: Catalog): boolean {
  const others = [OWN_KEY_FIELD, ...KEY_FIELDS].filter((name) => !LOGIN_FIELDS.has(name));
  return others.some((name) => exchange.field(nameField(name, vendor)) !== undefined);
}

/** How to know a vendor's tool. Programs can imitate it. Honest ones do not. */
interface Tool {
  readonly name: string;
  readonly userAgent: RegExp;
  readonly session: string;
  readonly login: readonly [field: string, holds: RegExp];
}

/** Seen in Claude Code 2.1.330 and Codex 0.169.
 *  Qwen Code sends `claude-cli/0.…`. */
const TOOLS: Partial<Record<Platform, Tool>> = {
  messages: {
    name: "Claude Code",
    userAgent: /^claude-(?:cli|code)\/[1-9]/,
    session: "x-claude-code-session-id",
    login: ["anthropic-beta", /(?:^|,)\s*oauth-\d/],
  },
  responses: {
    name: "Codex",
    userAgent: /^codex[_-]/i,
    session: "session-id",
    login: ["chatgpt-account-id", /./],
  },
};

export function requireLogin(
  { exchange, target }: { readonly exchange: Exchange; readonly target: Target },
  platform: Platform,
  catalog: Catalog,
): void {
  for (const [name, value] of readLogin(exchange)) if (holdsKey(value, catalog)) throw explainPlace(name);
  const tool = TOOLS[platform];
  const login = exchange.field("authorization");
  if (tool === undefined) throw new Error("the config was not checked: no login belongs to this platform");
  if (login === undefined || login === "")
    throw new GatewayError(
      "login_missing",
      `This key's channel passes on the login of ${tool.name}, and the request has none in Authorization. Log in with the tool itself, or use a key of another group.`,
    );
  const field = (name: string): string => exchange.field(name) ?? "";
  const [mark, holds] = tool.login;
  const missing = [
    ...(tool.userAgent.test(field("user-agent")) ? [] : ["user-agent"]),
    // Model lists are requested outside of sessions.
    ...(field(tool.session) === "" && !LISTS.has(target.endpoint.purpose) ? [tool.session] : []),
    ...(holds.test(field(mark)) ? [] : [mark]),
  ];
  if (missing.length === 0) return;
  throw new GatewayError(
    "foreign_client",
    `This key's channel passes on the login of ${tool.name}, which only ${tool.name} may use, and this request does not look like its own (${missing.join(", ")}). Use a key of a group whose channel has an API key.`,
  );
}

function holdsKey(value: string, { keysBySha256 }: Catalog): boolean {
  const words = value.split(/[\s,;"=]+/);
  const decoded = words.flatMap((word) => Buffer.from(word, "base64").toString("latin1").split(":"));
  return [value.trim(), ...words, ...decoded].some(
    (word) => word !== "" && keysBySha256.has(sha256Hex(word)),
  );
}

function explainPlace(name: string): GatewayError {
  const text = `The field ${name} holds a key of this gateway. This key's channel passes that field on, so the key belongs in x-gateway-key and the tool's own login in Authorization. \`gateway run\` sets both.`;
  return new GatewayError("login_missing", text);
}

const PLAN_TOKEN = /^bearer\s+sk-ant-oat/i;

export function explainPlan(exchange: Exchange): string | null {
  const isPlan =
    PLAN_TOKEN.test(exchange.field("authorization") ?? "") ||
    exchange.field("chatgpt-account-id") !== undefined;
  return isPlan
    ? "The request has the login of a plan in Authorization, and no key of this gateway. Send in x-gateway-key a key of a group whose channel has `credential: client`. `gateway run claude` and `gateway run codex` do so."
    : null;
}

export function refuseOpenLogins({ listen, channels }: Pick<Catalog, "listen" | "channels">): void {
  const login = [...channels.values()].find(({ usesLogin }) => usesLogin);
  if (login === undefined || isLoopback(listen.host)) return;
  throw new ConfigError(
    `The channel "${login.name}" passes on the client's own login, so the gateway may listen on loopback only, and not on ${listen.host}. Leave out --host and listen.host, or remove the channel.`,
  );
}

/** ChatGPT's paths have no version. */
export function upstreamPath(
  channel: { readonly usesLogin: boolean; readonly baseUrl: URL },
  path: string,
): string {
  const isUnversioned = channel.usesLogin && channel.baseUrl.pathname.endsWith(UNVERSIONED);
  return isUnversioned ? path.replace(/^\/v1(?=\/)/, "") : path;
}
