// Changes of keys by the page: what they do to the config file, and what they leave alone.

import { afterEach, beforeEach, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { loadConfig } from "../../src/config/file/load.ts";
import { type Catalog } from "../../src/config/catalog.ts";
import { sha256Hex } from "../../src/lib/secret.ts";
import { parseUsd } from "../../src/lib/money.ts";
import { describeLimit } from "../../src/web/keys.ts";
import { type InsideGateway, startGatewayHere } from "../harness/gateway.ts";
import { knownFields, signIn, visit } from "./visitor.ts";

const CONFIG = `# mine
listen: { port: 0 }
channels:
  a: { platform: messages, base_url: http://127.0.0.1:9, credential: x }
groups:
  claude: { platform: messages, channels: [a] } # at cost
  closed: { platform: messages, channels: [a], exclusive: true }
plans:
  max: { groups: [closed] }
keys:
  # by hand
  - { name: laptop, group: claude, secret: sk-laptop, expires: 2099-01-31, limits: { usd_per_day: 5, strict: true } }
`;

let gateway: InsideGateway;
let fields: Record<string, string>;
beforeEach(async () => {
  gateway = startGatewayHere({ config: CONFIG, console: true });
  fields = knownFields(gateway, await signIn(gateway));
});
afterEach(() => gateway.stop());

const text = (): string => readFileSync(gateway.configPath, "utf8");
const catalog = (): Catalog => loadConfig(gateway.configPath, {}).catalog;
const change = (body: object) => visit(gateway, "/console/api/keys/change", { body, fields });

test("a new secret keeps the key's expiry, limits and comments", async () => {
  const answer = await change({ name: "laptop", action: "rotate" });
  const secret: string = JSON.parse(answer.text).secret.text;
  const key = catalog().keysBySha256.get(sha256Hex(secret));
  expect(key).toMatchObject({ name: "laptop", limits: { usdPerDay: "5", strict: true } });
  expect(key?.expires?.toISOString()).toBe("2099-01-31T00:00:00.000Z");
  expect(text()).toContain("# by hand");
  expect(text()).not.toContain("sk-laptop");
});

test("limits are set and removed one by one", async () => {
  const limits = { usd_per_day: null, usd_per_month: "0.50", strict: null, unpriced: "allow" };
  const answer = await change({ name: "laptop", action: "limit", limits });
  expect(JSON.parse(answer.text).keys[0].limits).toEqual({ usd_per_month: "0.5", unpriced: "allow" });
  expect(text()).toContain("expires: 2099-01-31, limits: { usd_per_month: 0.50, unpriced: allow } }");
});

test("a change that is refused says why, and changes nothing", async () => {
  const refused: [object, number, string][] = [
    [{ name: "laptop", action: "move", group: "closed" }, 409, "exclusive to a plan that is not active"],
    [{ name: "laptop", action: "move", group: "clode" }, 409, 'did you mean "claude"?'],
    [{ name: "laptop", action: "move" }, 400, "The group is missing."],
    [{ name: "lapto", action: "remove" }, 409, 'did you mean "laptop"?'],
    [{ name: "laptop", action: "limit", limits: { usd_per_day: "-1" } }, 400, "usd_per_day: expected"],
    [{ name: "laptop", action: "erase" }, 400, "does not expect"],
  ];
  for (const [body, status, why] of refused) {
    const answer = await change(body);
    expect([answer.status, JSON.parse(answer.text).error]).toEqual([status, expect.stringContaining(why)]);
  }
  const key = { name: "new", group: "closed", expires: "never", limits: {} };
  const answer = await visit(gateway, "/console/api/keys/new", { body: key, fields });
  expect([answer.status, Object.keys(JSON.parse(answer.text))]).toEqual([409, ["error"]]);
  expect(text()).toBe(CONFIG);
});

test.each([
  ["0", "5", null],
  ["3.999999999999", "1.000000000001", null],
  ["4", "1", 80],
  ["4.75", "0.25", 95],
  ["5", "0", 95],
  // The last request that was let in may cost more than what was left.
  ["7", "0", 95],
])("of $5, %s spent leave %s, with the warning %p", (spent, left, warning) => {
  const holder = { kind: "key", name: "laptop" } as const;
  const use = { holder, limit: "usd_per_day", usd: parseUsd("5"), spent: parseUsd(spent), resets: null };
  expect(describeLimit(use, [80, 95])).toEqual({
    holder,
    limit: "usd_per_day",
    usd: "5",
    spent_usd: spent,
    left_usd: left,
    resets: null,
    warning,
  });
});
