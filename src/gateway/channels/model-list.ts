// The models that a group serves now: its channels' own lists, filtered by `models`, with aliases, without duplicates.

import type { Channel, Group } from "../../config/catalog.ts";
import { dialectOf } from "../../dialects/index.ts";
import type { ModelEntry } from "../../dialects/dialect.ts";
import { GatewayError } from "../../lib/errors.ts";
import type { Client } from "../../lib/http1/client/client.ts";
import { UpstreamFault } from "../../lib/http1/types.ts";
import { joinChunks, readUpTo } from "../upstream/answer.ts";
import { decodeResponse } from "../upstream/decode.ts";
import { overrideFields } from "../upstream/headers.ts";
import { resolveModel } from "../intake/match.ts";
import { redactBody, redactText } from "../upstream/redact.ts";
import { addressOf } from "../upstream/origin.ts";

export interface ModelLists {
  /** The list that the channel's upstream gives now. If it gives none: its last known list, or the names in the config. */
  ofChannel(channel: Channel, vendor: string): Promise<ChannelModels>;
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

const MAX_PAGES = 20;
const MAX_PAGE_BYTES = 16 * 1024 * 1024;

export function createModelLists(client: Client): ModelLists {
  /** By name and address, because a changed config can give a name to another upstream. */
  const lastKnown = new Map<string, readonly ModelEntry[]>();
  const pendingLists = new Map<Channel, Promise<ChannelModels>>();
  const fetchOrRecall = async (channel: Channel, vendor: string): Promise<ChannelModels> => {
    const id = `${channel.name} ${channel.baseUrl.href}`;
    try {
      const models = await fetchModels(client, channel, vendor);
      lastKnown.set(id, models);
      return { models, problem: null, short: false };
    } catch (error) {
      const known = lastKnown.get(id) ?? namesInConfig(channel);
      const problem = redactText(error instanceof Error ? error.message : String(error), channel);
      return { models: known, problem, short: error instanceof UpstreamFault && error.kind === "shortage" };
    }
  };
  return {
    ofChannel(channel, vendor) {
      const pending =
        pendingLists.get(channel) ??
        fetchOrRecall(channel, vendor).finally(() => pendingLists.delete(channel));
      pendingLists.set(channel, pending);
      return pending;
    },
  };
}

function namesInConfig(channel: Channel): ModelEntry[] {
  return (channel.models ?? []).filter((glob) => !glob.includes("*")).map((id) => ({ id, raw: null }));
}

async function fetchModels(client: Client, channel: Channel, vendor: string): Promise<ModelEntry[]> {
  const dialect = dialectOf(channel.platform);
  const models: ModelEntry[] = [];
  let query: string | null = "";
  for (let page = 0; query !== null && page < MAX_PAGES; page += 1) {
    const read = dialect.readList(await fetchPage(client, channel, vendor, query));
    models.push(...read.models);
    query = read.nextQuery;
  }
  return models;
}

async function fetchPage(client: Client, channel: Channel, vendor: string, query: string): Promise<string> {
  const { status, body } = await askPage(client, channel, vendor, query);
  if (status !== 200) throw new GatewayError("upstream_failed", `its model list has the status ${status}`);
  return body;
}

export interface ListAnswer {
  readonly status: number;
  /** The time of the upstream's clock. */
  readonly date: string | null;
  readonly body: string;
}

/** Fetches a page of an upstream's own list. The body can be anything if the status is not 200. */
export async function askPage(
  client: Client,
  channel: Channel,
  vendor: string,
  query: string,
): Promise<ListAnswer> {
  const { origin, basePath, deadlines } = addressOf(channel);
  const dialect = dialectOf(channel.platform);
  const fields = [
    ["accept", "application/json"],
    ["accept-encoding", "identity"],
    ...dialect.askFields,
    dialect.sign(channel.credential, vendor),
  ] as const;
  const { head } = client.send({
    origin,
    method: "GET",
    target: `${basePath}${dialect.listPath}${query === "" ? "" : `?${query}`}`,
    fields: overrideFields(fields, channel.headers),
    body: null,
    deadlines: {
      ...deadlines,
      firstByteMs: Math.min(deadlines.firstByteMs, MAX_LIST_WAIT_MS),
      idleMs: Math.min(deadlines.idleMs, MAX_LIST_WAIT_MS),
    },
  });
  const response = decodeResponse(await head);
  const { chunks, hasMore } = await readUpTo(response, MAX_PAGE_BYTES);
  if (hasMore) response.cancel();
  return {
    status: response.status,
    date: response.field("date") ?? null,
    body: new TextDecoder().decode(redactBody(joinChunks(chunks), channel)),
  };
}

/** Clients do not wait minutes for a list. */
const MAX_LIST_WAIT_MS = 10_000;

/** The models of a group in the order of their channels' lists. Throws if no list is known. */
export async function listGroup(
  group: Group,
  modelLists: ModelLists,
  vendor: string,
): Promise<ServedModel[]> {
  const lists = await Promise.all(group.channels.map((channel) => modelLists.ofChannel(channel, vendor)));
  const merged = new Map<string, ServedModel>();
  group.channels.forEach((channel, index) => {
    for (const entry of servedBy(channel, lists[index]?.models ?? [])) {
      const known = merged.get(entry.id);
      if (known === undefined) merged.set(entry.id, { entry, channels: [channel.name] });
      else known.channels.push(channel.name);
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
