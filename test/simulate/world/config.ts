// Writes the config file of a simulated gateway from its plan.

import { secretOf } from "../clients/requests.ts";
import type { Dialect, LimitPlan, Plan } from "../plan/plan.ts";
import { credentialOf } from "../upstreams/upstream.ts";

export const HOME = "/home/user";
export const CONFIG = `${HOME}/gateway.yaml`;
export const LEDGER = `${HOME}/ledger.jsonl`;

/** How long the gateway waits for the first byte of an answer. */
export const FIRST_BYTE_SECONDS = 12;
/** How long the gateway waits for all attempts of a request. */
export const TOTAL_SECONDS = 30;

export function writeConfig(plan: Plan): string {
  const platforms = [...new Set(plan.channels.map(({ platform }) => platform))];
  return [
    `listen: { host: 127.0.0.1, port: 4141 }`,
    `ledger: { path: ledger.jsonl, rotate: { monthly: ${plan.rotateMonthly} } }`,
    // The machine's own zone would make other traces on another machine.
    "timezone: UTC",
    `on_disconnect: { drain: ${plan.drainMs}ms }`,
    `failover: { attempts: ${plan.attempts}, total: ${TOTAL_SECONDS}s }`,
    "channels:",
    ...plan.channels.map(
      ({ name, platform, priority }) =>
        `  ${name}: { platform: ${platform}, base_url: http://${name}.test, credential: ${credentialOf(name)}, priority: ${priority}, timeouts: { connect: 4s, first_byte: ${FIRST_BYTE_SECONDS}s, idle: 15s } }`,
    ),
    "groups:",
    ...platforms.map((platform) => {
      const names = plan.channels.filter((channel) => channel.platform === platform).map(({ name }) => name);
      return `  ${platform}: { platform: ${platform}, multiplier: ${MULTIPLIERS[platform]}, channels: [${names.join(", ")}] }`;
    }),
    "keys:",
    ...plan.clients
      .filter(({ key, name }) => key === name)
      .map(
        ({ key, dialect, limits }) =>
          `  - { name: ${key}, group: ${dialect}, secret: ${secretOf(key)}, limits: { ${writeLimits(limits)} } }`,
      ),
    "",
  ].join("\n");
}

const MULTIPLIERS: Readonly<Record<Dialect, string>> = {
  messages: "0.3333333333333",
  content: "1.25",
};

const SETTINGS: Readonly<Record<keyof LimitPlan, string>> = {
  requestsPerMinute: "requests_per_minute",
  concurrentRequests: "concurrent_requests",
  usdPerDay: "usd_per_day",
  usdPerMonth: "usd_per_month",
  usdTotal: "usd_total",
};

function writeLimits(limits: LimitPlan): string {
  const set = Object.entries({ ...limits }).filter(([, value]) => value !== undefined);
  return set.map(([name, value]) => `${Reflect.get(SETTINGS, name)}: ${JSON.stringify(value)}`).join(", ");
}
