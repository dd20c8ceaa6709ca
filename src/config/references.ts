// Checks settings that depend on each other.
// A client's login goes only to its vendor, and comes only from this machine.

import { looksSecret } from "../lib/secret.ts";
import { didYouMean } from "../lib/text/nearest.ts";
import { KEY_FIELD } from "./key-fields.ts";
import { isLoopback } from "./proxy.ts";
import { type Config, groupPlatform, PLATFORM_FACTS } from "./schema.ts";
import type { Path } from "./yaml/source.ts";

export interface ReferenceProblem {
  readonly path: Path;
  readonly message: string;
}

type Channel = Config["channels"][string];
type Group = Config["groups"][string];
type Quote = (word: string, known?: readonly string[]) => string;
type Refuse = (path: Path, message: string) => void;

/** `hidden`: values from the environment, which no message may repeat. */
export function findDangling(config: Config, hidden: ReadonlySet<string>): ReferenceProblem[] {
  const problems: ReferenceProblem[] = [];
  const refuse: Refuse = (path, message) => problems.push({ path, message });
  const quote: Quote = (word, known = []) => {
    const isShown = !looksSecret(word) && !hidden.has(word) && /^[\w.-]{1,40}$/.test(word);
    return `${isShown ? `"${word}"` : "of that name"}${didYouMean(word, known)}`;
  };
  const { channels, groups, plans, keys, listen } = config;
  const names = Object.keys(groups);
  const checkGroup = (group: string, path: Path): void => {
    if (!names.includes(group)) refuse(path, `there is no group ${quote(group, names)}`);
  };
  const refuseIn = (...place: Path): Refuse => {
    return (path, message) => refuse([...place, ...path], message);
  };
  for (const [name, group] of Object.entries(groups))
    checkChannels(config, group, quote, refuseIn("groups", name));
  for (const [name, plan] of Object.entries(plans))
    for (const [index, group] of plan.groups.entries()) checkGroup(group, ["plans", name, "groups", index]);
  for (const [index, { group }] of keys.entries()) checkGroup(group, ["keys", index, "group"]);
  for (const [index, first] of findRepeated(keys.map(({ name }) => name)))
    refuse(["keys", index, "name"], `keys[${first}] has the same name: the names of keys are unique`);
  for (const [index, first] of findRepeated(keys.map(({ secretSha256 }) => secretSha256)))
    refuse(["keys", index], `keys[${first}] has the same secret: a secret belongs to one key`);
  for (const [name, channel] of Object.entries(channels)) {
    if (!channel.usesLogin) continue;
    checkLogin(channel, listen.host, refuseIn("channels", name));
    for (const [group, settings] of Object.entries(groups))
      checkLoginGroup(settings, name, refuseIn("groups", group));
  }
  return problems;
}

function findRepeated(values: readonly string[]): Array<readonly [index: number, first: number]> {
  const seen = new Map<string, number>();
  return values.flatMap((value, index) => {
    const first = seen.getOrInsert(value, index);
    return first === index ? [] : [[index, first] as const];
  });
}

function checkChannels({ channels }: Config, group: Group, quote: Quote, refuse: Refuse): void {
  const explain = (channel: string, index: number): string | null => {
    const platform = channels[channel]?.platform;
    if (platform === undefined) return `there is no channel ${quote(channel, Object.keys(channels))}`;
    if (group.channels.indexOf(channel) !== index) return "this channel is named twice";
    const sides = [platform, group.platform];
    const mayConvert = sides.every((word) => PLATFORM_FACTS[word].converts === true);
    if (group.convert && !mayConvert)
      return "nothing can be converted from or for a relay: remove `convert: true`";
    if (group.convert || groupPlatform(platform) === group.platform) return null;
    const problem = `the channel ${quote(channel)} is of another platform than its group`;
    if (!mayConvert) return problem;
    return `${problem}. \`convert: true\` on the group converts its requests`;
  };
  for (const [index, channel] of group.channels.entries()) {
    const message = explain(channel, index);
    if (message !== null) refuse(["channels", index], message);
  }
}

/** Not `*.localhost`: some systems ask a server for it. */
const LOOPBACK = /^(?:localhost|\[::1\]|127(?:\.\d+){3})$/;

function checkLogin(channel: Channel, host: string, refuse: Refuse): void {
  const { platform, baseUrl, headers, proxy, probeMs } = channel;
  const address = PLATFORM_FACTS[platform].loginAddress;
  if (address === undefined)
    refuse(["platform"], "`credential: client` is for the platforms messages and responses");
  else if (!LOOPBACK.test(baseUrl.hostname) && baseUrl.href !== new URL(address).href) {
    const advice = "use this address with `credential: client`";
    refuse(["base_url"], `the client's own login belongs to ${address} only; ${advice}`);
  }
  for (const [name] of headers)
    if (KEY_FIELD.test(name) || /account-id$|^cookie$/i.test(name))
      refuse(["headers", name], "would replace the client's own login");
  if (proxy !== null && baseUrl.protocol === "http:")
    refuse(["proxy"], "would read the client's own login, because base_url has no https");
  if (probeMs !== null) refuse(["probe"], "a channel without a credential of its own cannot be probed");
  if (!isLoopback(host)) {
    const advice = "so the gateway may listen on loopback only: change listen.host";
    refuse(["credential"], `passes on the client's own login, ${advice}`);
  }
}

function checkLoginGroup(group: Group, login: string, refuse: Refuse): void {
  if (!group.channels.includes(login)) return;
  const alone = `its channel "${login}" passes on the client's own login`;
  if (group.convert)
    refuse(["convert"], "a login is for the vendor's own tool, and nothing is converted for it");
  else if (group.channels.length > 1)
    refuse(["channels"], `${alone}: there is no failover to another account, so it must be the only channel`);
}
