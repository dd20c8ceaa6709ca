// THE REQUEST, read from top to bottom.

import type { Key } from "../config/catalog.ts";
import type { GatewayError } from "../lib/errors.ts";
import { authenticate } from "./intake/authenticate.ts";
import { openBill } from "./bill/bill.ts";
import type { Call } from "./intake/call.ts";
import { createErrand, releaseBody } from "./upstream/job.ts";
import { failover } from "./attempt/failover.ts";
import type { Gateway } from "./gateway.ts";
import { watchClient } from "./delivery/client-left.ts";
import { refuseReturn } from "./upstream/self-call.ts";
import { LISTS, match, requireAccess } from "./intake/match.ts";
import { answerModels } from "./channels/model-list.ts";
import { createPassage } from "./delivery/delivery.ts";
import { reportFault } from "./observe/observer.ts";
import { reportOwnAnswer, reportRefusal } from "./bill/request-record.ts";
import { refuse, toGatewayError } from "./intake/refuse.ts";
import { relay } from "./delivery/relay.ts";
import { readRequest } from "./intake/body.ts";
import { settleFailure } from "./bill/settle.ts";

export async function handle(call: Call, gateway: Gateway): Promise<void> {
  let key: Key | null = null;
  try {
    refuseReturn(call.exchange);
    key = authenticate(call, gateway.catalog, call.time);
    requireAccess(key, call.target.endpoint, gateway.catalog, call.time);
    if (!LISTS.has(call.target.endpoint.purpose)) return await serve(call, key, gateway);
    await answerModels(call, key, gateway);
    reportOwnAnswer(call, key, gateway);
  } catch (thrown) {
    reportRefusal(call, key, turnAway(call, thrown, gateway), gateway);
  }
}

async function serve(call: Call, key: Key, gateway: Gateway): Promise<void> {
  // The key and the prices are of one config, however long the body takes.
  const { prices } = gateway.catalog;
  const request = await readRequest(call, gateway.catalog);
  const route = match(key, request.model);
  const errand = createErrand(call, request);
  const bill = await openBill(errand, route, prices, gateway);
  const stopWatching = watchClient(errand, bill, gateway);
  try {
    const answer = await failover(errand, bill, gateway);
    releaseBody(errand);
    await relay(createPassage(answer, errand, bill, gateway));
  } catch (thrown) {
    settleFailure(bill, turnAway(call, thrown, gateway), gateway);
  } finally {
    stopWatching();
  }
}

function turnAway(call: Call, thrown: unknown, gateway: Gateway): GatewayError {
  const error = toGatewayError(thrown);
  if (error.code === "internal") reportFault(thrown, gateway.observer);
  refuse(call.exchange, error, call.target.endpoint.dialect, call.id);
  return error;
}
