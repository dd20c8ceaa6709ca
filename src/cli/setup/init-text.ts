// The config file that `gateway init` writes: the text and its comments. What
// it is made from is init-run.ts.

import { stringify } from "yaml";
import type { Platform } from "../../config/schema.ts";

export interface Start {
  readonly channel: string;
  readonly platform: Platform;
  readonly baseUrl: string;
  /** A reference such as `${NAME}`, or the secret itself. */
  readonly credential: string;
  readonly group: string;
  readonly description: string;
  readonly key: { readonly name: string; readonly sha256: string; readonly created: string };
}

/** `starts`: what is set up; `offers`: what is shown as comments for later. */
export function writeConfig(starts: readonly Start[], offers: readonly Start[]): string {
  const lines = [
    "# The gateway's configuration. A running gateway takes up changes by itself.",
    "# `gateway keys`, `gateway plans` and your editor may all write here: comments stay.",
    "# ${NAME} stands for an environment variable, ${NAME:-default} for one that may be unset.",
    "",
    "listen: { host: 127.0.0.1, port: 4141 } # loopback: this machine only",
    "ledger: { path: ledger.jsonl } # what every request cost",
    "",
    "# Where requests go: one upstream each, with its own credential.",
    ...writeSection("channels", starts, offers, writeChannel),
    "",
    "# What a key is bound to. A charge is the official price × the multiplier.",
    ...writeSection("groups", starts, offers, writeGroup),
    "",
    "# What clients send. Only hashes stand here: `gateway keys add` shows a secret once.",
    ...writeSection("keys", starts, [], writeKey),
  ];
  return `${lines.join("\n")}\n`;
}

type Write = (start: Start) => readonly string[];

function writeSection(
  name: string,
  starts: readonly Start[],
  offers: readonly Start[],
  write: Write,
): string[] {
  return [
    `${name}:`,
    ...starts.flatMap(write).map((line) => `  ${line}`),
    ...offers.flatMap(write).map((line) => `  # ${line}`),
  ];
}

function writeChannel({ channel, platform, baseUrl, credential }: Start): string[] {
  return [
    `${channel}:`,
    `  platform: ${platform}`,
    `  base_url: ${quote(baseUrl)}`,
    `  credential: ${quote(credential)}`,
  ];
}

function writeGroup({ group, platform, channel, description }: Start): string[] {
  return [
    `${group}: { platform: ${platform}, multiplier: 1, channels: [${channel}], description: ${quote(description)} }`,
  ];
}

function writeKey({ group, key }: Start): string[] {
  return [`- { name: ${key.name}, group: ${group}, secret_sha256: ${key.sha256}, created: ${key.created} }`];
}

/** As YAML, in quotes where it needs them. */
function quote(text: string): string {
  return stringify(text, { lineWidth: 0 }).trimEnd();
}
