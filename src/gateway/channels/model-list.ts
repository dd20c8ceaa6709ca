// The models that a group serves now.

import type { Channel, Group } from "../../config/catalog.ts";
import type { Dialect, ModelEntry } from "../../dialects/dialect.ts";
import { readModelList } from "../../dialects/listing.ts";
import { dialectOf } from "../../dialects/platforms.ts";
import { GatewayError, messageOf } from "../../lib/errors.ts";
import { Fields } from "../../lib/http/fields.ts";
import { type Upstream, UpstreamFault } from "../../lib/http/upstream.ts";
import { BoundedMap } from "../../lib/memory/bounded-map.ts";
import { type Candidate, findDefault, findMatch, isNamed, resolveModel } from "../intake/match.ts";
import { channelSecrets } from "../intake/secrets.ts";
import { endOfWait, fetchWhole } from "../upstream/fetch.ts";
import { addressOf, joinPath, overrideFields } from "../upstream/address.ts";

export interface ChannelModels {
  readonly models: readonly ModelEntry[];
  readonly problem: string | null;
  /** The gateway has run out of files or ports. */
  readonly isShort?: boolean;
}

export interface ServedModel {
  readonly entry: ModelEntry;
  readonly channels: string[];
}

interface Known {
  /** Lists by path, because each dialect has its own. */
  readonly lists: Map<string, readonly ModelEntry[]>;
  readonly pending: Map<string, Promise<ChannelModels>>;
  /** Null: the channel has given no list. */
  ids: ReadonlySet<string> | null;
  wasAsked: boolean;
}

const MAX_FOUND = 256;

export class ModelLists {
  readonly #client: Upstream;
  readonly #known = new Map<string, Known>();
  /** Candidates by group and model, until a list changes. */
  #found = new WeakMap<Group, BoundedMap<string | null, readonly Candidate[]>>();

  constructor(client: Upstream) {
    this.#client = client;
  }

  /** After a reload, another upstream may have the name. */
  #of({ name, baseUrl }: Channel): Known {
    return this.#known.getOrInsertComputed(`${name} ${baseUrl.href}`, () => ({
      lists: new Map(),
      pending: new Map(),
      ids: null,
      wasAsked: false,
    }));
  }

  ofChannel(channel: Channel, dialect: Dialect = dialectOf(channel.platform)): Promise<ChannelModels> {
    const { pending } = this.#of(channel);
    const renew = () => this.#fetch(channel, dialect).finally(() => pending.delete(dialect.listPath));
    return pending.getOrInsertComputed(dialect.listPath, renew);
  }

  async #fetch(channel: Channel, dialect: Dialect, until = endOfWait()): Promise<ChannelModels> {
    const known = this.#of(channel);
    const own = dialectOf(channel.platform);
    const named = (channel.models ?? []).filter((glob) => !glob.includes("*"));
    const recall = () => known.lists.get(dialect.listPath) ?? named.map((id) => ({ id, raw: null }));
    const onlyForLogins = "only a client with a login can see it";
    if (channel.usesLogin) return { models: recall(), problem: onlyForLogins };
    try {
      const models = await fetchModels({ client: this.#client, channel, dialect, until });
      if (channel.models !== null && !models.some((entry) => isServed(channel, entry))) {
        const last = recall();
        const problem = last.length > 0 ? null : "its `models` in the config leaves nothing of its list";
        return { models: last, problem };
      }
      known.lists.set(dialect.listPath, models);
      const others = dialect === own ? [] : (known.ids ?? []);
      known.ids = new Set([...others, ...models.map(({ id }) => id)]);
      this.#found = new WeakMap();
      return { models, problem: null };
    } catch (error) {
      if (dialect !== own) return await this.#fetch(channel, own, until);
      const problem = channelSecrets(channel).maskText(messageOf(error));
      const isShort = error instanceof UpstreamFault && error.kind === "shortage";
      return { models: recall(), problem, isShort };
    }
  }

  learn({ defaultModel, channels }: Group): Promise<unknown> | null {
    if (defaultModel === null) return null;
    const unknown = channels.filter((channel) => !this.#of(channel).wasAsked);
    if (unknown.length === 0) return null;
    for (const channel of unknown) this.#of(channel).wasAsked = true;
    return Promise.all(unknown.map((channel) => this.ofChannel(channel)));
  }

  /** Marks channels that list the model.
   *  If all lists lack it, the default model's channels are used. */
  findCandidates(group: Group, model: string | null): readonly Candidate[] {
    const found = this.#found.getOrInsertComputed(group, () => new BoundedMap(MAX_FOUND));
    let candidates = found.get(model);
    if (candidates !== undefined) return candidates;
    const match = findMatch(group, model);
    const isUnknown = this.#isUnknown(group, model, match);
    candidates = (isUnknown ? findDefault(group) : match).map((candidate) => {
      const isListed = this.#of(candidate.channel).ids?.has(candidate.model ?? "") === true;
      return isListed ? { ...candidate, isListed } : candidate;
    });
    found.set(model, candidates);
    return candidates;
  }

  #isUnknown(group: Group, model: string | null, candidates: readonly Candidate[]): boolean {
    if (group.defaultModel === null || model === null || isNamed(model, candidates)) return false;
    return group.channels.every((channel) => this.#of(channel).ids?.has(model) === false);
  }
}

function isServed(channel: Channel, { id }: ModelEntry): boolean {
  if (resolveModel(channel, id) !== undefined) return true;
  return [...channel.aliases, ...channel.aliasGlobs].some(([, model]) => model === id);
}

interface ListCall {
  readonly client: Pick<Upstream, "send">;
  readonly channel: Channel;
  readonly dialect?: Dialect;
  /** The end of the wait for all pages. */
  readonly until?: number;
}

async function fetchModels(call: ListCall): Promise<ModelEntry[]> {
  const { listFallbacks } = call.dialect ?? {};
  if (listFallbacks === undefined) return await fetchPages(call);
  try {
    const models = await fetchPages(call);
    if (models.length > 0) return models;
  } catch (error) {
    if (error instanceof UpstreamFault) throw error;
  }
  const lists = await Promise.allSettled(listFallbacks.map((dialect) => fetchPages({ ...call, dialect })));
  const models = lists.flatMap((list) => (list.status === "fulfilled" ? list.value : []));
  const failed = lists.find((list) => list.status === "rejected");
  if (models.length === 0 && failed !== undefined) throw failed.reason;
  return [...new Map(models.map((entry) => [entry.id, entry])).values()];
}

const MAX_PAGES = 20;
const MAX_PAGE_BYTES = 4 * 1024 * 1024;
/** Clients do not wait minutes for a list. */
const MAX_LIST_WAIT_MS = 10_000;

async function fetchPages(call: ListCall): Promise<ModelEntry[]> {
  const models: ModelEntry[] = [];
  let query: string | null = "";
  for (let page = 0; query !== null && page < MAX_PAGES; page += 1) {
    const { status, body } = await fetchListPage(call, query);
    if (status !== 200) throw new GatewayError("upstream_failed", `its model list has the status ${status}`);
    const read = readModelList(body);
    models.push(...read.models);
    query = read.nextQuery;
  }
  return models;
}

export async function fetchListPage(
  { client, channel, dialect = dialectOf(channel.platform), until }: ListCall,
  query = "",
) {
  const { origin, deadlines } = addressOf(channel);
  const hurry = (ms: number): number => Math.min(ms, MAX_LIST_WAIT_MS);
  const { connectMs, firstByteMs, idleMs } = deadlines;
  const fields = new Fields().addAll([
    ["accept", "application/json"],
    ["accept-encoding", "identity"],
    ...(dialect.ownRequestFields ?? []),
    dialect.sign(channel.credential),
  ]);
  const request = {
    origin,
    method: "GET",
    target: `${joinPath(channel, dialect.listPath)}${query === "" ? "" : `?${query}`}`,
    fields: overrideFields(fields, channel),
    body: null,
    deadlines: {
      connectMs: hurry(connectMs),
      firstByteMs: hurry(firstByteMs),
      idleMs: hurry(idleMs),
    },
  };
  const { response, body } = await fetchWhole(client, request, MAX_PAGE_BYTES, until);
  return {
    status: response.status,
    body: new TextDecoder().decode(channelSecrets(channel).mask(body)),
  };
}

export async function listGroup(
  group: Group,
  modelLists: Pick<ModelLists, "ofChannel">,
  dialect: Dialect = dialectOf(group.platform),
): Promise<ServedModel[]> {
  const lists = await Promise.all(
    // If the group mixes dialects, each channel is asked in its own dialect.
    group.channels.map((channel) => modelLists.ofChannel(channel, group.mixesDialects ? undefined : dialect)),
  );
  const merged = new Map<string, ServedModel>();
  group.channels.forEach((channel, index) => {
    for (const entry of listServed(channel, lists[index]?.models ?? [])) {
      const model = merged.getOrInsertComputed(entry.id, () => ({ entry, channels: [] }));
      model.channels.push(channel.name);
    }
  });
  const hasProblem = lists.some(({ problem }) => problem !== null);
  if (merged.size === 0 && hasProblem) throw explainNothing(group, lists);
  return [...merged.values()];
}

function listServed(channel: Channel, models: readonly ModelEntry[]): ModelEntry[] {
  const served = models.filter(({ id }) => resolveModel(channel, id) !== undefined);
  const byId = new Map(models.map((entry) => [entry.id, entry]));
  const named = new Set(served.map(({ id }) => id));
  for (const [alias, id] of channel.aliases)
    if (!named.has(alias)) served.push({ id: alias, raw: byId.get(id)?.raw ?? null });
  return served;
}

function explainNothing(group: Group, lists: readonly ChannelModels[]): GatewayError {
  const why = ({ name }: Channel, at: number) => `"${name}": ${lists[at]?.problem ?? "empty"}`;
  const reasons = group.channels.map(why).join("; ");
  const text = `No channel of the group "${group.name}" gave a list of its models (${reasons}).`;
  return lists.some(({ isShort }) => isShort)
    ? new GatewayError("unavailable", text, { retrySeconds: 5 })
    : new GatewayError("upstream_failed", text);
}
