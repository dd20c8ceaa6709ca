// Tests that only the signed-in page gets in: not other web pages, other users of this machine, or stolen links.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { appendFileSync, readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { bundlePage } from "../../src/web/bundle.ts";
import { type DemoUpstream, startDemoUpstream } from "../harness/upstreams/demo-upstream.ts";
import { TOKEN_HEADER } from "../../src/web/api.ts";
import { CREDENTIAL, type InsideGateway, keyOf, makeConfig, startGatewayHere } from "../harness/gateway.ts";
import { rawRequest } from "../harness/raw.ts";
import { knownFields, ownFields, signIn, trySignIn, visit, type Visitor } from "./visitor.ts";

let upstream: DemoUpstream;
let gateway: InsideGateway;
let visitor: Visitor;
let now = Date.now();

beforeAll(async () => {
  upstream = startDemoUpstream({ credential: CREDENTIAL });
  const config = makeConfig(upstream);
  config.groups["vip"] = { platform: "messages", channels: ["messages"], exclusive: true };
  gateway = startGatewayHere({ config, console: true, now: () => now });
  visitor = await signIn(gateway);
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

const DATA = [
  "reports/overview?period=today&by=model",
  "reports/keys",
  "live",
  "reports/request?id=req_1",
  "reports/sessions?period=today",
  "reports/requests?period=today",
  "reports/names?period=today",
  "reports/cache?period=today",
  "reports/session?id=x",
  "reports/state",
].map((name) => `/console/api/${name}`);
const CHANGES: readonly (readonly [string, object])[] = [
  ["/console/api/actions/add-key", { name: "evil", group: "messages", expires: "never", limits: {} }],
  ["/console/api/actions/change-key", { name: "messages", action: "rotate" }],
  ["/console/api/actions/change-channel", { name: "messages", action: "disable" }],
  ["/console/api/actions/open-page", {}],
  ["/console/api/sign-out", {}],
];

/** Returns the status and text of every request for data and for changes, with these fields. */
async function tryAll(fields: Readonly<Record<string, string>>): Promise<(readonly [number, string])[]> {
  const answers = [];
  for (const target of DATA) answers.push(await visit(gateway, target, { fields }));
  for (const [target, body] of CHANGES) answers.push(await visit(gateway, target, { body, fields }));
  return answers.map(({ status, text }) => [status, text] as const);
}

function expectNothing(answers: readonly (readonly [number, string])[], status: number): void {
  expect(answers.map(([each]) => each)).toEqual(answers.map(() => status));
  for (const [, text] of answers) {
    expect(Object.keys(JSON.parse(text))).toEqual(["error"]);
    expect(text).not.toContain("messages");
  }
}

const OWN = () => knownFields(gateway, visitor);

describe("P181: without a sign-in, the console gives no data and makes no change", () => {
  test("without a sign-in there is neither data nor a change", async () => {
    expectNothing(await tryAll(ownFields(gateway)), 401);
  });

  test("the page's own files have no data", async () => {
    const page = await visit(gateway, "/console/keys");
    expect(page.status).toBe(200);
    expect(page.text).not.toContain("relay");
    expect(page.field("set-cookie")).toBeUndefined();
  });

  test("a cookie alone is no sign-in, because every server on this machine gets it", async () => {
    expectNothing(await tryAll({ ...ownFields(gateway), cookie: visitor.cookie }), 401);
  });

  test("the token of a sign-in does not sign in without its cookie", async () => {
    expectNothing(await tryAll({ ...ownFields(gateway), [TOKEN_HEADER]: visitor.token }), 401);
  });

  test("a cookie with the token of another sign-in does not sign in", async () => {
    const other = await signIn(gateway);
    expectNothing(await tryAll({ ...OWN(), [TOKEN_HEADER]: other.token }), 401);
  });
});

test("P37: a group without an active plan is not offered, and no key is made in it or moved to it", async () => {
  const listed = await visit(gateway, "/console/api/reports/keys", { fields: OWN() });
  expect(JSON.parse(listed.text).groups.map(({ name }: { name: string }) => name)).not.toContain("vip");
  for (const [action, key] of [
    ["add-key", { name: "new", expires: "never", limits: {} }],
    ["change-key", { name: "messages", action: "move" }],
  ] as const) {
    const body = { ...key, group: "vip" };
    const answer = await visit(gateway, `/console/api/actions/${action}`, { body, fields: OWN() });
    expect([answer.status, answer.text]).toEqual([409, expect.stringContaining("is not active")]);
  }
});

describe("another web page cannot use the console", () => {
  test("another web page with a forged origin gets nothing, even with cookie and token", async () => {
    expectNothing(await tryAll({ ...OWN(), origin: "https://evil.example" }), 403);
  });

  test("a web page on another port of this machine gets nothing", async () => {
    expectNothing(
      await tryAll({ ...OWN(), origin: "http://127.0.0.1:1", "sec-fetch-site": "same-site" }),
      403,
    );
    expectNothing(await tryAll({ ...OWN(), "sec-fetch-site": "same-site" }), 403);
  });

  test("another web page that reaches the gateway by DNS rebinding gets nothing", async () => {
    const host = `evil.example:${gateway.port}`;
    const fields = { ...OWN(), host, origin: `http://${host}` };
    for (const target of [...DATA, "/console", "/console/assets/icon.svg"]) {
      const answer = await visit(gateway, target, { fields });
      expect([target, answer.status]).toEqual([target, 403]);
    }
  });

  test("another web page cannot send a form", async () => {
    const body = JSON.stringify({ name: "messages", action: "disable" });
    for (const type of [
      "text/plain",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
    ]) {
      const fields = { ...OWN(), "content-type": type };
      const answer = await rawRequest(gateway.port, {
        method: "POST",
        target: "/console/api/actions/change-channel",
        fields,
        body,
      });
      expect(answer.status).toBe(400);
      const crossSite = { ...fields, origin: "https://evil.example", "sec-fetch-site": "cross-site" };
      const foreign = await rawRequest(gateway.port, {
        method: "POST",
        target: "/console/api/actions/change-channel",
        fields: crossSite,
        body,
      });
      expect(foreign.status).toBe(403);
    }
    const { channels, catalog } = gateway.running.gateway;
    expect(channels.view(catalog, now).find(({ name }) => name === "messages")?.state).not.toBe("disabled");
  });

  test("another web page gets no permission for the header that a change needs", async () => {
    const answer = await visit(gateway, "/console/api/actions/change-channel", {
      method: "OPTIONS",
      fields: {
        origin: "https://evil.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": TOKEN_HEADER,
      },
    });
    expect(answer.status).toBe(403);
    expect(answer.field("access-control-allow-origin")).toBeUndefined();
  });

  test("another web page cannot send a change that hides where it comes from", async () => {
    const { origin: _, ...fields } = OWN();
    const answer = await visit(gateway, "/console/api/actions/change-channel", {
      body: { name: "messages", action: "disable" },
      fields,
    });
    expect(answer.status).toBe(403);
  });

  test("P184: no site can show the console in a frame; the console's policy names no host", async () => {
    const answer = await visit(gateway, "/console", {
      fields: { "sec-fetch-dest": "iframe", "sec-fetch-site": "cross-site" },
    });
    expect(answer.status).toBe(403);
    for (const target of ["/console", "/console/api/reports/keys"]) {
      const shown = await visit(gateway, target, { fields: OWN() });
      expect(shown.field("x-frame-options")).toBe("DENY");
      const policy = shown.field("content-security-policy");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toMatch(/http|\*/);
    }
  });
});

describe("P182: a sign-in link works once, and for a minute only", () => {
  test("a sign-in link works once; a second use also ends the session that the first use began", async () => {
    const link = gateway.running.console?.createLink() ?? "";
    const thief = await trySignIn(gateway, link);
    const token = JSON.parse(thief.text).token;
    const [cookie = ""] = (thief.field("set-cookie") ?? "").split(";");
    const stolen = knownFields(gateway, { cookie, token });
    expect((await visit(gateway, "/console/api/reports/keys", { fields: stolen })).status).toBe(200);
    const owner = await trySignIn(gateway, link);
    expect([owner.status, JSON.parse(owner.text).error]).toEqual([
      403,
      expect.stringContaining("used this link first"),
    ]);
    expect((await visit(gateway, "/console/api/reports/keys", { fields: stolen })).status).toBe(401);
  });

  test("a sign-in link works for sixty seconds", async () => {
    const early = gateway.running.console?.createLink() ?? "";
    now += 59_999;
    expect((await trySignIn(gateway, early)).status).toBe(200);
    const late = gateway.running.console?.createLink() ?? "";
    now += 60_000;
    const answer = await trySignIn(gateway, late);
    expect([answer.status, JSON.parse(answer.text).error]).toEqual([
      403,
      expect.stringContaining("a minute"),
    ]);
  });

  test("a sign-in link cannot be guessed, and has its secret where no server and no log sees it", async () => {
    const link = gateway.running.console?.createLink() ?? "";
    expect(link).toMatch(new RegExp(`^http://127\\.0\\.0\\.1:${gateway.port}/console#code=[\\w-]{22}$`));
    const answer = await trySignIn(gateway, `${link.slice(0, -1)}${link.endsWith("A") ? "B" : "A"}`);
    expect(answer.status).toBe(403);
  });

  test("a sign-in link gives a cookie that no script reads and no other site sends", async () => {
    const answer = await trySignIn(gateway, gateway.running.console?.createLink() ?? "");
    expect(answer.field("set-cookie")).toMatch(
      /^gateway_console_\d+=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=2592000$/,
    );
  });

  test("a sign-in link does not work from another origin", async () => {
    const code = (gateway.running.console?.createLink() ?? "").split("=")[1];
    const fields = { ...ownFields(gateway), origin: "https://evil.example" };
    expect((await visit(gateway, "/console/api/sign-in", { body: { code }, fields })).status).toBe(403);
  });
});

test("a sign-out ends the session", async () => {
  const own = await signIn(gateway);
  const fields = knownFields(gateway, own);
  expect((await visit(gateway, "/console/api/reports/keys", { fields })).status).toBe(200);
  expect((await visit(gateway, "/console/api/sign-out", { body: {}, fields })).status).toBe(200);
  expect((await visit(gateway, "/console/api/reports/keys", { fields })).status).toBe(401);
});

test("a session goes on even if a page on another port sets a cookie of the same name", async () => {
  const own = await signIn(gateway);
  const name = own.cookie.split("=")[0] ?? "";
  const fields = { ...knownFields(gateway, own), cookie: `${name}=foreign; ${own.cookie}` };
  const ask = () => visit(gateway, "/console/api/reports/keys", { fields });
  expect((await ask()).status).toBe(200);
  expect((await visit(gateway, "/console/api/sign-out", { body: {}, fields })).status).toBe(200);
  expect((await ask()).status).toBe(401);
});

test("a request that the page would never send is refused, and is not a fault of the gateway", async () => {
  const send = (body: unknown) => visit(gateway, "/console/api/actions/add-key", { body, fields: OWN() });
  const long = await send({ name: "x".repeat(70_000), group: "messages", expires: "never", limits: {} });
  expect(long.status).toBe(413);
  const limits: unknown = JSON.parse('{"__proto__":"1"}');
  const odd = await send({ name: "odd", group: "messages", expires: "never", limits });
  expect([odd.status, JSON.parse(odd.text).error]).toEqual([
    400,
    expect.stringContaining('no limit "__proto__"'),
  ]);
  expect(gateway.notices.join()).not.toContain("report this");
});

describe("a live feed of the console ends with its session", () => {
  const openFeed = (own: Visitor): Promise<Response> =>
    fetch(`http://127.0.0.1:${gateway.port}/console/api/live`, { headers: knownFields(gateway, own) });

  test("a live feed ends with its session", async () => {
    const own = await signIn(gateway);
    const [feed, other] = [await openFeed(own), await openFeed(visitor)];
    await visit(gateway, "/console/api/sign-out", { body: {}, fields: knownFields(gateway, own) });
    expect(await feed.text()).toContain("data: ");
    expect(other.status).toBe(200);
    await other.body?.cancel();
  });

  test("a live feed ends when the sign-in link of its session is used again", async () => {
    const link = gateway.running.console?.createLink() ?? "";
    const thief = await trySignIn(gateway, link);
    const [cookie = ""] = (thief.field("set-cookie") ?? "").split(";");
    const feed = await openFeed({ cookie, token: JSON.parse(thief.text).token });
    await trySignIn(gateway, link);
    expect(await feed.text()).toContain("data: ");
  });
});

test("data is never cached, and script comes from the page's own files only", async () => {
  for (const target of [
    "/console",
    "/console/api/reports/keys",
    "/console/api/reports/overview?period=today&by=model",
  ]) {
    const answer = await visit(gateway, target, { fields: OWN() });
    expect([target, answer.field("cache-control")]).toEqual([target, "no-store"]);
    const policy = answer.field("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self'");
    expect(policy).not.toContain("unsafe");
    expect(answer.field("x-content-type-options")).toBe("nosniff");
    expect(answer.field("referrer-policy")).toBe("no-referrer");
  }
  const { text } = await visit(gateway, "/console");
  expect(text).not.toMatch(/<script(?![^>]* src=)|<style|\son\w+=|style=/);
});

test("P18, P31: a new key's secret is in one answer only, and the config keeps its comments", async () => {
  const secrets = [...Object.values({ a: keyOf("messages"), b: keyOf("relay") }), CREDENTIAL, visitor.token];
  for (const target of DATA.filter((each) => !each.endsWith("live"))) {
    const { text } = await visit(gateway, target, { fields: OWN() });
    for (const secret of secrets) expect(text).not.toContain(secret);
  }
  const body = { name: "fresh", group: "messages", expires: "never", limits: {} };
  const config = gateway.folder.join("gateway.yaml");
  appendFileSync(config, "\n# the end\n");
  const made = JSON.parse(
    (await visit(gateway, "/console/api/actions/add-key", { body, fields: OWN() })).text,
  );
  expect(made.secret.text).toMatch(/^sk-\w{43}$/);
  const { text } = await visit(gateway, "/console/api/reports/keys", { fields: OWN() });
  expect(text).toContain("fresh");
  expect(readFileSync(config, "utf8")).toMatch(/fresh[^]*\n# the end\n$/);
  expect(text).not.toContain(made.secret.text);
});

test("P83, P181: without a key or a sign-in, no path shows a key's name or an amount", async () => {
  const config = makeConfig(upstream);
  const secret = "sk-test-zebra";
  const other = startGatewayHere({
    config: { ...config, keys: [{ name: "zebra", group: "messages", secret }] },
    console: true,
  });
  const body = { model: "claude-haiku-4-5", max_tokens: 5, messages: [{ role: "user", content: "Hello" }] };
  const fields = { "x-api-key": secret };
  expect((await rawRequest(other.port, { target: "/v1/messages", fields, body })).status).toBe(200);
  const charge = (await other.recorded(1))[0]?.chargeUsd ?? "";
  expect(charge).toMatch(/^0\.0*[1-9]/);
  const pages = "/ /api/hello /healthz /metrics /console /console/keys/zebra /favicon.ico".split(" ");
  const models = "/v1/models /v1beta/models /relay/models /relay/v1/models /v1/responses/x /no".split(" ");
  for (const target of [...pages, ...models, ...DATA]) {
    for (const sent of [{}, { "x-api-key": "sk-unknown" }]) {
      const answer = await visit(other, target, { fields: sent });
      const text = [answer.text, ...answer.fields.flat()].join(" ");
      expect([target, /zebra|[$]\d|usd/i.test(text), text.includes(charge)]).toEqual([target, false, false]);
    }
  }
  const known = await visit(other, "/metrics", { fields: { authorization: `Bearer ${secret}` } });
  expect([known.text.includes("zebra"), known.text.includes(charge)]).toEqual([true, true]);
  await other.stop();
});

describe("P83: requests for metrics with an unknown key are refused", () => {
  const ask = (fields: Readonly<Record<string, string>>) => visit(gateway, "/metrics", { fields });

  beforeAll(async () => {
    const body = { model: "claude-haiku-4-5", max_tokens: 5, messages: [{ role: "user", content: "Hello" }] };
    const fields = { "x-api-key": keyOf("messages") };
    expect((await rawRequest(gateway.port, { target: "/v1/messages", fields, body })).status).toBe(200);
  });

  test("a request for metrics with an unknown key is refused", async () => {
    expect((await ask({ authorization: "Bearer sk-unknown" })).status).toBe(401);
    expect((await ask({ ...OWN(), "x-gateway-key": "sk-unknown" })).status).toBe(401);
  });
});

describe("P183: the console's page is served to browsers at the right addresses only", () => {
  test("a browser that opens / gets the page, and any other client reads the program's name", async () => {
    const browser = await visit(gateway, "/", { fields: { accept: "text/html,*/*;q=0.8" } });
    expect([browser.status, browser.field("location")]).toEqual([302, "/console"]);
    const client = await visit(gateway, "/", { fields: { accept: "*/*" } });
    expect(JSON.parse(client.text).name).toBe("gateway");
  });

  const start = (config: object) =>
    startGatewayHere({ config: { ...makeConfig(upstream), ...config }, console: true });

  test.each([
    ["is not served on other addresses", { listen: { port: 0, host: "0.0.0.0" } }, 404],
    [
      "is served on other addresses if the config says always",
      { listen: { port: 0, host: "0.0.0.0" }, console: "always" },
      200,
    ],
    ["is not served with console: never", { console: "never" }, 404],
  ])("the console's page %s", async (_, config, status) => {
    const other = start(config);
    for (const target of ["/console", "/console/"]) expect((await visit(other, target)).status).toBe(status);
    const root = await visit(other, "/", { fields: { accept: "text/html" } });
    expect(root.status).toBe(status === 200 ? 302 : 200);
    const link = () => other.running.console?.createLink();
    if (status === 200) expect(link()).toContain(`http://localhost:${other.port}/console#code=`);
    else expect(link).toThrow("served on loopback only");
    await other.stop();
  });

  test("a request with a host name that the config does not allow is refused", async () => {
    const other = start({
      listen: { port: 0, host: "0.0.0.0" },
      console: "always",
      allowed_hosts: ["gateway.lan"],
    });
    const ask = (host: string) => visit(other, "/console", { fields: { host: `${host}:${other.port}` } });
    expect((await ask("evil.example")).status).toBe(403);
    for (const host of ["192.168.1.5", "gateway.lan", "localhost"])
      expect((await ask(host)).status).toBe(200);
    await other.stop();
  });
});

test("P184: the page's script and style name no address of another host", () => {
  const { script, style } = bundlePage();
  const text = [script, style]
    .map(({ gzip }) => gunzipSync(Buffer.from(gzip, "base64")).toString())
    .join("\n");
  const addresses = text.match(/(?:https?:)?\/\/[\w.-]+\.\w+/g) ?? [];
  // An address at w3.org is the name of an XML namespace, and nobody requests it.
  expect(addresses.filter((address) => !address.endsWith("//www.w3.org"))).toEqual([]);
  expect(text).not.toMatch(/\beval\(|new Function\(/);
});
