// Checks across settings. A client's login goes only to its vendor, and comes only from this machine.

import { looksSecret } from "../lib/secret.ts";
import { suggestNearest } from "../lib/text/nearest.ts";
import { isLoopback } from "./proxy.ts";
import { type Config, CONVERTIBLE, groupPlatform, LOGIN_ADDRESSES } from "./schema.ts";
import type { Path } from "./yaml/source.ts";

export interface ReferenceProblem {
  readonly path: Path;
  readonly message: string;
}

type Quote = (word: string, known?: readonly string[]) => string;

/** `hidden`: values from the environment, which no message may repeat. */
export function findDangling(config: Config, hidden: ReadonlySet<string>): ReferenceProblem[] {
  const quote: Quote = (word, known = []) => {
    const shown =
      looksSecret(word) || hidden.has(word) || !/^[\w.-]{1,40}$/.test(word) ? "of that name" : `"${word}"`;
    return `${shown}${suggestNearest(word, known)}`;
  };
  const { groups, plans, keys } = config;
  const names = Object.keys(groups);
  const checkGroup = (group: string, path: Path): ReferenceProblem[] =>
    names.includes(group) ? [] : [{ path, message: `there is no group ${quote(group, names)}` }];
  return [
    ...Object.entries(groups).flatMap(([name, group]) => checkChannels(config, name, group, quote)),
    ...Object.entries(plans).flatMap(([name, plan]) =>
      plan.groups.flatMap((group, index) => checkGroup(group, ["plans", name, "groups", index])),
    ),
    ...keys.flatMap(({ group }, index) => checkGroup(group, ["keys", index, "group"])),
    ...findRepeated(keys.map(({ name }) => name)).map(([index, first]) => ({
      path: ["keys", index, "name"],
      message: `keys[${first}] has the same name: the names of keys are unique`,
    })),
    ...findRepeated(keys.map(({ secretSha256 }) => secretSha256)).map(([index, first]) => ({
      path: ["keys", index],
      message: `keys[${first}] has the same secret: a secret belongs to one key`,
    })),
    ...findLoginProblems(config),
  ];
}

/** With the index of its first place. */
function findRepeated(values: readonly string[]): Array<readonly [index: number, first: number]> {
  const seen = new Map<string, number>();
  return values.flatMap((value, index) => {
    const first = seen.getOrInsert(value, index);
    return first === index ? [] : [[index, first] as const];
  });
}

function checkChannels(
  { channels }: Config,
  name: string,
  group: Config["groups"][string],
  quote: Quote,
): ReferenceProblem[] {
  const explain = (channel: string, index: number): string | null => {
    const platform = channels[channel]?.platform;
    if (platform === undefined) return `there is no channel ${quote(channel, Object.keys(channels))}`;
    if (group.channels.indexOf(channel) !== index) return "this channel is named twice";
    const mayConvert = [platform, group.platform].every((word) => CONVERTIBLE.has(word));
    if (group.convert && !mayConvert)
      return "nothing can be converted from or for a relay: remove `convert: true`";
    if (group.convert || groupPlatform(platform) === group.platform) return null;
    const problem = `the channel ${quote(channel)} is of another platform than its group`;
    return mayConvert ? `${problem}. \`convert: true\` on the group converts its requests` : problem;
  };
  return group.channels.flatMap((channel, index) => {
    const message = explain(channel, index);
    return message === null ? [] : [{ path: ["groups", name, "channels", index], message }];
  });
}

const LOGIN_HEADER = /authorization|api-?key$|account-id$|^cookie$/i;

/** Some systems ask a server for `*.localhost`. */
const LOOPBACK = /^(?:localhost|\[::1\]|127(?:\.\d+){3})$/;

function findLoginProblems({ channels, groups, listen }: Config): ReferenceProblem[] {
  const logins = Object.entries(channels).filter(([, { usesLogin }]) => usesLogin);
  return logins.flatMap(([name, channel]) => [
    ...checkLogin(channel, listen.host).map(([setting, message]) => ({
      path: ["channels", name, ...setting],
      message,
    })),
    ...Object.entries(groups)
      .filter(([, group]) => group.channels.includes(name))
      .flatMap(([group, settings]) => checkLoginGroup(["groups", group], settings, name)),
  ]);
}

function checkLoginGroup(path: Path, group: Config["groups"][string], login: string): ReferenceProblem[] {
  const refuse = (setting: string, message: string) => [{ path: [...path, setting], message }];
  if (group.convert)
    return refuse("convert", "a login is for the vendor's own tool, and nothing is converted for it");
  if (group.channels.length === 1) return [];
  const alone = `its channel "${login}" passes on the client's own login`;
  return refuse("channels", `${alone}: there is no failover to another account, so the group has no other`);
}

type LoginFault = readonly [setting: readonly string[], message: string];

function checkLogin(channel: Config["channels"][string], host: string): LoginFault[] {
  const { platform, baseUrl, headers, proxy, probeMs } = channel;
  const address = LOGIN_ADDRESSES[platform];
  const isElsewhere =
    address !== undefined && !LOOPBACK.test(baseUrl.hostname) && baseUrl.href !== new URL(address).href;
  const rows: ReadonlyArray<readonly [isWrong: boolean, ...fault: LoginFault]> = [
    [address === undefined, ["platform"], "`credential: client` is for the platforms messages and responses"],
    [
      isElsewhere,
      ["base_url"],
      `the client's own login belongs to ${address} only; with \`credential: client\`, use that`,
    ],
    ...headers.map(
      ([name]) =>
        [LOGIN_HEADER.test(name), ["headers", name], "would replace the client's own login"] as const,
    ),
    [
      proxy !== null && baseUrl.protocol === "http:",
      ["proxy"],
      "would read the client's own login: a proxy is for an address with https",
    ],
    [probeMs !== null, ["probe"], "a channel without a credential of its own cannot be probed"],
    [
      !isLoopback(host),
      ["credential"],
      "passes on the client's own login, so the gateway may listen on loopback only: change listen.host",
    ],
  ];
  return rows.flatMap(([isWrong, setting, message]) => (isWrong ? [[setting, message] as const] : []));
}
