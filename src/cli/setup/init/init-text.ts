// The text of the config file that `gateway init` writes, with its comments.

import { stringify } from "yaml";
import type { ChannelPlatform } from "../../../config/schema.ts";
import { LOCAL_TIMEOUTS, type PresetGroup } from "../presets.ts";

export interface Start {
  readonly channel: string;
  readonly platform: ChannelPlatform;
  readonly baseUrl: string;
  /** A reference such as `${NAME}`, or the secret itself. */
  readonly credential: string;
  readonly bearer?: true;
  /** A server on this machine: its models cost nothing. */
  readonly local?: object;
  /** The login of the tool itself: a plan has been paid already. */
  readonly login?: true;
  /** Each with its key, which has its name. */
  readonly groups: readonly StartGroup[];
}

export interface StartGroup extends PresetGroup {
  readonly key: { readonly sha256: string; readonly created: string };
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
    "# A key is bound to a group. A charge is the official price × the group's multiplier. `convert: true`: its channels",
    "# speak another dialect than its clients, and requests are converted.",
    ...writeSection("groups", starts, offers, writeGroups),
    "",
    "# Keys are what clients send. The file has only hashes: `gateway keys add` shows a secret once.",
    ...writeSection("keys", starts, [], writeKeys),
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
    ...(local === undefined
      ? []
      : [
          "  free: true",
          `  timeouts: { first_byte: ${LOCAL_TIMEOUTS.first_byte}, idle: ${LOCAL_TIMEOUTS.idle} }`,
        ]),
  ];
}

function writeGroups({ groups, channel, login }: Start): string[] {
  return groups.map(({ name, platform, convert, description }) => {
    const more = convert === true ? "convert: true, " : login === true ? "" : "multiplier: 1, ";
    return `${name}: { platform: ${platform}, ${more}channels: [${channel}], description: ${quote(description)} }`;
  });
}

function writeKeys({ groups }: Start): string[] {
  return groups.map(
    ({ name, key }) =>
      `- { name: ${name}, group: ${name}, secret_sha256: ${key.sha256}, created: ${key.created} }`,
  );
}

/** As YAML, in quotes if necessary. */
function quote(text: string): string {
  return stringify(text, { lineWidth: 0 }).trimEnd();
}
