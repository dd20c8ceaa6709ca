// What a group serves now: its channels' own lists, filtered and aliased, merged without duplicates.

import type { Channel, Group, Key } from "../../config/catalog.ts";
import { dialectOf, listDialect } from "../../dialects/index.ts";
import type { ModelEntry } from "../../dialects/dialect.ts";
import { GatewayError } from "../../lib/errors.ts";
import type { Client } from "../../lib/http1/client/client.ts";
import { UpstreamFault } from "../../lib/http1/types.ts";
import { joinChunks, readUpTo } from "../upstream/answer.ts";
import type { ClientCall } from "../intake/call.ts";
import { decodeResponse } from "../upstream/decode.ts";
import type { Gateway } from "../gateway.ts";
import { overrideFields } from "../upstream/headers.ts";
import { resolveModel } from "../intake/match.ts";
import { redactBody, redactText } from "../upstream/redact.ts";
import { addressOf } from "../upstream/origin.ts";

export interface ModelLists {
  /** The models of a channel as its upstream lists them now, else as it last did, else as the config names them. */
  ofChannel(channel: Channel, vendor: string): Promise<ChannelModels>;
}

export interface ChannelModels {
  readonly models: readonly ModelEntry[];
  /** Why the upstream's list could not be had; null when it was. */
  readonly problem: string | null;
  /** That was the gateway's own want of files or ports. */
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
  /** By name and address: a channel may come to mean another upstream. */
  const lastKnown = new Map<string, readonly ModelEntry[]>();
  const asking = new Map<Channel, Promise<ChannelModels>>();
  const ask = async (channel: Channel, vendor: string): Promise<ChannelModels> => {
    const place = `${channel.name} ${channel.baseUrl.href}`;
    try {
      const models = await fetchModels(client, channel, vendor);
      lastKnown.set(place, models);
      return { models, problem: null, short: false };
    } catch (error) {
      const known = lastKnown.get(place) ?? namesInConfig(channel);
      const problem = redactText(error instanceof Error ? error.message : String(error), channel);
      return { models: known, problem, short: error instanceof UpstreamFault && error.kind === "shortage" };
    }
  };
  return {
    ofChannel(channel, vendor) {
      const pending = asking.get(channel) ?? ask(channel, vendor).finally(() => asking.delete(channel));
      asking.set(channel, pending);
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
  if (status !== 200) throw new GatewayError("upstream_failed", `its model list answered ${status}`);
  return body;
}

export interface ListAnswer {
  readonly status: number;
  /** The upstream's clock. */
  readonly date: string | null;
  readonly body: string;
}

/** A page of an upstream's own list, or whatever it answers instead. */
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
      firstByteMs: Math.min(deadlines.firstByteMs, LIST_PATIENCE_MS),
      idleMs: Math.min(deadlines.idleMs, LIST_PATIENCE_MS),
    },
  });
  const response = decodeResponse(await head);
  const { chunks, rest } = await readUpTo(response, MAX_PAGE_BYTES);
  if (rest) response.cancel();
  return {
    status: response.status,
    date: response.field("date") ?? null,
    body: new TextDecoder().decode(redactBody(joinChunks(chunks), channel)),
  };
}

/** Nobody waits minutes for a list, nor a quarter of an hour for its rest. */
const LIST_PATIENCE_MS = 10_000;

/** The models of a group, by id, sorted as their channels list them. Throws when nothing is known of any. */
export async function listGroup(
  group: Group,
  gateway: Pick<Gateway, "catalog" | "lists">,
): Promise<ServedModel[]> {
  const { vendor } = gateway.catalog;
  const lists = await Promise.all(group.channels.map((channel) => gateway.lists.ofChannel(channel, vendor)));
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
  const text = `No channel of the group "${group.name}" could be asked for its models (${reasons.join("; ")}).`;
  return lists.some(({ short }) => short)
    ? new GatewayError("unavailable", text, { retryAfterSeconds: 5 })
    : new GatewayError("upstream_failed", text);
}

/** GET of a list or of one model, in the shape that the key's group has on that path. */
export async function answerModels(call: ClientCall, key: Key, gateway: Gateway): Promise<void> {
  const { endpoint, model } = call.target;
  const dialect = listDialect(endpoint, key.group.platform);
  const served = await listGroup(key.group, gateway);
  const fields = [
    ["content-type", "application/json"],
    ["x-request-id", call.id],
  ] as const;
  if (model === null) {
    const entries = served.map(({ entry }) => entry);
    call.exchange.answer(200, fields, dialect.listBody(entries, new URLSearchParams(call.query)));
    return;
  }
  const found = served.find(({ entry }) => entry.id === model.id);
  if (found === undefined) {
    throw new GatewayError(
      "unknown_model",
      `The group "${key.group.name}" serves no model "${model.id}". \`gateway models --group ${key.group.name}\` lists what it serves.`,
    );
  }
  call.exchange.answer(200, fields, dialect.modelBody(found.entry));
}
