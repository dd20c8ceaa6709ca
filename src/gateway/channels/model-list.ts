// The models that a group serves now: its channels' own lists, filtered by `models`, with aliases, without duplicates.

import type { Channel, Group } from "../../config/catalog.ts";
import { dialectOf } from "../../dialects/index.ts";
import type { Dialect, ModelEntry } from "../../dialects/dialect.ts";
import { GatewayError, getErrorMessage } from "../../lib/errors.ts";
import { Fields } from "../../lib/http/fields.ts";
import { UpstreamFault } from "../../lib/http/faults.ts";
import { type Upstream } from "../../lib/http/upstream.ts";
import { nextTurn } from "../../lib/time/next-turn.ts";
import { fetchWhole } from "../upstream/fetch.ts";
import { overrideFields } from "../upstream/headers.ts";
import { type Candidate, findDefault, isNamed, type Match, resolveModel } from "../intake/match.ts";
import { channelSecrets } from "../intake/secrets.ts";
import { addressOf, joinPath } from "../upstream/origin.ts";

export interface ModelLists {
  /** The list that the channel's upstream gives now to clients of this dialect. If it gives none, or `models` filters out
   *  all of it: its last known list, or the names in the config. */
  ofChannel(channel: Channel, dialect?: Dialect): Promise<ChannelModels>;
}

export interface KnownLists extends ModelLists {
  /** Fetches the lists that decide whether a group's default model is used. Null: they are known, or decide nothing. */
  learn(group: Group): Promise<unknown> | null;
  /** Marks the candidates whose upstream lists the model, by the lists that have been fetched. If no channel lists it, those
   *  of the group's default model take their place. */
  markListed(match: Match): Match;
}

export interface ChannelModels {
  readonly models: readonly ModelEntry[];
  /** Why the upstream gave no list; null if it gave one. */
  readonly problem: string | null;
  /** The reason is that the gateway has run out of files or ports. */
  readonly short: boolean;
}

/** A model of a group, and the channels that serve it. */
export interface ServedModel {
  readonly entry: ModelEntry;
  readonly channels: string[];
}

/** True if each step of work on a list takes milliseconds. The event loop then turns between two steps. */
export function isLongList({ length }: readonly unknown[]): boolean {
  return length > 1000;
}

const NO_CREDENTIAL = "only a client with a login can see it";

function describeFiltered(models: readonly ModelEntry[]): ChannelModels {
  const problem = models.length > 0 ? null : "its `models` in the config leaves nothing of its list";
  return { models, problem, short: false };
}

const MAX_PAGES = 20;
const MAX_PAGE_BYTES = 16 * 1024 * 1024;

export function createModelLists(client: Upstream): KnownLists {
  const lastKnown = new Map<string, readonly ModelEntry[]>();
  const listedIds = new Map<string, ReadonlySet<string>>();
  const pendingLists = new Map<string, Promise<ChannelModels>>();
  /** The upstreams whose list was fetched for a group with a default model: a request waits for it once. */
  const asked = new Set<string>();
  const fetchOrRecall = async (source: ListSource): Promise<ChannelModels> => {
    const { channel } = source;
    const id = identifyList(source);
    const recall = (): readonly ModelEntry[] => lastKnown.get(id) ?? namesInConfig(channel);
    if (channel.usesLogin) return { models: recall(), problem: NO_CREDENTIAL, short: false };
    try {
      const models = await fetchModels(client, source);
      const isFilteredOut = channel.models !== null && !models.some((entry) => isServed(channel, entry));
      if (isFilteredOut) return describeFiltered(recall());
      lastKnown.set(id, models);
      const known = listedIds.get(identifyUpstream(channel));
      const ids = models.map((entry) => entry.id);
      listedIds.set(identifyUpstream(channel), new Set(source.isWhole ? ids : [...ids, ...(known ?? [])]));
      return { models, problem: null, short: false };
    } catch (error) {
      if (!source.isWhole) return await fetchOrRecall(wholeListOf(source));
      const problem = channelSecrets(channel).remove(getErrorMessage(error));
      const short = error instanceof UpstreamFault && error.kind === "shortage";
      return { models: recall(), problem, short };
    }
  };
  /** Nothing in the config names the model, and no channel lists it. Where a list is not known, it may be there. */
  const isUnknown = (match: Match): boolean => {
    const { group, model } = match;
    if (group.defaultModel === null || model === null || isNamed(match)) return false;
    const lists = group.channels.map((channel) => listedIds.get(identifyUpstream(channel)));
    return lists.every((ids) => ids?.has(model) === false);
  };
  return {
    ofChannel(channel, dialect = dialectOf(channel.platform)) {
      const source = { channel, dialect, isWhole: dialect === dialectOf(channel.platform) };
      const id = identifyList(source);
      const renew = () => fetchOrRecall(source).finally(() => pendingLists.delete(id));
      return pendingLists.getOrInsertComputed(id, renew);
    },
    learn({ defaultModel, channels }) {
      if (defaultModel === null) return null;
      const unknown = channels.filter((channel) => !asked.has(identifyUpstream(channel)));
      if (unknown.length === 0) return null;
      for (const channel of unknown) asked.add(identifyUpstream(channel));
      return Promise.all(unknown.map((channel) => this.ofChannel(channel)));
    },
    markListed(match) {
      if (listedIds.size === 0) return match;
      const candidates = (isUnknown(match) ? findDefault(match.group) : match.candidates).map(
        (candidate): Candidate => {
          const ids = listedIds.get(identifyUpstream(candidate.channel));
          return ids?.has(candidate.model ?? "") === true ? { ...candidate, isListed: true } : candidate;
        },
      );
      return { ...match, candidates };
    },
  };
}

/** One list of a channel: as clients of this dialect get it. */
interface ListSource {
  readonly channel: Channel;
  readonly dialect: Dialect;
  /** It has all models of the channel. */
  readonly isWhole: boolean;
}

function wholeListOf(source: ListSource): ListSource {
  return { ...source, dialect: dialectOf(source.channel.platform), isWhole: true };
}

/** With the address, because a changed config can give a name to another upstream. */
function identifyUpstream({ name, baseUrl }: Channel): string {
  return `${name} ${baseUrl.href}`;
}

function identifyList({ channel, dialect }: ListSource): string {
  return `${identifyUpstream(channel)} ${dialect.listPath}`;
}

function isServed(channel: Channel, entry: ModelEntry): boolean {
  if (resolveModel(channel, entry.id) !== undefined) return true;
  return [...channel.aliases, ...channel.aliasGlobs].some(([, model]) => model === entry.id);
}

function namesInConfig(channel: Channel): ModelEntry[] {
  return (channel.models ?? []).filter((glob) => !glob.includes("*")).map((id) => ({ id, raw: null }));
}

/** If an upstream has no list of its own, the lists of the dialects that it serves are requested, each as that dialect's
 *  own client does. Throws if it gives none of them. */
async function fetchModels(client: Upstream, source: ListSource): Promise<ModelEntry[]> {
  const { listFallbacks } = source.dialect;
  if (listFallbacks.length === 0) return await fetchPages(client, source);
  try {
    const models = await fetchPages(client, source);
    if (models.length > 0) return models;
  } catch (error) {
    if (error instanceof UpstreamFault) throw error;
  }
  const lists = await Promise.allSettled(
    listFallbacks.map((dialect) => fetchPages(client, { ...source, dialect })),
  );
  const models = lists.flatMap((list) => (list.status === "fulfilled" ? list.value : []));
  const failed = lists.find((list) => list.status === "rejected");
  if (models.length === 0 && failed !== undefined) throw failed.reason;
  return [...new Map(models.map((entry) => [entry.id, entry])).values()];
}

async function fetchPages(client: Upstream, source: ListSource): Promise<ModelEntry[]> {
  const models: ModelEntry[] = [];
  let query: string | null = "";
  for (let page = 0; query !== null && page < MAX_PAGES; page += 1) {
    const { status, body } = await requestPage(client, source, query);
    if (status !== 200) throw new GatewayError("upstream_failed", `its model list has the status ${status}`);
    const read = source.dialect.readList(body);
    models.push(...read.models);
    query = read.nextQuery;
    if (isLongList(models)) await nextTurn();
  }
  return models;
}

export interface ListPage {
  readonly status: number;
  /** The time of the upstream's clock. */
  readonly date: string | null;
  readonly body: string;
}

/** Fetches a page of an upstream's own list. The body can be anything if the status is not 200. */
export async function fetchListPage(client: Upstream, channel: Channel, query: string): Promise<ListPage> {
  return requestPage(client, { channel, dialect: dialectOf(channel.platform), isWhole: true }, query);
}

async function requestPage(
  client: Upstream,
  { channel, dialect }: ListSource,
  query: string,
): Promise<ListPage> {
  const { origin, deadlines } = addressOf(channel);
  const fields = Fields.of([
    ["accept", "application/json"],
    ["accept-encoding", "identity"],
    ...dialect.ownRequestFields,
    dialect.sign(channel.credential),
  ]);
  const request = {
    origin,
    method: "GET",
    target: `${joinPath(channel, dialect.listPath)}${query === "" ? "" : `?${query}`}`,
    fields: overrideFields(fields, channel.headers),
    body: null,
    deadlines: {
      ...deadlines,
      firstByteMs: Math.min(deadlines.firstByteMs, MAX_LIST_WAIT_MS),
      idleMs: Math.min(deadlines.idleMs, MAX_LIST_WAIT_MS),
    },
  };
  const { response, body } = await fetchWhole(client, request, MAX_PAGE_BYTES);
  return {
    status: response.status,
    date: response.field("date") ?? null,
    body: new TextDecoder().decode(channelSecrets(channel).mask(body)),
  };
}

/** Clients do not wait minutes for a list. */
const MAX_LIST_WAIT_MS = 10_000;

/** The models of a group in the order of their channels' lists. Throws if no list is known. */
export async function listGroup(
  group: Group,
  modelLists: ModelLists,
  dialect: Dialect = dialectOf(group.platform),
): Promise<ServedModel[]> {
  const lists = await Promise.all(
    group.channels.map((channel) =>
      // Each channel has its own kind of list.
      group.crosses ? modelLists.ofChannel(channel) : modelLists.ofChannel(channel, dialect),
    ),
  );
  if (lists.some(({ models }) => isLongList(models))) await nextTurn();
  const merged = new Map<string, ServedModel>();
  group.channels.forEach((channel, index) => {
    for (const entry of servedBy(channel, lists[index]?.models ?? [])) {
      merged.getOrInsertComputed(entry.id, () => ({ entry, channels: [] })).channels.push(channel.name);
    }
  });
  if (merged.size === 0 && lists.some((list) => list.problem !== null)) throw explainNothing(group, lists);
  return [...merged.values()];
}

function servedBy(channel: Channel, models: readonly ModelEntry[]): ModelEntry[] {
  const served = models.filter((entry) => resolveModel(channel, entry.id) !== undefined);
  const named = new Set(served.map((entry) => entry.id));
  for (const [alias, id] of channel.aliases) {
    const raw = models.find((entry) => entry.id === id)?.raw ?? null;
    if (!named.has(alias)) served.push({ id: alias, raw });
  }
  return served;
}

function explainNothing(group: Group, lists: readonly ChannelModels[]): GatewayError {
  const reasons = group.channels.map(
    (channel, index) => `"${channel.name}": ${lists[index]?.problem ?? "empty"}`,
  );
  const text = `No channel of the group "${group.name}" gave a list of its models (${reasons.join("; ")}).`;
  return lists.some(({ short }) => short)
    ? new GatewayError("unavailable", text, { retryAfterSeconds: 5 })
    : new GatewayError("upstream_failed", text);
}
