// The config file of a simulated gateway, written from the plan.

import { secretOf } from "../clients/requests.ts";
import { type ClientPlan, type LimitPlan, type Plan, type Platform, platformOf } from "../plan/plan.ts";
import { credentialOf } from "../upstreams/upstream.ts";

export const HOME = "/home/user";
export const CONFIG = `${HOME}/gateway.yaml`;
export const LEDGER = `${HOME}/ledger.jsonl`;
/** What an editor may leave in the middle of its work. */
export const BROKEN_CONFIG = "channels: [what is this";
export const PORT = 4141;

/** How long the gateway waits for the first byte of an answer. */
export const FIRST_BYTE_SECONDS = 12;
/** How long it waits for all attempts of a request. */
export const TOTAL_SECONDS = 30;

/** What the operator has changed. */
export interface Changes {
  readonly keysOff: ReadonlySet<string>;
  readonly channelsOff: ReadonlySet<string>;
  readonly comment: string;
  /** Every group has another multiplier. */
  readonly raised: boolean;
  /** Of keys, in place of those that the plan gives them at the beginning. */
  readonly limits: ReadonlyMap<string, LimitPlan>;
}

export const NO_CHANGES: Changes = {
  keysOff: new Set(),
  channelsOff: new Set(),
  comment: "",
  raised: false,
  limits: new Map(),
};

export function writeConfig(plan: Plan, changes: Changes = NO_CHANGES): string {
  const platforms = [...new Set(plan.channels.map(({ platform }) => platform))];
  return [
    `# ${changes.comment}`,
    `listen: { host: 127.0.0.1, port: ${PORT} }`,
    `ledger: { path: ledger.jsonl, rotate: { monthly: ${plan.rotateMonthly} } }`,
    // The machine's own zone would make other traces on another machine.
    "timezone: UTC",
    `on_disconnect: { drain: ${plan.drainMs}ms }`,
    `failover: { attempts: ${plan.attempts}, total: ${TOTAL_SECONDS}s }`,
    "channels:",
    ...plan.channels.map(
      ({ name, platform, priority, probeSeconds = 0 }) =>
        `  ${name}: { platform: ${platform}, base_url: http://${name}.test, credential: ${credentialOf(name)}, priority: ${priority}, disabled: ${changes.channelsOff.has(name)}, timeouts: { connect: 4s, first_byte: ${FIRST_BYTE_SECONDS}s, idle: 15s }${probeSeconds > 0 ? `, probe: ${probeSeconds}s` : ""} }`,
    ),
    "groups:",
    ...platforms.map((platform) => {
      const names = plan.channels.filter((channel) => channel.platform === platform).map(({ name }) => name);
      return `  ${platform}: { platform: ${platform}, multiplier: ${(changes.raised ? RAISED : MULTIPLIERS)[platform]}, channels: [${names.join(", ")}] }`;
    }),
    "keys:",
    ...listKeys(plan).map(
      ({ key, dialect, limits }) =>
        `  - { name: ${key}, group: ${platformOf(dialect)}, secret: ${secretOf(key)}, disabled: ${changes.keysOff.has(key)}, limits: { ${writeLimits(changes.limits.get(key) ?? limits)} } }`,
    ),
    "",
  ].join("\n");
}

const MULTIPLIERS: Readonly<Record<Platform, string>> = {
  messages: "1",
  responses: "0.3333333333333",
  content: "1.25",
  relay: "0.5",
};

/** None is lower than before: the checks of limits count the lowest. */
const RAISED: typeof MULTIPLIERS = {
  messages: "1.7",
  responses: "0.4444444444444",
  content: "2",
  relay: "0.75",
};

function listKeys(plan: Plan): ClientPlan[] {
  return plan.clients.filter((client) => client.key === client.name);
}

const SETTINGS: Readonly<Record<keyof LimitPlan, string>> = {
  requestsPerMinute: "requests_per_minute",
  concurrentRequests: "concurrent_requests",
  usdPerDay: "usd_per_day",
  usdPerMonth: "usd_per_month",
  usdTotal: "usd_total",
  requestsPerMinutePerSession: "requests_per_minute_per_session",
  usdPerSession: "usd_per_session",
};

function writeLimits(limits: LimitPlan): string {
  const set = Object.entries({ ...limits }).filter(([, value]) => value !== undefined);
  return set.map(([name, value]) => `${Reflect.get(SETTINGS, name)}: ${JSON.stringify(value)}`).join(", ");
}
