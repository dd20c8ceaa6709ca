// The login of the tool itself (`credential: client`): what goes upstream, what is refused, who pays, and that nothing of
// a login stays anywhere.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { Answer } from "../../harness/model/answers/answer.ts";
import { openIndex } from "../../../src/billing/index/open.ts";
import { describeWarning } from "../../../src/billing/limits/alerts.ts";
import { describeRise, findRise, sumSessions } from "../../../src/billing/report/sessions.ts";
import { findFault } from "../../../src/billing/ledger/check.ts";
import { formatAmount } from "../../../src/cli/terminal/text.ts";
import { addUsd, formatUsd, parseUsd, ZERO_USD } from "../../../src/lib/money.ts";
import { writeAllowance } from "../../../src/lib/text/allowance.ts";
import { CHANNEL_COLUMNS } from "../../../src/cli/channels/view.ts";
import { viewChannels } from "../../../src/gateway/control/state.ts";
import { buildStatus } from "../../../src/gateway/control/status.ts";
import { keyOf } from "../../harness/gateway.ts";
import { expectSafe } from "../../harness/secrets.ts";
import { MESSAGE, openWorld, PLATFORMS, type World } from "../world.ts";

const LOGIN = "sk-ant-oat01-INVENTED0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uVwXyZ";
const HIDDEN = LOGIN.slice("sk-ant-oat01-".length);
const CODEX_LOGIN = `eyJhbGciOiJSUzI1NiJ9.${Buffer.from("invented claims of nobody ".repeat(8)).toString("base64url")}.${"s1gN".repeat(20)}`;
const ACCOUNT = "0f9e8d7c-6b5a-4321-8fed-cba987654321";

const CLAUDE = {
  authorization: `Bearer ${LOGIN}`,
  "user-agent": "claude-cli/2.1.330 (external, cli)",
  "anthropic-beta": "claude-code-20250219,oauth-2025-04-20",
  "x-claude-code-session-id": "5b1c2d3e-0000-4000-8000-000000000001",
  "x-gateway-key": keyOf("messages"),
};
const CODEX = {
  authorization: `Bearer ${CODEX_LOGIN}`,
  "chatgpt-account-id": ACCOUNT,
  "user-agent": "codex_exec/0.169.0 (Debian 12.0.0; x86_64) unknown",
  "session-id": "5b1c2d3e-0000-4000-8000-0000000.0002",
  "x-gateway-key": keyOf("responses"),
};

let world: World;
beforeAll(() => {
  world = openWorld(
    (url) => ({
      channels: {
        messages: { platform: "messages", base_url: url, credential: "client" },
        responses: { platform: "responses", base_url: `${url}/backend-api/codex`, credential: "client" },
        content: { platform: "content", base_url: url, credential: "credential-of-the-channel" },
        relay: { platform: "relay", base_url: url, credential: "credential-of-the-channel" },
      },
      groups: {
        messages: { platform: "messages", channels: ["messages"] },
        responses: { platform: "responses", channels: ["responses"] },
        content: { platform: "content", channels: ["content"] },
        relay: { platform: "relay", channels: ["relay"] },
      },
      keys: [
        ...PLATFORMS.map((platform) => ({ name: platform, group: platform, secret: keyOf(platform) })),
        { name: "off", group: "relay", secret: "sk-test-off-0123456789", disabled: true },
        { name: "tight", group: "messages", secret: "sk-test-tight", limits: { usd_total: "0.0002" } },
      ],
    }),
    { anyCredential: true },
  );
});
afterAll(() => world.stop());

const ask = (fields: Readonly<Record<string, string>>, more: object = {}) =>
  world.trace({ target: "/v1/messages?beta=true", fields, body: { ...MESSAGE, ...more } });

const without = (name: keyof typeof CLAUDE) =>
  Object.fromEntries(Object.entries(CLAUDE).filter(([each]) => each !== name));

function answerWith(status: number, body: string, more: readonly (readonly [string, string])[] = []): Answer {
  const fields = [["content-type", "application/json"], ...more] as const;
  return { family: "messages", status, fields, pieces: [Buffer.from(body)], framing: "chunked" };
}

const WHOLE = (text: string, model = "claude-haiku-4-5"): string =>
  `{"type":"message","model":"${model}","content":[{"type":"text","text":"${text}"}],"usage":{"input_tokens":300,"output_tokens":40}}`;

describe("what goes upstream", () => {
  test("Claude Code's login goes upstream untouched, and no key of any kind with it", async () => {
    const { answer, received } = await ask({ ...CLAUDE, "x-api-key": "sk-x", "x-goog-api-key": "sk-y" });
    expect(answer.status).toBe(200);
    const sent = Object.fromEntries(received!.fields);
    expect(sent["authorization"]).toBe(`Bearer ${LOGIN}`);
    expect(sent["anthropic-beta"]).toBe(CLAUDE["anthropic-beta"]);
    for (const name of ["x-api-key", "x-goog-api-key", "x-gateway-key"]) expect(sent[name]).toBeUndefined();
    expect(received!.fields.filter(([name]) => name === "authorization")).toHaveLength(1);
  });

  test("Codex's login goes upstream with its account, on paths without a version", async () => {
    world.upstream.next({ answer: answerWith(404, "{}") });
    const body = { model: "gpt-5.4", input: "Hello" };
    const { received } = await world.trace({ target: "/v1/responses", fields: CODEX, body });
    expect(received!.target).toBe("/backend-api/codex/responses");
    const sent = Object.fromEntries(received!.fields);
    expect([sent["authorization"], sent["chatgpt-account-id"]]).toEqual([CODEX.authorization, ACCOUNT]);
  });

  test("a list of models is the upstream's own answer to the login, without a session", async () => {
    const { "session-id": _, ...fields } = CODEX;
    const { answer, lines } = await world.trace({ target: "/v1/models?client_version=1", fields });
    expect([answer.status, lines]).toEqual([200, []]);
    const asked = world.upstream.listRequests.at(-1)!;
    expect(asked.target).toBe("/backend-api/codex/models?client_version=1");
    expect(Object.fromEntries(asked.fields)["authorization"]).toBe(CODEX.authorization);
  });

  test("on any other channel, the client's Authorization never goes upstream", async () => {
    const fields = { ...CLAUDE, "x-gateway-key": keyOf("relay") };
    const { received } = await world.trace({ target: "/relay/v1/messages", fields, body: MESSAGE });
    expectSafe(JSON.stringify(received!.fields), HIDDEN);
  });
});

describe("what is refused", () => {
  let before = 0;
  beforeEach(() => {
    before = world.upstream.requests.length;
  });

  test.each([
    ["bearer", `Bearer ${keyOf("relay")}`],
    ["of this very group", `Bearer ${keyOf("messages")}`],
    ["disabled", "Bearer sk-test-off-0123456789"],
    ["without a scheme", keyOf("relay")],
    ["basic", `Basic ${Buffer.from(`user:${keyOf("relay")}`).toString("base64")}`],
    ["beside the login", `Bearer ${LOGIN}, Bearer ${keyOf("relay")}`],
  ])("a key of this gateway in Authorization is a 401 that says where it belongs: %s", async (_, value) => {
    const { answer } = await ask({ ...CLAUDE, authorization: value });
    expect([answer.status, world.upstream.requests.length - before]).toEqual([401, 0]);
    expect(answer.text).toContain("the key belongs in x-gateway-key");
    expect(answer.text).not.toContain(keyOf("relay"));
  });

  test.each([
    ["user-agent", { "user-agent": "claude-cli/0.24.4 (external, cli)" }],
    ["user-agent", { "user-agent": "anthropic-sdk" }],
    ["x-claude-code-session-id", { "x-claude-code-session-id": "" }],
    ["anthropic-beta", { "anthropic-beta": "claude-code-20250219" }],
  ])("a program without the marks of the vendor's tool is a 403 that names %s", async (name, change) => {
    const { answer, lines } = await ask({ ...CLAUDE, ...change });
    expect([answer.status, lines.length, world.upstream.requests.length - before]).toEqual([403, 0, 0]);
    expect(answer.text).toContain(`does not look like one of it (${name})`);
    expect(answer.field("x-should-retry")).toBe("false");
  });

  test("a request without a login is a 401 that says so", async () => {
    const { answer } = await ask(without("authorization"));
    expect([answer.status, world.upstream.requests.length - before]).toEqual([401, 0]);
    expect(answer.text).toContain("has none in Authorization");
  });

  test("a plan's token without a key of this gateway is a 401 that names x-gateway-key", async () => {
    const { "x-gateway-key": _, ...codex } = CODEX;
    const body = { model: "gpt-5.4", input: "Hello" };
    const asked = [
      await ask(without("x-gateway-key")),
      await world.trace({ target: "/v1/responses", fields: codex, body }),
    ];
    for (const { answer, record } of asked) {
      expect([answer.status, record.key]).toEqual([401, null]);
      expect(answer.text).toContain("Send the key in x-gateway-key");
    }
  });
});

describe("what the provider answers", () => {
  test.each([401, 403, 429, 529])(
    "a %d to a login passes on, and is no fault of the channel",
    async (status) => {
      const body =
        '{"type":"error","error":{"type":"authentication_error","message":"OAuth token has expired."}}';
      world.upstream.next({ answer: answerWith(status, body, [["retry-after", "3600"]]) });
      const refused = await ask(CLAUDE);
      expect([refused.answer.status, refused.answer.text]).toEqual([status, body]);
      expect((await ask(CLAUDE)).answer.status).toBe(200);
    },
  );
});

describe("who pays", () => {
  const payers: [string, string, [string, string][]][] = [
    ["the plan", "plan", [["anthropic-ratelimit-unified-status", "allowed"]]],
    [
      "the account",
      "plan_overage",
      [
        ["anthropic-ratelimit-unified-status", "rejected"],
        ["anthropic-ratelimit-unified-overage-status", "allowed"],
      ],
    ],
    [
      "the account, by its own word",
      "plan_overage",
      [["anthropic-ratelimit-unified-overage-in-use", "true"]],
    ],
  ];

  test.each(payers)("%s: the line has the official amount and charges nothing", async (_, payer, fields) => {
    world.upstream.next({ answer: answerWith(200, WHOLE("Hi"), fields) });
    const { lines } = await ask(CLAUDE);
    const official = "0.0005"; // 300 × $1 and 40 × $5 a million
    const money = { official_usd: official, multiplier: "0", charge_usd: "0", limit_usd: official };
    expect(lines).toMatchObject([{ ...money, paid_by: payer, basis: "exact" }]);
    expect(findFault(lines[0]!)).toBeNull();
    expect(findFault({ ...lines[0], limit_usd: "0.0004" })).toContain("limit_usd is 0.0004");
    expect(findFault({ ...lines[0], limit_usd: undefined })).toContain("paid_by needs limit_usd");
    expect(findFault({ ...lines[0], paid_by: "nobody" })).not.toBeNull();
  });

  test("a channel shows what the plan paid today, and not as a charge", () => {
    const { records, running } = world.gateway;
    const paid = records
      .filter(({ channel }) => channel === "messages")
      .reduce((sum, { planUsd = "0" }) => addUsd(sum, parseUsd(planUsd)), ZERO_USD);
    expect(paid > 0n).toBe(true);
    const view = viewChannels(running.gateway).find(({ name }) => name === "messages");
    expect(view).toMatchObject({ charge_today_usd: "0", paid_by_plan_today_usd: formatUsd(paid) });
    const today = CHANNEL_COLUMNS.find(({ title }) => title === "TODAY");
    expect(view && today?.read(view)).toBe(`(plan $${formatAmount(formatUsd(paid))})`);
  });

  test("a limit in USD counts what the plan pays for, also after a restart", async () => {
    const fields = { ...CLAUDE, "x-gateway-key": "sk-test-tight" };
    world.upstream.next({ answer: answerWith(200, WHOLE("Hi")) });
    expect((await ask(fields, { max_tokens: 1 })).answer.status).toBe(200);
    const { answer } = await ask(fields, { max_tokens: 1 });
    expect(answer.status).toBe(429);
    expect(answer.text).toContain("0.0002");
  });
});

describe("the windows of a plan", () => {
  const session = "5b1c2d3e-0000-4000-8000-00000000000a";
  const fields = { ...CLAUDE, "x-claude-code-session-id": session };
  const resets = Math.floor(Date.now() / 1000) + 7200;
  const answer = (share: string) =>
    world.upstream.next({
      answer: answerWith(200, WHOLE("Hi"), [
        ["anthropic-ratelimit-unified-5h-utilization", share],
        ["anthropic-ratelimit-unified-5h-reset", String(resets)],
      ]),
    });

  test("each line has how full they were, and the session by how much they rose", async () => {
    const shares = [];
    for (const share of ["0.70", "0.72", "0.84", "0.01"]) {
      answer(share);
      const { lines, record } = await ask(fields);
      shares.push(lines[0]!["windows"]);
      expect(record.planUsd).toBe("0.0005");
      expect(findFault(lines[0]!)).toBeNull();
    }
    expect(shares).toEqual([{ "5h": 70 }, { "5h": 72 }, { "5h": 84 }, { "5h": 1 }]);
    const { gateway } = world.gateway.running;
    const status = buildStatus(session, null, gateway);
    // 2 and 12 until it began anew, and 1 since.
    expect(status.session?.windows).toEqual({ "5h": 15 });
    expect(status.allowance?.map(writeAllowance)).toEqual(["5h 1%"]);
    using index = openIndex(gateway.catalog.ledger.path, () => {});
    const [row] = sumSessions(index, { since: null, until: null, only: { session } }).rows;
    expect(findRise(index, row!)).toEqual({ windows: { "5h": 15 }, shared: false });
    expect(gateway.metrics("all")).toContain(
      'gateway_plan_window_used_percent{channel="messages",window="5h"} 1',
    );
    expect(gateway.metrics("all")).toContain("gateway_plan_usd_total{");
    expect(gateway.metrics("public")).not.toContain("gateway_plan_window");
  });

  test("their owner is warned once for each percentage of a window", async () => {
    answer("0.97");
    await ask(fields);
    answer("0.98");
    await ask(fields);
    const ofWindows: string[] = [];
    for (let count = 1; ofWindows.length < 2; count += 1) {
      const warning = (await world.gateway.warned(count))[count - 1]!;
      if ("used" in warning) ofWindows.push(describeWarning(warning));
    }
    expect(ofWindows).toEqual([
      expect.stringContaining(
        'The channel "messages" has used 84 % of its plan\'s window of 5h. It resets at ',
      ),
      expect.stringContaining(
        'The channel "messages" has used 97 % of its plan\'s window of 5h. It resets at ',
      ),
    ]);
  });

  test("a window that is used up refuses nothing by itself", async () => {
    answer("1.00");
    await ask(fields);
    expect((await ask(fields)).answer.status).toBe(200);
  });

  test("another session at the same time makes the estimate say so", async () => {
    const other = { ...fields, "x-claude-code-session-id": "5b1c2d3e-0000-4000-8000-00000000000b" };
    for (const [who, share] of [
      [fields, "0.10"],
      [other, "0.15"],
      [fields, "0.20"],
    ] as const) {
      answer(share);
      await ask(who);
    }
    using index = openIndex(world.gateway.running.gateway.catalog.ledger.path, () => {});
    const [row] = sumSessions(index, { since: null, until: null, only: { session } }).rows;
    const rise = findRise(index, row!)!;
    expect(rise.shared).toBe(true);
    expect(describeRise(rise)).toContain("other sessions ran at the same time");
  });
});

const words = [LOGIN, HIDDEN, HIDDEN.slice(4, 30), Buffer.from(LOGIN).toString("base64")];
test("an upstream that repeats the login in every place leaves nothing of it", async () => {
  const shown: string[] = [];
  for (const word of words)
    for (const status of [200, 401, 429, 500]) {
      const body =
        status === 200
          ? WHOLE(word, word).replace('"usage":{', `"usage":{"service_tier":"${word}","${word}":1,`)
          : `{"type":"error","error":{"type":"${word}","message":"${word}"}}`;
      const fields = ["request-id", "x-echo", "anthropic-ratelimit-unified-status"].map(
        (name) => [name, word] as const,
      );
      world.upstream.next({ answer: answerWith(status, body, fields) });
      const { record, lines, answer } = await ask(CLAUDE);
      shown.push(JSON.stringify([record, lines, status === 200 ? "" : answer.text]));
    }
  expectSafe(shown.join("\n"), HIDDEN);
  expect(shown.join("\n")).toContain("[credential removed]");
});
