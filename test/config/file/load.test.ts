import { describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { checkConfigText, loadConfig } from "../../../src/config/file/load.ts";
import { ConfigError } from "../../../src/config/yaml/problems.ts";
import { sha256Hex } from "../../../src/lib/secret.ts";
import { quoteWord } from "../../../src/lib/text/shell-word.ts";
import { makeTempFolder } from "../../harness/temp.ts";

const check = (text: string, env: Record<string, string> = {}) => checkConfigText(text, "/etc/g.yaml", env);

/** Returns the error about a bad file, without the file's name. */
function complaints(text: string, env: Record<string, string> = {}): string[] {
  try {
    check(text, env);
  } catch (error) {
    if (error instanceof ConfigError)
      return error.message.split("\n").map((line) => line.replace("/etc/g.yaml:", ""));
    throw error;
  }
  return [];
}

const CHANNELS = "channels:\n  a: { platform: messages, base_url: https://a.example, credential: x }\n";
const GROUPS = "groups:\n  g: { platform: messages, channels: [a] }\n";

test("one mistake that affects a thousand keys hides no other mistake", () => {
  const keys = Array.from(
    { length: 1000 },
    (_, index) => `  - { name: k${index}, group: g, secret: s${index} }\n`,
  );
  const plans = "plans: { p: { groups: [h] } }\n";
  const shown = complaints(`keys:\n${keys.join("")}${CHANNELS}${plans}`);
  expect(shown[0]).toBe('2:24: keys[0].group: there is no group "g"');
  expect(shown).toHaveLength(12);
  expect(shown.slice(-2)).toEqual([
    '1004:24: plans.p.groups[0]: there is no group "h"',
    "and 990 more like these",
  ]);
});

describe("P9, P10: a mistake is reported with its place and what was probably meant", () => {
  const cases: Array<readonly [string, string, string]> = [
    [
      "an unknown setting that is near nothing",
      "listen: { zzzzzz: 1 }",
      "1:11: listen.zzzzzz: unknown setting; known here: host, port",
    ],
    ["a map where a list belongs", "keys: { a: b }", "1:7: keys: expected a list, found a map"],
    ["a port out of range", "listen: { port: 70000 }", "1:17: listen.port: must be from 0 to 65535"],
    ["a word for a number", "listen: { port: many }", "1:17: listen.port: expected a whole number"],
    [
      "a setting that is missing",
      "channels:\n  a: { platform: relay, base_url: https://x }",
      "2:6: channels.a.credential: is missing: write `credential: ${NAME}`, and NAME=… into gateway.env. Only a server on this machine needs none",
    ],
    [
      "a channel that is free and charges what its seller names",
      "channels:\n  a: { platform: messages, base_url: https://a.example, credential: x, free: true, bill: reported }\n",
      "2:90: channels.a.bill: `reported` charges what the seller names, and `free: true` charges nothing: choose one",
    ],
    [
      "an invalid name",
      "plans: { 'a b': { groups: [g] } }\ngroups: {}",
      "1:10: plans.…: a name is 1 to 64 ASCII letters, digits, dots, dashes or underscores, and begins with a letter or a digit",
    ],
    [
      "a channel of another platform",
      `${CHANNELS}groups: { g: { platform: relay, channels: [a] } }`,
      '3:44: groups.g.channels[0]: the channel "a" is of another platform than its group',
    ],
    [
      "a multiplier with an exponent",
      `${CHANNELS}groups: { g: { platform: messages, channels: [a], multiplier: 1e-3 } }`,
      '3:63: groups.g.multiplier: expected a plain decimal number without sign or exponent, such as 0.8 or "1.25"',
    ],
    [
      "a price that is not a number",
      "prices: { m: { input: .nan } }",
      '1:23: prices.m.input: expected a plain decimal number without sign or exponent, such as 0.8 or "1.25"',
    ],
    [
      "a kind of price that does not exist",
      "prices: { m: { ouptut: 1 } }",
      '1:16: prices.m.ouptut: unknown setting (did you mean "output"?)',
    ],
    [
      "a duration without a unit",
      "on_disconnect: { drain: 5 }",
      '1:25: on_disconnect.drain: expected a duration with its unit, such as "300s", "5m" or "500ms"',
    ],
    [
      "a duration that no timer can wait",
      "failover: { total: 30d }",
      "1:20: failover.total: must be shorter than 24 days",
    ],
    [
      "no time at all to answer in",
      "failover: { total: 0s }",
      "1:20: failover.total: must be more than nothing",
    ],
    [
      "probes without a pause",
      "channels: { a: { platform: relay, base_url: http://a, credential: x, probe: 0s } }",
      "1:77: channels.a.probe: must be 1s or more: leave it out for no probes",
    ],
    [
      "a day that does not exist",
      "plans: { p: { groups: [g], until: 2027-02-30 } }\ngroups: {}",
      '1:35: plans.p.until: expected a date, such as 2027-01-31 or "2027-01-31T12:00:00Z"',
    ],
    [
      "a vendor that no header can bear",
      "vendor: a b",
      "1:9: vendor: becomes part of a header's name: letters, digits and dashes only",
    ],
    [
      "a base URL with a secret in it",
      "channels: { a: { platform: relay, credential: x, base_url: 'https://u:p@h' } }",
      "1:60: channels.a.base_url: must not hold a user name or password: the secret belongs in `credential`",
    ],
    [
      "a header that frames the request",
      "channels: { a: { platform: relay, credential: x, base_url: https://h, headers: { Content-Length: 1 } } }",
      "1:82: channels.a.headers.Content-Length: is a header that the gateway writes itself",
    ],
    [
      "a secret that belongs to two keys, the second time as its hash in capitals",
      `keys:\n  - { name: k, group: g, secret: sk-1 }\n  - { name: l, group: g, secret_sha256: ${sha256Hex("sk-1").toUpperCase()} }`,
      "3:5: keys[1]: keys[0] has the same secret: a secret belongs to one key",
    ],
    [
      "a header with a line break",
      'channels: { a: { platform: relay, credential: x, base_url: https://h, headers: { x: "a\\r\\nb: c" } } }',
      "1:85: channels.a.headers.x: holds characters that a header cannot carry",
    ],
    [
      "a certificate file that is not there",
      "channels: { a: { platform: relay, credential: x, base_url: https://h, ca: nope.pem } }",
      "1:75: channels.a.ca: this file cannot be read",
    ],
    [
      "a variable that is not set",
      "vendor: ${NOPE}",
      "1:9: vendor: the environment variable NOPE is not set (set it, add it to gateway.env, or write ${NOPE:-default})",
    ],
    [
      "a variable with an invalid name",
      'vendor: "${a-b}"',
      "1:9: vendor: expected ${NAME} or ${NAME:-default}; a plain ${ is written $${",
    ],
    [
      "a brace that is not closed",
      "groups:\n  g: { platform: messages\n  h: { platform: relay }",
      "3:3: an earlier { or [ is not closed: its end is missing or not indented enough",
    ],
    [
      "a bracket that is not closed",
      "keys: [\n  { name: a }\n",
      "3:1: an earlier { or [ is not closed: its end is missing or not indented enough",
    ],
    [
      "a channel that a group names twice",
      `${CHANNELS}groups: { g: { platform: messages, channels: [a, a] } }`,
      "3:50: groups.g.channels[1]: this channel is named twice",
    ],
    ["indentation by tabs", "listen:\n\tport: 1", "2:1: YAML is indented with spaces, not with tabs"],
    [
      "a value that needs quotes",
      "vendor: a: b",
      '1:9: not valid YAML: a value that contains ": " needs quotes',
    ],
    ["two documents", "vendor: a\n---\nvendor: b", "2:1: only one YAML document is allowed in the file"],
  ];
  test.each(cases)("a mistake is reported with its place: %s", (_, text, complaint) => {
    expect(complaints(text)).toContain(complaint);
  });

  test.each("v1 V1 v1beta v2 v1alpha1 api healthz metrics messages responses chat models".split(" "))(
    "a relay prefix %s is refused, because it would shadow a path of the gateway",
    (prefix) => {
      expect(complaints(`relay_prefix: ${prefix}`)).toEqual([
        `1:15: relay_prefix: would shadow the gateway's own path /${prefix}`,
      ]);
    },
  );

  test.each(["a/b", "/relay", "'-'", "..", "a%2fb", "ä", "'a b'", "''"])(
    "a relay prefix %s is refused, because it is not one path segment",
    (prefix) => {
      expect(complaints(`relay_prefix: ${prefix}`)[0]).toStartWith("1:15: relay_prefix: one path segment");
    },
  );
});

/** Returns the error about a group's channels, or about a login. */
const complain = (config: object): string => complaints(JSON.stringify(config)).join("\n");
const OWN = { base_url: "http://127.0.0.1:1", credential: "some-credential" };

describe("P159, P160: the channels of a group must fit the group's platform", () => {
  const judge = (platforms: readonly string[], group: object): string => {
    const channels = Object.fromEntries(
      platforms.map((platform) => [`of-${platform}`, { ...OWN, platform }]),
    );
    return complain({ channels, groups: { g: { channels: Object.keys(channels), ...group } } });
  };
  const all = ["messages", "responses", "content", "relay"];
  test.each(all.flatMap((platform) => [...all, "chat"].map((channel) => [platform, channel] as const)))(
    "whether a group of %s may have a channel of %s depends on the two platforms and on `convert`",
    (platform, channel) => {
      const isOwn = platform === channel;
      const isRelay = platform === "relay" || channel === "relay";
      const isAllowed = isOwn || (platform === "responses" && channel === "chat");
      const told = isRelay ? /another platform[^`]*$/ : /`convert: true`/;
      expect(judge([channel], { platform })).toMatch(isAllowed ? /^$/ : told);
      const converted = judge([channel], { platform, convert: true });
      expect(converted).toMatch(isRelay ? /./ : /^$/);
    },
  );

  test("the channels of a group are all checked, the second like the first", () => {
    expect(judge(["messages", "chat"], { platform: "messages" })).toContain("groups.g.channels[1]");
    expect(judge(["chat", "relay"], { platform: "messages", convert: true })).toContain(
      "groups.g.channels[1]",
    );
  });
});

const VENDOR = "https://api.anthropic.com";
const LOGIN = { platform: "messages", credential: "client", base_url: VENDOR };

test.each([
  ["messages", VENDOR, true],
  ["messages", "http://127.0.0.1:9000", true],
  ["messages", "http://localhost:9000", true],
  ["messages", "http://[::1]:9000", true],
  ["messages", "https://api.anthropic.com.evil.example", false],
  ["messages", "https://api.anthropic.com/v2", false],
  ["messages", "http://192.168.1.2", false],
  ["messages", "http://api.anthropic.com", false],
  ["messages", "https://api.anthropic.com:8443", false],
  ["messages", "https://127.0.0.1.evil.example", false],
  ["responses", "https://chatgpt.com/backend-api/codex", true],
  ["responses", "https://chatgpt.com/other", false],
  ["responses", "https://chatgpt.com.evil.example/backend-api/codex", false],
  ["content", "http://127.0.0.1:9000", false],
])(
  "P148: a login channel is refused unless it is at its vendor's address or on loopback: a %s channel at %s",
  (platform, base_url, right) => {
    const channels = { main: { ...LOGIN, platform, base_url } };
    expect(complain({ channels, groups: { g: { platform, channels: ["main"] } } }) === "").toBe(right);
  },
);

test("all wrong settings are reported at once, in order of their lines, and then all wrong names", () => {
  const settings = complaints(
    "keys:\n  - { name: k, group: nope, secret: s, secret_sha256: zz }\nlisten: { port: x }\n" +
      `vendor: \${NOPE}\n${CHANNELS}groups:\n  g: { platform: relay, channels: [a], colour: red }\n`,
  );
  const places = (lines: readonly string[]) => lines.map((line) => line.split(": ")[1]);
  expect(places(settings)).toEqual([
    "keys[0]",
    "keys[0].secret_sha256",
    "listen.port",
    "vendor",
    "groups.g.colour",
  ]);
  const names = complaints(
    "keys:\n  - { name: k, group: nope, secret: s }\n  - { name: k, group: g, secret: s }\n" +
      `${CHANNELS}groups:\n  g: { platform: relay, channels: [a] }\n`,
  );
  expect(places(names)).toEqual(["keys[0].group", "keys[1]", "keys[1].name", "groups.g.channels[0]"]);
});

describe("no message repeats a secret", () => {
  const SECRET = "hush-Tr0ub4dor";
  const places = [
    `channels: { a: { platform: ${SECRET}, base_url: ${SECRET}, credential: "a ${SECRET}" } }`,
    `keys: [{ name: "${SECRET} ", group: "${SECRET} ", secret: "b ${SECRET}" }]`,
    `keys:\n  - secret: "${SECRET}\n  - x`,
    `keys: [ ${SECRET}: ]]`,
    `vendor: "\\q${SECRET}"`,
    `listen: { port: ${SECRET}, host: "${SECRET}:1" }`,
    `prices: { m: { input: ${SECRET} } }`,
  ];
  test.each(places)("no message repeats a secret: place %#", (text) => {
    const shown = complaints(text);
    expect(shown).not.toEqual([]);
    expect(shown.join("\n")).not.toContain(SECRET);
  });

  test("no message repeats a value from the environment, in whichever setting it is", () => {
    const text = "keys: [{ name: ${S}, group: ${S}, secret: ${S} }, { name: b, group: ${S}, secret: ${S} }]";
    const shown = [...complaints(text, { S: SECRET }), ...complaints("vendor: ${S} x", { S: SECRET })];
    expect(shown).toContain("1:29: keys[0].group: there is no group of that name");
    expect(shown.join("\n")).not.toContain(SECRET);
  });

  test("no message repeats a secret used as a setting's name", () => {
    expect(complaints("keys:\n  - sk-abcdefghijkl: codex").join("\n")).not.toContain("abcdefghijkl");
  });
});

describe("P6: environment variables are expanded in the config's values", () => {
  const expand = (text: string, env: Record<string, string> = {}) =>
    check(
      `groups: { g: { platform: messages, channels: [a], description: ${text} } }\n${CHANNELS}`,
      env,
    ).catalog.groups.get("g")?.description;

  test("variables may be anywhere in a value, also several in one", () =>
    expect(expand('"a ${X} b ${Y}"', { X: "1", Y: "2" })).toBe("a 1 b 2"));
  test("variables need no quotes inside a map in braces", () => expect(expand("${X}", { X: "1" })).toBe("1"));
  test("variables may have a default, used if they are unset or empty", () => {
    expect(expand('"${X:-a b}"')).toBe("a b");
    expect(expand('"${X:-a b}"', { X: "" })).toBe("a b");
    expect(expand('"${X:-}"')).toBe("");
    expect(expand('"${X:-no}"', { X: "yes" })).toBe("yes");
  });
  test("variables are not expanded inside their own values", () =>
    expect(expand("${X}", { X: "${Y}" })).toBe("${Y}"));
  test("variables are not expanded after $$", () => expect(expand('"$${X} $X $5"')).toBe("${X} $X $5"));
  test("variables may give a number, a flag or a date", () => {
    const text = `listen: { port: "\${P}" }\nplans: { p: { groups: [g], active: \${A}, until: \${U} } }\n${CHANNELS}${GROUPS}`;
    const { catalog } = check(text, { P: "80", A: "true", U: "2027-01-31" });
    expect(catalog.listen.port).toBe(80);
    expect(catalog.plans.get("p")).toMatchObject({ active: true, until: new Date("2027-01-31") });
  });
  test("variables that are unset stay as text for commands that send nothing upstream", () => {
    const text =
      "channels: { a: { platform: relay, base_url: https://a.example, credential: ${NOPE} } }\ngroups: { g: { platform: relay, channels: [a] } }";
    expect(() => check(text)).toThrow("NOPE is not set");
    const { catalog } = checkConfigText(text, "/etc/g.yaml", {}, { missing: "keep" });
    expect(catalog.channels.get("a")?.credential).toBe("${NOPE}");
  });
  test("variables that are unset do not stop a gateway if no group has the channel that needs them", () => {
    const idle = "  b: { platform: relay, base_url: https://b.example, credential: ${NOPE} }\n";
    const { catalog, warnings } = check(`${CHANNELS}${idle}${GROUPS}`);
    expect(catalog.channels.get("b")).toMatchObject({ disabled: true, credential: "" });
    expect(catalog.channels.get("b")?.lack).toContain("NOPE is not set");
    expect(warnings).toEqual([expect.stringContaining("/etc/g.yaml:3:66: no group has this channel")]);
  });
  test.each([
    ["listen: { port: ${NOPE} }\n", "1:17: listen.port: "],
    ["ledger: { path: ${NOPE}/ledger.jsonl }\n", "1:17: ledger.path: "],
  ])("an unset variable in a setting that every command needs is an error: %j", (text, place) => {
    const load = () => checkConfigText(text, "/etc/g.yaml", {}, { missing: "keep" });
    expect(load).toThrow(`/etc/g.yaml:${place}the environment variable NOPE is not set`);
    expect(load).not.toThrow("\n");
  });
  test.each(["constructor", "toString", "__proto__"])(
    "variables named %s are not found in an empty environment",
    (name) => {
      expect(() => expand(`"\${${name}}"`)).toThrow(`the environment variable ${name} is not set`);
      expect(expand(`"\${${name}:-no}"`)).toBe("no");
    },
  );
});

describe("P22: decimals are exact, as they were written", () => {
  const multiplier = (text: string) =>
    check(
      `${CHANNELS}groups: { g: { platform: messages, channels: [a], multiplier: ${text} } }`,
    ).catalog.groups.get("g")?.multiplier;

  test.each([
    ["0.1", "0.1"],
    ["1.250", "1.25"],
    ["'1.250'", "1.25"],
    ["007", "7"],
    ["0.0", "0"],
    ["0.30000000000000004", "0.30000000000000004"],
    ["9007199254740993.1", "9007199254740993.1"],
    ["0.000000000000000000001", "0.000000000000000000001"],
  ])("a multiplier written %s is %s", (text, value) => expect(multiplier(text)).toBe(value));
});

describe("a config is read into a catalog of channels, groups and keys", () => {
  test("P23: a file without settings has the defaults of the contract", () => {
    const contract = readFileSync(resolve(import.meta.dir, "../../../docs/contract.md"), "utf8");
    const [, all = "", more = ""] =
      /P23\.[^`]*```yaml\n([^]*?)channels:\n([^]*?)groups:/.exec(contract) ?? [];
    const isDefault = /^ +(?:disabled|priority|weight|timeouts|websocket|free):/;
    const sections = all.replace(/^otlp.*\n/m, "").replace(/, command: \[.*?\]/, "");
    const channel = more.split("\n").filter((line) => isDefault.test(line));
    const own =
      "channels:\n  a:\n    platform: messages\n    base_url: https://a.example\n    credential: x\n";
    const show = (text: string): string => Bun.inspect(check(text).catalog, { depth: 9 });
    expect(channel).toHaveLength(6);
    expect(show(`${sections}${own}${channel.join("\n")}`)).toBe(show(own));
  });

  test.each(["", "\n\n", "# nothing yet\n", "---\n", "~\n"])("an empty file is an error: %j", (text) => {
    expect(() => check(text)).toThrow(
      "The config file /etc/g.yaml is empty. To write a new one: rm /etc/g.yaml && gateway init --config /etc/g.yaml",
    );
  });

  test("sections whose entries are all commented out are empty", () => {
    expect(check("keys:\n  # - { name: a }\nchannels:\ngroups: ~\n").catalog.groups.size).toBe(0);
  });

  test.each([
    ["https://h.example", "https://h.example/"],
    ["https://h.example/v1", "https://h.example/"],
    ["https://h.example/v1/", "https://h.example/"],
    ["https://h.example/api/v1beta", "https://h.example/api"],
    ["https://h.example/openai/", "https://h.example/openai"],
    ["http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/"],
    ["https://h.example/v1x", "https://h.example/v1x"],
  ])("the base URL %s is read as %s", (written, ready) => {
    const text = `channels: { a: { platform: relay, credential: x, base_url: "${written}" } }`;
    expect(check(text).catalog.channels.get("a")?.baseUrl.href).toBe(ready);
  });

  test("a key is found by its secret's hash, whether the file has the secret or the hash", () => {
    const hash = sha256Hex("sk-2").toUpperCase();
    const { catalog } = check(`groups: { g: { platform: messages, channels: [a] } }
channels: { a: { platform: messages, base_url: https://a.example, credential: x } }
keys:
  - { name: a, group: g, secret: sk-1 }
  - { name: b, group: g, secret_sha256: ${hash}, expires: 2027-01-01T00:00:00+01:00 }
`);
    expect(catalog.keysBySha256.get(sha256Hex("sk-1"))?.name).toBe("a");
    expect(catalog.keysBySha256.get(sha256Hex("sk-2"))?.name).toBe("b");
    expect(catalog.keys.get("b")?.expires?.toISOString()).toBe("2026-12-31T23:00:00.000Z");
  });

  test("the environment's proxy serves channels that have none of their own", () => {
    const text =
      "channels: { a: { platform: relay, base_url: https://a.example, credential: x }, b: { platform: relay, base_url: https://b.example, credential: x, proxy: http://own:1 } }";
    const { channels } = check(text, { HTTPS_PROXY: "http://theirs:2" }).catalog;
    expect(channels.get("a")?.proxy?.host).toBe("theirs:2");
    expect(channels.get("b")?.proxy?.host).toBe("own:1");
  });

  test("anchors and merges work, and a file whose anchors expand to far too much is refused", () => {
    const text =
      "channels:\n  a: &a { platform: relay, base_url: https://a.example, credential: x }\n  b: { <<: *a, priority: 9 }\n";
    expect(check(text).catalog.channels.get("b")).toMatchObject({ priority: 9, credential: "x" });
    const levels = Array.from(
      { length: 9 },
      (_, n) =>
        `k${n}: &k${n} [${
          n === 0
            ? "x"
            : Array(9)
                .fill(`*k${n - 1}`)
                .join(", ")
        }]`,
    );
    expect(complaints(levels.join("\n"))[0]).toContain("an alias refers to nothing, or to far too much");
  });
});

describe("the config file is read from the disk, or an error says why not", () => {
  test.skipIf(process.platform === "win32")(
    "the user is warned if others can read the config or the gateway.env next to it",
    () => {
      using folder = makeTempFolder();
      const path = folder.join("gateway.yaml");
      writeFileSync(path, "keys:\n", { mode: 0o600 });
      expect(loadConfig(path, {}).warnings).toEqual([]);
      chmodSync(path, 0o640);
      expect(loadConfig(path, {}).warnings[0]).toContain(`chmod 600 ${quoteWord(path)}`);
      chmodSync(path, 0o600);
      writeFileSync(folder.join("gateway.env"), "A=b\n", { mode: 0o644 });
      chmodSync(folder.join("gateway.env"), 0o644);
      expect(loadConfig(path, {}).warnings[0]).toContain(
        `chmod 600 ${quoteWord(folder.join("gateway.env"))}`,
      );
    },
  );

  test.skipIf(process.platform === "win32")(
    "relative paths start from the config's folder, also when the config is reached through a link",
    () => {
      using folder = makeTempFolder();
      mkdirSync(folder.join("real"));
      writeFileSync(folder.join("real", "x.yaml"), "ledger: { path: money/l.jsonl }");
      symlinkSync(folder.join("real", "x.yaml"), folder.join("gateway.yaml"));
      expect(loadConfig(folder.join("gateway.yaml"), {}).catalog.ledger.path).toBe(
        folder.join("money", "l.jsonl"),
      );
    },
  );

  test("a file that cannot be read causes an error in one sentence", () => {
    using folder = makeTempFolder();
    expect(() => loadConfig(folder.join("nope.yaml"), {})).toThrow("There is no config file");
    expect(() => loadConfig(folder.path, {})).toThrow("is a folder");
    writeFileSync(folder.join("latin.yaml"), Buffer.from("# caf\xe9", "latin1"));
    expect(() => loadConfig(folder.join("latin.yaml"), {})).toThrow("is not UTF-8 text");
    if (process.platform === "win32") return;
    // If the error said that there is no file, the user would try `init`, which refuses because of the link.
    symlinkSync("gone.yaml", folder.join("link.yaml"));
    expect(() => loadConfig(folder.join("link.yaml"), {})).toThrow("is a link to gone.yaml, which is not");
  });
});

test.each([
  ["anthropic", "messages"],
  ["openai", "responses"],
  ["Gemini", "content"],
])("the error about the unknown platform %s suggests %s", (written, platform) => {
  const text = `channels: { a: { platform: ${written}, base_url: "http://a.example", credential: x } }`;
  expect(() => checkConfigText(text, "/nowhere/gateway.yaml", {})).toThrow(`(did you mean "${platform}"?)`);
});

test.skipIf(process.platform === "win32")("/dev/zero, which never ends, is refused as a config", () => {
  expect(() => loadConfig("/dev/zero", {})).toThrow("is not a regular file");
});
