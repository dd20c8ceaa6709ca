// Which channels may pass on the client's own login.

import { expect, test } from "bun:test";
import { checkConfigText } from "../../src/config/file/load.ts";
import { refuseOpenLogins } from "../../src/gateway/intake/login.ts";
import { getErrorMessage } from "../../src/lib/errors.ts";

const ANTHROPIC = "https://api.anthropic.com";
const CHATGPT = "https://chatgpt.com/backend-api/codex";

/** A channel `a` with these settings, in YAML, and a group of these channels. */
function check(channel: string, group = "[a]", listen = "127.0.0.1", multiplier = "") {
  const text = `
listen: { host: "${listen}" }
channels:
  a: { credential: client, ${channel} }
  b: { platform: messages, base_url: "${ANTHROPIC}", credential: xxxx }
groups: { g: { platform: messages, channels: ${group}${multiplier} } }
`;
  return checkConfigText(text, "/gateway.yaml", {}).catalog;
}

function explain(...settings: Parameters<typeof check>): string {
  try {
    check(...settings);
    return "";
  } catch (error) {
    return getErrorMessage(error);
  }
}

const messages = (url: string, more = ""): string => `platform: messages, base_url: "${url}"${more}`;

test.each([
  messages(ANTHROPIC),
  messages(`${ANTHROPIC}/v1/`),
  messages("http://127.0.0.1:9"),
  messages("http://localhost:9/base"),
  messages("https://[::1]:9"),
  messages(ANTHROPIC, ", proxy: http://proxy.example:3128, headers: { x-team: research }"),
])("a login may go to its vendor and to this machine: %s", (channel) => expect(explain(channel)).toBe(""));

test("Codex's login may go to ChatGPT", () => {
  expect(explain(`platform: responses, base_url: "${CHATGPT}"`, "[b]")).toBe("");
});

test.each([
  ["another host", messages("https://anthropic.example"), `belongs to ${ANTHROPIC} only`],
  ["a name that begins like it", messages("https://api.anthropic.com.example"), "belongs to"],
  ["a name with a dot at its end", messages("https://api.anthropic.com."), "belongs to"],
  ["another port", messages(`${ANTHROPIC}:8443`), "belongs to"],
  ["plain http", messages("http://api.anthropic.com"), "belongs to"],
  ["another path", messages(`${ANTHROPIC}/other`), "belongs to"],
  ["the other vendor", messages(CHATGPT), "belongs to"],
  ["a name that some server may answer for", messages("http://app.localhost:9"), "belongs to"],
  ["a neighbour's address", messages("http://192.168.0.7:9"), "belongs to"],
  ["a platform without a login", `platform: relay, base_url: "${ANTHROPIC}"`, "is for the platforms"],
  ["a header in its place", messages(ANTHROPIC, ", headers: { Authorization: x }"), "would replace"],
  ["a key's header", messages(ANTHROPIC, ", headers: { x-api-key: x }"), "would replace"],
  ["another account", messages(ANTHROPIC, ", headers: { chatgpt-account-id: x }"), "would replace"],
  [
    "a proxy that reads it",
    messages("http://127.0.0.1:9", ", proxy: http://proxy.example:3128"),
    "would read the client's own login",
  ],
  ["a probe", messages(ANTHROPIC, ", probe: 60s"), "cannot be probed"],
])("a login is refused with %s", (_, channel, words) => expect(explain(channel, "[b]")).toContain(words));

test("a group with a login has one channel, because there is no failover to another account", () => {
  expect(explain(messages(ANTHROPIC), "[a, b]")).toContain("the group can have no other");
});

test.each(["0.0.0.0", "::", "192.168.0.7", "gateway.example"])(
  "with a login, the gateway does not listen on %s, by the file or by --host",
  (host) => {
    expect(explain(messages(ANTHROPIC), "[a]", host)).toContain("may listen on loopback only");
    const catalog = check(messages(ANTHROPIC));
    const overridden = { ...catalog, listen: { host, port: 1 } };
    expect(() => refuseOpenLogins(overridden)).toThrow("may listen on loopback only");
    expect(() => refuseOpenLogins(catalog)).not.toThrow();
  },
);

test("a group with a login charges nothing, unless the file gives it a multiplier", () => {
  const multiplierOf = (...settings: Parameters<typeof check>) =>
    check(...settings).groups.get("g")?.multiplier;
  expect(multiplierOf(messages(ANTHROPIC))).toBe("0");
  expect(multiplierOf(messages(ANTHROPIC), "[b]")).toBe("1");
  expect(multiplierOf(messages(ANTHROPIC), "[a]", "127.0.0.1", ", multiplier: 0.5")).toBe("0.5");
});

test("a channel with a login has no credential of its own, and offers no WebSocket", () => {
  const { credential, usesLogin, websocket } = check(messages(ANTHROPIC)).channels.get("a")!;
  expect({ credential, usesLogin, websocket }).toEqual({ credential: "", usesLogin: true, websocket: false });
});
