// Which other gateways are measured, and how each is set up to pass requests on to the benchmark's upstream.

import { mkdirSync, writeFileSync } from "node:fs";
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
  /** Before it starts. */
  readonly prepare?: (site: Site) => void;
  /** A file for node, and its words. */
  readonly command: (site: Site) => readonly string[];
  /** The fields that its requests need. */
  readonly open: (site: Site) => Fields;
  readonly shape: string;
}

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
    shape: "POST /v1/messages, passed on as it is",
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
];

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
