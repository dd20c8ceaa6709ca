// Requests and upstreams put a tool's own login into every place that can hold a text. After this attack, no
// part of the login may be in a file of the gateway, in its output, or in the output of a command.

import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { type ChildGateway, startGateway } from "../../harness/gateway.ts";
import { PROGRAM } from "../../harness/program.ts";
import { type Exchanged, openRaw, rawRequest, writeRequest } from "../../harness/raw.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";
import { type DemoUpstream, startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { knownFields, signInBy, visit } from "../../web/visitor.ts";
import { run } from "../../cli/driving.ts";

const readEscape = (_: string, hex: string): string => String.fromCharCode(Number.parseInt(hex, 16));

/** Throws if `shown` has `most` characters of `hidden` in a row. Upper and lower case count as equal, and the
 *  escapes of JSON and of URLs are read first. */
function expectSafe(shown: string, hidden: string, most = 12): void {
  const views = [
    shown,
    shown.replaceAll(/\\u([0-9a-f]{4})/gi, readEscape),
    shown.replaceAll(/%([0-7][0-9a-f])/gi, readEscape),
  ]
    .join("\n")
    .toLowerCase();
  for (let at = 0; at + most <= hidden.length; at += 1) {
    const piece = hidden.slice(at, at + most).toLowerCase();
    if (views.includes(piece)) throw new Error(`shown: ${piece} in ${shown}`);
  }
}

/** The secret part of each login: without the beginning that all logins share. */
const HIDDEN = {
  claude: "INVENTED0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uVwXyZ",
  codex: "s1gN4tUr3oFnObOdY5aB6cD7eF8gH9iJ0kL1mN2oP3",
  account: "0f9e8d7c-6b5a-4321-8fed-cba987654321",
};
const CLAUDE = `sk-ant-oat01-${HIDDEN.claude}`;
const CODEX = `eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJub2JvZHkifQ.${HIDDEN.codex}`;

interface Login {
  readonly name: "claude" | "codex";
  readonly token: string;
  readonly target: string;
  readonly fields: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
}

const LOGINS: readonly Login[] = [
  {
    name: "claude",
    token: CLAUDE,
    target: "/v1/messages?beta=true",
    fields: {
      authorization: `Bearer ${CLAUDE}`,
      "user-agent": "claude-cli/2.1.330 (external, cli)",
      "anthropic-beta": "claude-code-20250219,oauth-2025-04-20",
      "x-claude-code-session-id": "5b1c2d3e-0000-4000-8000-000000000001",
    },
    body: { model: "claude-haiku-4-5", max_tokens: 50, messages: [{ role: "user", content: "Hello" }] },
  },
  {
    name: "codex",
    token: CODEX,
    target: "/v1/responses",
    fields: {
      authorization: `Bearer ${CODEX}`,
      "chatgpt-account-id": HIDDEN.account,
      "user-agent": "codex_exec/0.169.0 (Debian 12.0.0; x86_64) unknown",
      "session-id": "5b1c2d3e-0000-4000-8000-000000000002",
    },
    body: { model: "gpt-5.4", input: [{ role: "user", content: "Hello" }] },
  },
];

/** The ways in which an attack writes a login or its account. */
const SPELLINGS: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => text.slice(20),
  (text) => Array.from(text, (each) => `%${each.charCodeAt(0).toString(16)}`).join(""),
  (text) => text.toLowerCase(),
];

/** The places of a request that may have the text. The login is also in its usual place. */
const PLACES: Readonly<Record<string, (text: string, login: Login) => Partial<Login> & { method?: string }>> =
  {
    nowhere: () => ({}),
    "the login's own field, in another scheme": (text) => ({
      fields: { authorization: `Basic ${Buffer.from(`me:${text}`).toString("base64")}` },
    }),
    "the login's own field, alone": (text) => ({ fields: { authorization: text } }),
    "two fields of one name": (text) => ({
      fields: { "x-half": text.slice(0, 30), "X-Half": text.slice(30), "X-GATEWAY-LABEL": text.slice(0, 40) },
    }),
    "a field of two lines": (text) => ({
      fields: { "x-folded": `${text.slice(0, 30)}\r\n ${text.slice(30)}` },
    }),
    "the label": (text) => ({ fields: { "x-gateway-label": text } }),
    "the run": (text) => ({ fields: { "x-gateway-session": text, "x-gateway-tool": text } }),
    "the session": (text) => ({ fields: { "x-claude-code-session-id": text, "session-id": text } }),
    "the agent": (text) => ({ fields: { "x-claude-code-agent-id": text, "x-openai-subagent": text } }),
    "the user agent": (text, { fields }) => ({ fields: { "user-agent": `${fields["user-agent"]} ${text}` } }),
    "the program's name": (text) => ({ fields: { "user-agent": `${text}/1.0` } }),
    "the trace": (text) => ({ fields: { traceparent: text, tracestate: `a=${text}` } }),
    "other keys": (text) => ({ fields: { "x-api-key": text, "x-goog-api-key": text, "api-key": text } }),
    "fields of its own": (text) => ({
      fields: { cookie: `a=${text}`, "x-own": text, [`x-${text.replaceAll(/\W/g, "")}`]: "1" },
    }),
    "the field for the gateway's key": (text) => ({ fields: { "x-gateway-key": text } }),
    "the query": (text, { target }) => ({
      target: `${target}${target.includes("?") ? "&" : "?"}key=${text}&x=${text}`,
    }),
    "the path": (text) => ({ target: `/v1/${text}` }),
    "a response's id": (text) => ({ target: `/v1/responses/${text}`, method: "GET" }),
    "a model's path": (text) => ({ target: `/v1beta/models/${text}:generateContent` }),
    "the method": (text) => ({ method: text.replaceAll(/\W/g, "").toUpperCase().slice(0, 30) }),
    "the model": (text, { body }) => ({ body: { ...body, model: text } }),
    "settings of the body": (text, { body }) => ({
      body: {
        ...body,
        [text]: 1,
        metadata: { user_id: text },
        service_tier: text,
        prompt_cache_key: text,
        previous_response_id: text,
      },
    }),
    "the tools": (text, { body, name }) => ({
      body: {
        ...body,
        tools: [`mcp__${text}__x`, text].map((tool) => ({
          name: tool.replaceAll(/[^\w-]/g, "_"),
          ...(name === "codex" ? { type: "function", parameters: {} } : { input_schema: {} }),
        })),
      },
    }),
    "the prompt": (text, { body }) => {
      const messages = [{ role: "user", content: `the token ${text}` }];
      return { body: { ...body, ...(body["input"] === undefined ? { messages } : { input: messages }) } };
    },
  };

let folder: TempFolder;
let upstream: DemoUpstream;
let collector: { readonly url: string; readonly received: string[]; stop(): void };
let gateway: ChildGateway;
/** Everything that outsiders may see: outputs and answers, each with its source. */
const shown: [where: string, text: string][] = [];

beforeAll(async () => {
  folder = makeTempFolder();
  upstream = startDemoUpstream();
  collector = startCollector();
  const group = (name: string) => ({
    platform: name === "codex" ? "responses" : "messages",
    channels: [name],
  });
  const channel = (platform: string, base_url: string, credential: string) => ({
    platform,
    base_url,
    credential,
  });
  gateway = await startGateway({
    folder,
    config: {
      channels: {
        claude: channel("messages", upstream.url, "client"),
        codex: channel("responses", `${upstream.url}/backend-api/codex`, "client"),
        metered: channel("messages", upstream.url, "credential-of-the-channel"),
        plain: channel("responses", upstream.url, "credential-of-the-channel"),
      },
      groups: {
        claude: group("claude"),
        codex: group("codex"),
        metered: { platform: "messages", channels: ["metered"], other_paths: ["/v1/new"] },
        plain: { platform: "responses", channels: ["plain"] },
      },
      keys: ["claude", "codex", "metered", "plain"].map((name) => ({
        name,
        group: name,
        secret: `sk-test-${name}`,
        record: name,
        limits: { usd_total: name === "metered" ? undefined : "100" },
      })),
      otlp: { url: collector.url },
    },
    env: { XDG_RUNTIME_DIR: folder.path },
    command: PROGRAM,
  });
});

afterAll(async () => {
  await gateway.stop();
  upstream.stop();
  collector.stop();
  folder.remove();
});

/** Stands in for a receiver of traces. */
function startCollector() {
  const received: string[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      received.push(await request.text());
      return new Response("{}");
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, received, stop: () => void server.stop(true) };
}

let attacks = 0;

/** Attacks take turns: with the key of the login's own group, with that of a metered group, and without a key. */
function nextKey({ name }: Login): string | undefined {
  return [name, name === "codex" ? "plain" : "metered", undefined][(attacks += 1) % 3];
}

async function attack(login: Login, place: string, text: string): Promise<void> {
  const change = PLACES[place]!(text, login);
  const key = nextKey(login);
  const fields = {
    ...login.fields,
    ...(key !== undefined && { "x-gateway-key": `sk-test-${key}` }),
    ...change.fields,
  };
  const { target, body } = { ...login, ...change };
  const request = {
    target,
    fields,
    ...(change.method === "GET" ? {} : { body }),
    ...(change.method && { method: change.method }),
  };
  const answer: Exchanged = await rawRequest(gateway.port, request);
  shown.push([
    `the answer ${answer.status} with the key ${key} and ${place}`,
    answer.status >= 400 ? answer.text : "",
  ]);
}

const COMMANDS =
  "top --json|top|statusline|recordings list --json|keys list --json|usage --by model,label --json|usage --by session,agent --csv|usage --by tool,key|sessions --json|context --json|context servers --json|cache --json|models --json|channels --json|prices check --json|ledger verify --json|recordings show claude|doctor|doctor --json".split(
    "|",
  );

test("P153: no part of a login is in an error, the log, a file, a trace, a process's title or a report", async () => {
  for (const login of LOGINS)
    for (const place of Object.keys(PLACES))
      for (const text of login.name === "codex" ? [CODEX, HIDDEN.account] : [CLAUDE])
        for (const spell of SPELLINGS) await attack(login, place, spell(text));
  const statuses = new Set(shown.map(([where]) => where.slice(0, 14)));
  // Some attacks are answered, and each kind of refusal occurs.
  expect([...statuses].toSorted()).toEqual([200, 400, 401, 403, 404].map((status) => `the answer ${status}`));
  const home = makeHome();
  for (const words of COMMANDS) {
    const around = { folder: folder.path, env: { XDG_RUNTIME_DIR: folder.path, HOME: home.path } };
    const { stdout, stderr } = await run(around, ...words.split(" "));
    shown.push([words, stdout + stderr]);
  }
  home.remove();
  // The upstream may get the login in the login's own fields, and in the body, where a prompt may repeat it.
  for (const { target, fields } of upstream.requests)
    shown.push([
      "the upstream",
      [
        target,
        ...fields.filter(([name]) => !/^(?:authorization|chatgpt-account-id)$/i.test(name)).flat(),
      ].join("\n"),
    ]);
  shown.push(
    ["log", gateway.stdout()],
    ["stderr", gateway.stderr()],
    ["traces", collector.received.join("\n")],
  );
  for (const name of ["cmdline", "comm", "environ"]) shown.push([name, readProcess(name)]);
  await lookAtPage();
  const list = (): string[] => readdirSync(folder.path, { recursive: true, encoding: "utf8" });
  // The gateway serves requests before it writes recordings, so the last ones may not be there yet.
  while (list().filter((name) => name.endsWith(".exchange")).length <= 50) await Bun.sleep(20);
  gateway.signal("SIGKILL");
  await gateway.exited;
  const files = list();
  for (const name of files)
    if (statSync(folder.join(name)).isFile()) shown.push([name, readFileSync(folder.join(name), "latin1")]);
  const found = shown.flatMap(([where, text]) =>
    Object.entries(HIDDEN).flatMap(([name, hidden]) => (isSafe(text, hidden) ? [] : `${name}: ${where}`)),
  );
  expect(found).toEqual([]);
});

/** Makes the home of a user who is signed in to both tools. */
function makeHome(): TempFolder {
  const home = makeTempFolder();
  mkdirSync(home.join(".claude"));
  mkdirSync(home.join(".codex"));
  const oauth = { accessToken: CLAUDE, refreshToken: CLAUDE, expiresAt: 1 };
  writeFileSync(home.join(".claude/.credentials.json"), JSON.stringify({ claudeAiOauth: oauth }));
  const tokens = { id_token: CODEX, access_token: CODEX, refresh_token: CODEX, account_id: HIDDEN.account };
  writeFileSync(home.join(".codex/auth.json"), JSON.stringify({ tokens }));
  return home;
}

/** Reads the gateway's process, as other users see it. */
function readProcess(name: string): string {
  const path = `/proc/${gateway.pid}/${name}`;
  return existsSync(path) ? readFileSync(path, "latin1") : "";
}

async function lookAtPage(): Promise<void> {
  const around = { folder: folder.path, env: { XDG_RUNTIME_DIR: folder.path } };
  const { stdout } = await run(around, "open", "--print");
  const fields = knownFields(gateway, await signInBy(gateway, stdout.trim()));
  const names = ["overview", "sessions?period=1d", "requests?period=1d", "names", "cache", "keys", "state"];
  for (const name of names) {
    const { status, text } = await visit(gateway, `/console/api/reports/${name}`, { fields });
    expect([name, status]).toEqual([name, 200]);
    shown.push([`the page's ${name}`, text]);
  }
  const live = await openRaw(gateway.port);
  live.send(writeRequest({ target: "/console/api/live", fields }));
  shown.push(["the live page", String(await live.until('"requests":'))]);
  live.close();
}

function isSafe(text: string, hidden: string): boolean {
  try {
    expectSafe(text, hidden);
    // The gateway writes names of tools in lower case.
    expect(text.toLowerCase()).not.toContain(hidden.toLowerCase());
    return true;
  } catch {
    return false;
  }
}
