// The text of the config file that `gateway init` writes, with its comments.

import { stringify } from "yaml";
import type { Platform } from "../../../config/schema.ts";

export interface Start {
  readonly channel: string;
  readonly platform: Platform;
  readonly baseUrl: string;
  /** A reference such as `${NAME}`, or the secret itself. */
  readonly credential: string;
  readonly bearer?: true;
  /** A server on this machine: its models cost nothing. */
  readonly local?: object;
  /** The login of the tool itself: a plan has been paid already. */
  readonly login?: true;
  readonly group: string;
  readonly description: string;
  readonly key: { readonly name: string; readonly sha256: string; readonly created: string };
}

/** `starts`: what is set up; `offers`: what is shown as comments for later. */
export function writeConfig(starts: readonly Start[], offers: readonly Start[]): string {
  const lines = [
    "# The gateway's configuration. A running gateway applies changes by itself.",
    "# `gateway keys`, `gateway plans` and your editor can all change this file: comments stay.",
    "# ${NAME} is an environment variable or a line of gateway.env beside this file, ${NAME:-default} one that may be unset.",
    "",
    "listen: { host: 127.0.0.1, port: 4141 } # loopback: this machine only",
    "ledger: { path: ledger.jsonl } # the cost of every request; beside this file, so that a backup of the folder has both",
    "",
    "# Where requests go: one upstream per channel, with its own credential.",
    ...writeSection("channels", starts, offers, writeChannel),
    "",
    "# A key is bound to a group. A charge is the official price × the group's multiplier.",
    ...writeSection("groups", starts, offers, writeGroup),
    "",
    "# Keys are what clients send. The file has only hashes: `gateway keys add` shows a secret once.",
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

function writeChannel({ channel, platform, baseUrl, credential, bearer, local }: Start): string[] {
  return [
    `${channel}:`,
    `  platform: ${platform}`,
    `  base_url: ${quote(baseUrl)}`,
    `  credential: ${quote(credential)}`,
    ...(bearer === true ? [`  headers: { authorization: ${quote(`Bearer ${credential}`)} }`] : []),
    ...(local === undefined ? [] : ["  free: true"]),
  ];
}

function writeGroup({ group, platform, channel, description, login }: Start): string[] {
  const multiplier = login === true ? "" : "multiplier: 1, ";
  return [
    `${group}: { platform: ${platform}, ${multiplier}channels: [${channel}], description: ${quote(description)} }`,
  ];
}

function writeKey({ group, key }: Start): string[] {
  return [`- { name: ${key.name}, group: ${group}, secret_sha256: ${key.sha256}, created: ${key.created} }`];
}

/** As YAML, in quotes if necessary. */
function quote(text: string): string {
  return stringify(text, { lineWidth: 0 }).trimEnd();
}
