// Which other gateways are measured, and how each is set up to pass requests on to the benchmark's upstream.

import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Where a peer is installed and runs. */
export interface Site {
  /** Its home folder, which is temporary. */
  readonly folder: string;
  /** Its package in there. */
  readonly place: string;
  readonly port: number;
  readonly upstreamPort: number;
}

type Fields = Readonly<Record<string, string>>;

export interface Peer {
  readonly name: string;
  /** Name and version of the package. */
  readonly package: string;
  readonly version: string;
  /** Packages that it would install itself when it starts. */
  readonly also?: readonly string[];
  /** Before it starts. */
  readonly prepare?: (site: Site) => void;
  /** An executable, or a file for node. */
  readonly command: (site: Site) => readonly string[];
  readonly env?: (site: Site) => Fields;
  /** The fields that its requests need. Where only its own API can set it up, this does so first. */
  readonly open: (site: Site) => Fields | Promise<Fields>;
  readonly model?: string;
  readonly shape: string;
}

const PASSED_ON = "POST /v1/messages, passed on as it is";

export const PEERS: readonly Peer[] = [
  {
    name: "portkey",
    package: "@portkey-ai/gateway",
    version: "1.15.2",
    command: ({ place, port }) => [join(place, "build/start-server.js"), `--port=${port}`, "--headless"],
    open: ({ upstreamPort }) => ({
      "x-api-key": "none",
      "x-portkey-provider": "anthropic",
      "x-portkey-custom-host": `${locate(upstreamPort)}/v1`,
    }),
    shape: PASSED_ON,
  },
  {
    name: "claude-code-router",
    package: "@musistudio/claude-code-router",
    version: "2.0.0",
    prepare: writeRouterConfig,
    command: ({ place }) => [join(place, "dist/cli.js"), "start"],
    open: () => ({ "x-api-key": "none" }),
    shape: "POST /v1/messages, converted to chat completions and back",
  },
  {
    name: "better-ccflare",
    package: "better-ccflare",
    version: "3.5.4",
    command: ({ place, port }) => [join(place, "dist/better-ccflare"), "--serve", "--port", String(port)],
    env: ({ folder }) => ({
      BETTER_CCFLARE_HOST: "127.0.0.1",
      BETTER_CCFLARE_CONFIG_PATH: join(folder, "config.json"),
      BETTER_CCFLARE_DB_PATH: join(folder, "database"),
    }),
    open: openCcflare,
    shape: `${PASSED_ON}; counts tokens into a database`,
  },
  {
    name: "9router",
    package: "9router",
    version: "0.5.69",
    also: ["sql.js@1.14.1"],
    // npm packages lose the WebAssembly file of this copy. Node would find it before the complete one beside the package.
    prepare: ({ place }) => rmSync(join(place, "app/node_modules/sql.js"), { recursive: true, force: true }),
    // Its own start command would end every process of its name on the machine.
    command: ({ place }) => [join(place, "app/custom-server.js")],
    env: ({ folder, port }) => ({
      HOSTNAME: "127.0.0.1",
      PORT: String(port),
      DATA_DIR: join(folder, "data"),
      NODE_PATH: join(folder, "node_modules"),
      INITIAL_PASSWORD: PASSWORD,
    }),
    open: openNineRouter,
    model: "bench/claude-haiku-4-5",
    shape: `${PASSED_ON}; counts tokens into a database (sql.js, or the one of Node 22 and newer)`,
  },
];

const PASSWORD = "bench-password";

function locate(port: number): string {
  return `http://127.0.0.1:${port}`;
}

function writeRouterConfig({ folder: home, port, upstreamPort }: Site): void {
  const folder = join(home, ".claude-code-router");
  mkdirSync(folder);
  const config = {
    LOG: false,
    HOST: "127.0.0.1",
    PORT: port,
    NON_INTERACTIVE_MODE: true,
    Providers: [
      {
        name: "bench",
        api_base_url: `${locate(upstreamPort)}/v1/chat/completions`,
        api_key: "none",
        models: ["gpt-5-mini"],
      },
    ],
    Router: { default: "bench,gpt-5-mini" },
  };
  writeFileSync(join(folder, "config.json"), JSON.stringify(config));
}

async function openCcflare({ port, upstreamPort }: Site): Promise<Fields> {
  const account = { name: "bench", apiKey: "none-none", priority: 0, customEndpoint: locate(upstreamPort) };
  await post(`${locate(port)}/api/accounts/anthropic-compatible`, account);
  return { "x-api-key": "none" };
}

/** A provider, an account there, and a key for clients. */
async function openNineRouter({ port, upstreamPort }: Site): Promise<Fields> {
  const at = (path: string): string => `${locate(port)}/api/${path}`;
  const { cookie } = await post(at("auth/login"), { password: PASSWORD });
  const kind = { name: "bench", prefix: "bench", type: "anthropic-compatible" };
  const node = await post(at("provider-nodes"), { ...kind, baseUrl: `${locate(upstreamPort)}/v1` }, cookie);
  const provider = /"id":"([^"]+)"/.exec(node.text)?.[1];
  await post(at("providers"), { provider, name: "bench", apiKey: "none", priority: 1 }, cookie);
  const created = await post(at("keys"), { name: "bench" }, cookie);
  return { "x-api-key": /"key":"([^"]+)"/.exec(created.text)?.[1] ?? "" };
}

async function post(url: string, body: object, cookie = ""): Promise<{ text: string; cookie: string }> {
  const headers = { "content-type": "application/json", cookie };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok)
    throw new Error(`POST ${new URL(url).pathname}: ${response.status} ${text.slice(0, 200)}`);
  const cookies = response.headers.getSetCookie().map((each) => each.slice(0, each.indexOf(";")));
  return { text, cookie: cookies.join("; ") };
}
