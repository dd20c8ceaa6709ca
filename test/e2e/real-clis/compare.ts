// A tool's requests without the gateway are compared with those that arrive through it: paths, fields,
// betas and every member of the bodies, but for addresses, keys, and what differs from run to run.

import { TOOLS } from "../../../src/cli/tools/tools.ts";
import type { Difference } from "./differences.ts";
import type { Arrived } from "../../harness/upstreams/vendor.ts";

/** The places of differences: `header version`, `beta x`, `body system[].cache_control.scope`, `request GET /v1/models`. */
export function compareRequests(direct: readonly Arrived[], through: readonly Arrived[]): string[] {
  const [one, other] = [group(direct), group(through)];
  const places = new Set<string>();
  for (const kind of new Set([...one.keys(), ...other.keys()])) {
    const [before = [], after = []] = [one.get(kind), other.get(kind)];
    if (before.length !== after.length) places.add(`request ${kind}`);
    if (WITHOUT_INFERENCE.test(kind)) continue;
    before.slice(0, after.length).forEach((request, index) => {
      for (const place of compare(request, after[index] ?? request)) places.add(place);
    });
  }
  return [...places].toSorted();
}

/** Matches requests about profiles, settings, switches and telemetry. Only their number is compared. */
const WITHOUT_INFERENCE = /^\w+ \/(?:api|mcp-registry|backend-api\/(?!codex\/responses))/;

/** Groups requests by path, short bodies first: a tool may ask for a title before or after the answer. */
function group(requests: readonly Arrived[]): Map<string, Arrived[]> {
  const groups = new Map<string, Arrived[]>();
  for (const request of requests.toSorted((a, b) => a.body.length - b.body.length)) {
    const kind = `${request.method} ${request.target.split("?")[0]}`;
    groups.set(kind, [...(groups.get(kind) ?? []), request]);
  }
  // Lists of models count once: a tool asks again when its request is refused.
  const lists = [...groups].filter(([kind]) => kind.endsWith("/models"));
  for (const [kind, all] of lists) groups.set(kind, all.slice(0, 1));
  return groups;
}

const KEYS = new Set(["authorization", "x-api-key", "x-goog-api-key", "host"]);

function compare(direct: Arrived, through: Arrived): string[] {
  // Each version of Haiku takes other members in a request, so requests to two versions are not compared.
  const [asked, told] = [direct, through].map(({ body }) => /"model":"(claude-haiku-[^"]+)"/.exec(body)?.[1]);
  if (asked !== undefined && told !== undefined && asked !== told) return ["small model"];
  const [one, other] = [direct, through].map(({ fields }) => new Map(fields));
  const names = new Set([...(one?.keys() ?? []), ...(other?.keys() ?? [])].filter((name) => !KEYS.has(name)));
  const headers = [...names].flatMap((name) => {
    const [before = "", after = ""] = [one?.get(name), other?.get(name)];
    if (name === "anthropic-beta")
      return differ(before.split(","), after.split(",")).map((beta) => `beta ${beta}`);
    return normalise(before) === normalise(after) ? [] : [`header ${name}`];
  });
  const [query, queried] = [direct, through].map(({ target }) => normalise(target));
  const members = differ(listMembers(direct.body), listMembers(through.body)).map(
    (member) => member.split("\t")[0] ?? "",
  );
  return [...headers, ...(query === queried ? [] : ["query"]), ...members.map((place) => `body ${place}`)];
}

/** Returns what is left of `all` when each of `others` is taken out once. */
export function subtract(all: readonly string[], others: readonly string[]): string[] {
  const left = [...others];
  return all.filter((each) => {
    const index = left.indexOf(each);
    if (index >= 0) left.splice(index, 1);
    return index < 0;
  });
}

function differ(one: readonly string[], other: readonly string[]): string[] {
  return [...subtract(one, other), ...subtract(other, one)];
}

/** Lists each value with its place, and the order of the tools, because the order matters to caches. */
function listMembers(body: string): string[] {
  if (body === "") return [];
  const members: string[] = [];
  const visit = (value: unknown, place: string): void => {
    if (Array.isArray(value)) {
      const names = value.map((each) => (place === "tools" ? `.${Object(each).name}` : "[]"));
      if (place === "tools")
        members.push(`tools order\t${names.filter((name) => name !== ".Artifact").join()}`);
      value.forEach((each, index) => visit(each, place + names[index]));
    } else if (typeof value === "object" && value !== null)
      for (const [name, each] of Object.entries(value)) visit(each, place === "" ? name : `${place}.${name}`);
    else if (!OF_ANSWERS.test(place)) {
      const text = normalise(String(value));
      members.push(`${place}\t${OF_TALK.test(place) ? text.replaceAll(/\b[\w.-]*\d[\w.-]*\b/g, "N") : text}`);
    }
  };
  visit(JSON.parse(body), "");
  return members;
}

/** The members with ids that the simulated model makes. They differ from run to run, because it numbers its answers. */
const OF_ANSWERS =
  /\[\]\.(?:id|call_id|tool_use_id|signature)$|\.function(?:Call|Response)\.id$|thoughtSignature$/;
/** The members with texts of users and tools. In these, words with numbers are ids, times and durations. */
const OF_TALK = /^(?:messages|input|contents)\[\]\.(?:.*\.)?(?:text|output|content)$/;

/** Returns the text without the parts that differ from run to run: ids, times, and the folders of a test. */
function normalise(text: string): string {
  return (
    text
      .replaceAll(/\/[\w/.-]*gateway-test-\w+\/\w+/g, "FOLDER")
      .replaceAll(/-[\w-]*gateway-test-\w+-\w+/g, "FOLDER")
      .replaceAll(/[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/g, "UUID")
      .replaceAll(/\b(?:ses|msg)_\w{16,}/g, "ID")
      .replaceAll(/[\da-f]{24,}/g, "HASH")
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME")
      .replaceAll(/\b1\d{9}(?:\d{3})?(?:\.\d+)?\b/g, "TIME")
      .replaceAll(/\bcch=\w+/g, "cch=ID")
      .replace(/^a[\da-f]{16}$/, "AGENT")
      // Removes Claude Code's texts about the skills and the server of its Artifact tool.
      .replaceAll(/^- (?:artifact-.*|design: .*)\n/gm, "")
      .replaceAll(/^The following MCP servers .*\nclaude-artifacts\n\n.*\n\n/gm, "")
      // Codex asks for its models before or after it knows this part of its name.
      .replace(/ \(codex_exec; [\d.]+\)$/, "")
  );
}

/** Writes the table of docs/tools.md. */
export function formatDifferences(differences: readonly Difference[]): string {
  const rows = differences.map(({ tools, what, because }) => {
    const names = tools.map((name) => TOOLS.get(name)?.title ?? name).join(", ");
    return `| ${names === "" ? "all" : names} | ${what} | ${because} |`;
  });
  return ["| tool | with the gateway | because |", "|---|---|---|", ...rows].join("\n");
}

/** Finds the table in the text of docs/tools.md. */
export const DIFFERENCE_TABLE = /\| tool \| with the gateway \| because \|\n(?:\|.*\n)*\|.*/;
