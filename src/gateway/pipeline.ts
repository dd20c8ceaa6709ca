// The path of one request, from top to bottom. README.md in this folder has it in words.

import type { Key } from "../config/catalog.ts";
import type { Reservation } from "../lib/memory/memory-budget.ts";
import { admit } from "./intake/authenticate.ts";
import { openBill } from "./bill/bill.ts";
import { holdPrompt } from "./bill/miss.ts";
import type { ClientCall } from "./intake/call.ts";
import { identifyClient } from "./intake/client.ts";
import { createJob, releaseBody } from "./upstream/job.ts";
import { failover } from "./attempt/failover.ts";
import type { Gateway } from "./gateway.ts";
import { watchClient } from "./delivery/client-left.ts";
import { refuseOwnCall } from "./upstream/self-call.ts";
import { LISTS, findMatch } from "./intake/match.ts";
import { answerModels } from "./delivery/answer-models.ts";
import { createDelivery } from "./delivery/delivery.ts";
import { reportOwnAnswer, reportRefusal } from "./bill/request-record.ts";
import { requireOneModel } from "./intake/one-model.ts";
import { refuseCall } from "./intake/refuse.ts";
import { relay } from "./delivery/relay.ts";
import { readRequestBody, reserveBody } from "./intake/body.ts";
import { settleFailure } from "./bill/settle.ts";

export async function handle(call: ClientCall, gateway: Gateway): Promise<void> {
  try {
    refuseOwnCall(call.exchange);
    const key = admit(call, gateway.catalog);
    if (!LISTS.has(call.target.endpoint.purpose)) return await serve(call, key, gateway);
    await answerModels(call, key, gateway);
    reportOwnAnswer(call, gateway);
  } catch (thrown) {
    reportRefusal(call, refuseCall(call, thrown, gateway.observer), gateway);
  }
}

/** A large body waits for memory first. */
function serve(call: ClientCall, key: Key, gateway: Gateway): Promise<void> {
  const waiting = reserveBody(call, gateway.catalog, gateway.memory);
  if (waiting === null) return serveWithin(null, call, key, gateway);
  return waiting.then((memory) => serveWithin(memory, call, key, gateway).finally(memory.free));
}

async function serveWithin(
  memory: Reservation | null,
  call: ClientCall,
  key: Key,
  gateway: Gateway,
): Promise<void> {
  // Key and prices come from one config, even if a reload happens while the body arrives.
  const { prices } = gateway.catalog;
  const body = await readRequestBody(call, gateway.catalog, memory);
  const match = gateway.lists.markListed(findMatch(key, body.model));
  requireOneModel(body, match);
  const client = identifyClient(call, key, body.plain, gateway.inferredSessions);
  const job = createJob(call, client, body, match.group.platform);
  const bill = await openBill(job, match, prices, gateway);
  const stopWatching = watchClient(job, bill, gateway);
  try {
    const response = await failover(job, bill, gateway);
    bill.prompt = holdPrompt(job, response.response.status, gateway);
    releaseBody(job);
    memory?.free();
    await relay(createDelivery(response, job, bill, gateway));
  } catch (thrown) {
    settleFailure(bill, refuseCall(call, thrown, gateway.observer), gateway);
  } finally {
    stopWatching();
  }
}
