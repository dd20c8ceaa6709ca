// The path of a request, from top to bottom. README.md has it in words.

import { estimateInputTokens } from "../billing/limits/reserve.ts";
import { listDialect } from "../dialects/index.ts";
import { GatewayError } from "../lib/errors.ts";
import type { Field } from "../lib/http/fields.ts";
import { NOTHING } from "../lib/memory/bytes.ts";
import { openBill } from "./bill/bill.ts";
import { readPrompt } from "./bill/miss.ts";
import { fail, finish } from "./bill/finish.ts";
import { listGroup } from "./channels/model-list.ts";
import { convertStream } from "./deliver/converted-stream.ts";
import { beginDelivery, noteLeft } from "./deliver/delivery.ts";
import { passStream } from "./deliver/passed-stream.ts";
import { convertWhole, passWhole } from "./deliver/whole.ts";
import type { Gateway } from "./gateway.ts";
import { admit, listOwnSecrets } from "./intake/authenticate.ts";
import { readRequestBody } from "./intake/body.ts";
import { readSender } from "./intake/client.ts";
import { type KnownSecrets, type Secrets, secretsOf } from "./intake/secrets.ts";
import { findOwnLogin } from "./intake/login.ts";
import { LISTS } from "../dialects/dialect.ts";
import { idFields } from "./intake/refuse.ts";
import { type ChannelResponse, type Ending, OWN_ANSWER, type Request } from "./request.ts";
import { convertFirst, needsConversion, planConversions, requireServed } from "./send/convert.ts";
import { sendRequest } from "./send/failover.ts";
import { refuseOwnCall } from "./upstream/address.ts";

export async function handle(r: Request, gateway: Gateway): Promise<void> {
  gateway.finished.enter();
  let ending: Ending;
  try {
    ending = await serve(r, gateway);
  } catch (thrown) {
    ending = fail(r, thrown, gateway);
  }
  finish(r, ending, gateway);
}

async function serve(r: Request, gateway: Gateway): Promise<Ending> {
  const { catalog } = gateway;
  const { purpose } = r.target.endpoint;
  refuseOwnCall(r.exchange);
  admit(r, gateway);
  if (r.group.mixesDialects) requireServed(r.group, r.target.endpoint);
  if (r.query !== "") r.query = secretsOf(catalog).cleanQuery(r.query);
  gateway.recorder.open(r);
  // Key and prices come from one config, even after a reload.
  r.overrides = catalog.prices;
  // With a login, the upstream gives its own list.
  if (LISTS.has(purpose) && !r.group.usesLogin) return answerModels(r, gateway);
  r.body = await readRequestBody(r, gateway);
  const learning = gateway.lists.learn(r.group);
  if (learning !== null) await learning;
  findRoute(r, gateway);
  const first = r.candidates[0];
  if (first?.isConverted === true && purpose === "count") return answerCount(r, gateway);
  // What cannot be converted is refused before billing.
  if (first?.isConverted === true && purpose === "generate") await convertFirst(r, first);
  r.exchange.onGone(() => leave(r, gateway));
  await openBill(r, gateway);
  r.cleared = true;
  r.sentPrompt = readPrompt(r, gateway);
  const answer = await sendRequest(r, gateway);
  return await deliver(r, answer, gateway);
}

/** Call it after `lists.learn`, which may wait. */
export function findRoute(r: Request, gateway: Gateway): void {
  const { catalog } = gateway;
  const known = secretsOf(catalog);
  const sent = listOwnSecrets(r.exchange);
  r.login = findOwnLogin(r, catalog);
  r.secrets = known.forRequest(sent, r.login);
  requireNoSecret(r.body.model ?? "", "`model`", r.secrets, known);
  requireNoSecret(r.target.path + r.query, "The path", r.secrets, known);
  r.candidates = gateway.lists.findCandidates(r.group, r.body.model);
  const sender = readSender(r, catalog, sent, r.prompt);
  r.client = gateway.inferredSessions.complete(sender, r.key.name, r.time);
  // Each channel gets the request in its own dialect when it is tried.
  if (r.group.mixesDialects || needsConversion(r.clientDialect.name, r.group.platform))
    r.candidates = planConversions(r.group, r.target, r.candidates);
  gateway.channels.prepare(r);
}

/** Refuses secrets in texts that go upstream and cannot be left out. */
function requireNoSecret(text: string, where: string, secrets: Secrets, known: KnownSecrets): void {
  if (!known.holds(text) && !secrets.holds(text)) return;
  throw new GatewayError("bad_request", `${where} holds a key, a credential or a login.`);
}

async function answerModels(r: Request, gateway: Gateway): Promise<Ending> {
  const { key, run } = r;
  // `gateway run --url` asks here, and so learns that its budget is spent.
  if (run?.isSpent === true)
    throw new GatewayError("limit_spent", `This run has spent its budget of $${run.budget}.`);
  const { endpoint, model } = r.target;
  const dialect = listDialect(endpoint, key.group.platform);
  const channels = key.group.channels.filter((channel) => !gateway.channels.of(channel).disabled);
  const served = await listGroup({ ...key.group, channels }, gateway.lists, dialect);
  const fields: Field[] = [["content-type", "application/json"], ...idFields(dialect, r.id)];
  const secrets = secretsOf(gateway.catalog).forRequest(listOwnSecrets(r.exchange), null);
  const answer = (body: string): Ending => {
    r.exchange.answer(200, fields, secrets.mask(Buffer.from(body)));
    return OWN_ANSWER;
  };
  if (model === null) {
    const entries = served.map(({ entry }) => entry);
    return answer(dialect.listBody(entries, new URLSearchParams(r.query)));
  }
  const found = served.find(({ entry }) => entry.id === model.id);
  if (found !== undefined) return answer(dialect.modelBody(found.entry));
  const text = `The group "${key.group.name}" serves no model "${model.id}". \`gateway models --group ${key.group.name}\` lists what it serves.`;
  throw new GatewayError("unknown_model", text);
}

/** Tools decide by this count when to compact. It is an estimate:
 *  the upstream has another dialect. */
async function answerCount(r: Request, gateway: Gateway): Promise<Ending> {
  await openBill(r, gateway);
  r.memory?.free();
  const { dialect } = r.target.endpoint;
  const tokens = estimateInputTokens(r.body.plain ?? NOTHING);
  const fields: Field[] = [
    ["content-type", "application/json"],
    ["x-gateway-estimated", "input_tokens"],
    ...idFields(dialect, r.id),
  ];
  r.exchange.answer(200, fields, dialect.countBody(tokens));
  return OWN_ANSWER;
}

function deliver(
  r: Request,
  { response, candidate, body }: ChannelResponse,
  gateway: Gateway,
): Promise<Ending> {
  beginDelivery(r, response, candidate, gateway);
  const { conversion } = r;
  if (conversion === null && r.streamed) return passStream(r, body, gateway);
  if (conversion === null) return passWhole(r, body, gateway);
  // Some upstreams always send a stream.
  const isStream = r.streamed && r.stream;
  return isStream ? convertStream(r, body, gateway) : convertWhole(r, body, conversion, gateway);
}

/** Cancels the upstream request of a client that left. If the request is billed,
 *  this waits for `on_disconnect.drain`, to get the usage. */
function leave(r: Request, { catalog, halt }: Gateway): void {
  if (r.endWait !== null) return r.endWait();
  noteLeft(r);
  const { drainMs } = catalog.onDisconnect;
  const cancel = (): void => r.upstream.cancel();
  if (drainMs === 0 || !r.open || halt.aborted) return cancel();
  const timer = setTimeout(cancel, drainMs);
  halt.addEventListener("abort", cancel);
  r.endWait = () => {
    clearTimeout(timer);
    halt.removeEventListener("abort", cancel);
  };
}
