// `credential: client`: a channel that passes on the login of the tool itself. Checks that the login can go nowhere but
// to the vendor whose login it is, and come from nowhere but this machine. Reads the tree, as references.ts does.

import { getField, getList, isObject } from "../lib/json/json.ts";
import { isLoopback } from "./proxy.ts";
import type { Path } from "./yaml/source.ts";
import { readBaseUrl, readListenHost, withoutVersion } from "./yaml/scalars.ts";

/** The value of `credential` that means: the client's own. */
export const CLIENT_LOGIN = "client";

/** Where the login of each platform's tool belongs: Claude Code's, and Codex's with ChatGPT. */
export const LOGIN_ADDRESSES: Readonly<Record<string, string>> = {
  messages: "https://api.anthropic.com",
  responses: "https://chatgpt.com/backend-api/codex",
};

/** Where a base URL ends so, the paths below it have no version. */
export const UNVERSIONED = "/backend-api/codex";

/** Headers that carry a login, or say whose it is. */
const LOGIN_HEADER = /authorization|api-?key$|account-id$|^cookie$/i;

/** Not `*.localhost`, for which some systems ask a server. */
const LOOPBACK = /^(?:localhost|\[::1\]|127(?:\.\d+){3})$/;

interface LoginProblem {
  readonly path: Path;
  readonly message: string;
}

export function findLoginProblems(tree: unknown): LoginProblem[] {
  const entries = getField(tree, "channels");
  const channels = isObject(entries) ? Object.entries(entries) : [];
  const logins = channels.filter(([, channel]) => getField(channel, "credential") === CLIENT_LOGIN);
  if (logins.length === 0) return [];
  const isOpen = !listensOnLoopback(getField(getField(tree, "listen"), "host"));
  const names = logins.map(([name]) => name);
  return [
    ...logins.flatMap(([name, channel]) =>
      [...checkChannel(channel), ...(isOpen ? [refuseOpen()] : [])].map(({ path, message }) => ({
        path: ["channels", name, ...path],
        message,
      })),
    ),
    ...checkGroups(tree, names),
  ];
}

function refuseOpen(): LoginProblem {
  const message =
    "passes on the client's own login, so the gateway may listen on loopback only: change listen.host";
  return { path: ["credential"], message };
}

function listensOnLoopback(host: unknown): boolean {
  if (typeof host !== "string") return true;
  try {
    return isLoopback(readListenHost(host));
  } catch {
    return true; // another problem is reported
  }
}

function checkChannel(channel: unknown): LoginProblem[] {
  const base = getField(channel, "base_url");
  const url = typeof base === "string" ? readUrl(base) : null;
  return [...checkAddress(getField(channel, "platform"), url), ...checkSettings(channel, url)];
}

function checkAddress(platform: unknown, url: URL | null): LoginProblem[] {
  if (typeof platform !== "string") return [];
  const address = LOGIN_ADDRESSES[platform];
  if (address === undefined) {
    const message = "`credential: client` is for the platforms messages and responses";
    return [{ path: ["platform"], message }];
  }
  if (url === null || LOOPBACK.test(url.hostname) || url.href === new URL(address).href) return [];
  const message = `the client's own login belongs to ${address} only; with \`credential: client\`, use that`;
  return [{ path: ["base_url"], message }];
}

function checkSettings(channel: unknown, url: URL | null): LoginProblem[] {
  const own = getField(channel, "headers");
  const problems = (isObject(own) ? Object.keys(own) : [])
    .filter((name) => LOGIN_HEADER.test(name))
    .map((name): LoginProblem => ({
      path: ["headers", name],
      message: "would replace the client's own login",
    }));
  if (getField(channel, "proxy") !== undefined && url?.protocol === "http:") {
    const message = "would read the client's own login: a proxy is for an address with https";
    problems.push({ path: ["proxy"], message });
  }
  if (getField(channel, "probe") !== undefined)
    problems.push({ path: ["probe"], message: "a channel without a credential of its own cannot be probed" });
  return problems;
}

/** Null if it is none: another problem is reported. */
function readUrl(text: string): URL | null {
  try {
    return withoutVersion(readBaseUrl(text));
  } catch {
    return null;
  }
}

function checkGroups(tree: unknown, logins: readonly string[]): LoginProblem[] {
  const groups = getField(tree, "groups");
  return (isObject(groups) ? Object.entries(groups) : []).flatMap(([name, group]) => {
    const listed = getList(getField(group, "channels"));
    const login = logins.find((channel) => listed.includes(channel));
    if (login === undefined) return [];
    if (getField(group, "convert") === "true")
      return [
        {
          path: ["groups", name, "convert"],
          message: "a login is for the vendor's own tool, and nothing is converted for it",
        },
      ];
    if (listed.length === 1) return [];
    const message = `its channel "${login}" passes on the client's own login, so the group can have no other: there is no failover to another account`;
    return [{ path: ["groups", name, "channels"], message }];
  });
}
