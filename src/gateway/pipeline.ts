// The path of one request, from top to bottom. README.md in this folder has it in words. Each step goes on at once where
// nothing has to be waited for.

import { GatewayError } from "../lib/errors.ts";
import { isLongWork, nextTurn } from "../lib/time/next-turn.ts";
import { sendRequest } from "./attempt/attempt.ts";
import { crossInTurns, takeCrossing } from "./attempt/forward.ts";
import { openBill } from "./bill/bill.ts";
import { readPrompt } from "./bill/miss.ts";
import { endUnbilled, failRequest } from "./bill/fail.ts";
import { reportOwnAnswer } from "./bill/request-record.ts";
import { answerModels } from "./deliver/answer-models.ts";
import { watchClient } from "./deliver/client-left.ts";
import type { Gateway } from "./gateway.ts";
import { admit } from "./intake/authenticate.ts";
import { readRequestBody, type RequestBody, reserveBody } from "./intake/body.ts";
import { identifyClient } from "./intake/client.ts";
import { secretsOf } from "./intake/secrets.ts";
import { findOwnLogin } from "./intake/login.ts";
import { type Candidate, findMatch, LISTS } from "./intake/match.ts";
import type { Request } from "./request.ts";
import { needsCrossing, planCrossings, requireServed } from "./upstream/crossing.ts";
import { keepLoginOut, refuseLogin } from "./upstream/login.ts";
import { refuseOwnCall } from "./upstream/self-call.ts";

type Step = (r: Request, gateway: Gateway) => void;

export function handle(r: Request, gateway: Gateway): void {
  gateway.finished.enter();
  run(begin, r, gateway);
}

function run(step: Step, r: Request, gateway: Gateway): void {
  try {
    step(r, gateway);
  } catch (thrown) {
    failRequest(r, thrown, gateway);
  }
}

function runLater(ready: Promise<unknown>, step: Step, r: Request, gateway: Gateway): void {
  ready.then(
    () => run(step, r, gateway),
    (thrown: unknown) => failRequest(r, thrown, gateway),
  );
}

function begin(r: Request, gateway: Gateway): void {
  const { catalog } = gateway;
  refuseOwnCall(r.exchange);
  admit(r, catalog);
  if (r.group.crosses) requireServed(r.group, r.target.endpoint);
  r.query = secretsOf(catalog).cleanQuery(r.query);
  gateway.recorder?.open(r);
  // Key and prices come from one config, even if a reload happens while the body arrives.
  r.overrides = catalog.prices;
  // The list of a plan depends on the login.
  const isOwnList = LISTS.has(r.target.endpoint.purpose) && !r.group.usesLogin;
  if (isOwnList) runLater(answerModels(r, gateway), endOwnAnswer, r, gateway);
  else awaitMemory(r, gateway);
}

function endOwnAnswer(r: Request, gateway: Gateway): void {
  endUnbilled(r, () => reportOwnAnswer(r, gateway), gateway);
}

/** A large body waits for memory first. */
function awaitMemory(r: Request, gateway: Gateway): void {
  const waiting = reserveBody(r, gateway.catalog, gateway.memory);
  if (waiting === null) return readBody(r, gateway);
  const keep = waiting.then((memory) => {
    r.memory = memory;
  });
  runLater(keep, readBody, r, gateway);
}

function readBody(r: Request, gateway: Gateway): void {
  const body = readRequestBody(r, gateway.catalog, { memory: r.memory, known: gateway.knownParts });
  if (body instanceof Promise) return runLater(keepBody(r, body), route, r, gateway);
  r.body = body;
  route(r, gateway);
}

async function keepBody(r: Request, arriving: Promise<RequestBody>): Promise<void> {
  r.body = await arriving;
  if (isLongWork(r.body.plain?.length ?? 0)) await nextTurn();
}

function route(r: Request, gateway: Gateway): void {
  const learning = gateway.lists.learn(r.key.group);
  if (learning === null) routeKnown(r, gateway);
  else runLater(learning, routeKnown, r, gateway);
}

function routeKnown(r: Request, gateway: Gateway): void {
  findRoute(r, gateway);
  const isCounted = r.target.endpoint.purpose === "count" && r.candidates[0]?.isConverted === true;
  if (isCounted) return runLater(countTokens(r, gateway), endOwnAnswer, r, gateway);
  const crossing = crossLong(r, gateway);
  if (crossing === null) openAndSend(r, gateway);
  else runLater(crossing, openAndSend, r, gateway);
}

function openAndSend(r: Request, gateway: Gateway): void {
  takeFirst(r, gateway);
  const opening = openBill(r, gateway);
  if (opening === null) send(r, gateway);
  else runLater(opening, send, r, gateway);
}

/** Null: it is not converted, or not long. */
function crossLong(r: Request, gateway: Gateway): Promise<void> | null {
  const first = findConverted(r);
  const isLong = first !== null && isLongWork(r.body.plain?.length ?? 0);
  return isLong ? crossInTurns(r, first, gateway) : null;
}

/** What cannot be converted for the only kind of channels is refused before anything is billed. */
function takeFirst(r: Request, gateway: Gateway): void {
  const first = findConverted(r);
  if (first !== null) takeCrossing(r, first, gateway);
}

function findConverted({ candidates: [first], target }: Request): Candidate | null {
  return first?.isConverted === true && target.endpoint.purpose === "generate" ? first : null;
}

async function countTokens(r: Request, gateway: Gateway): Promise<void> {
  const { answerCount } = await import("./attempt/answer-count.ts");
  await answerCount(r, gateway);
}

/** Finds the channels that can serve the request. */
export function findRoute(r: Request, gateway: Gateway): void {
  requireNoSecret(r.body.model, "`model`", gateway);
  requireNoSecret(r.path, "The path", gateway);
  r.login = findOwnLogin(r, gateway.catalog);
  r.secrets = secretsOf(gateway.catalog).forRequest(r);
  if (r.login !== null) refuseLogin(r);
  const match = gateway.lists.markListed(findMatch(r.key, r.body.model));
  r.model = match.model;
  r.candidates = match.candidates;
  const { plain, scan } = r.body;
  r.prompt = plain && scan && { bytes: plain, scan };
  identifyClient(r, r.key, r.prompt, gateway);
  if (r.login !== null) keepLoginOut(r);
  r.stream = r.body.stream;
  // Each channel gets the request in its own dialect when it is tried.
  if (r.group.crosses || needsCrossing(r.dialect.name, r.group.platform))
    r.candidates = planCrossings(r.group, r.target, r.candidates);
}

/** What goes upstream, and cannot be left out. */
function requireNoSecret(text: string | null, where: string, { catalog }: Gateway): void {
  if (text === null || !secretsOf(catalog).holds(text)) return;
  const what = `${where} holds a key of this gateway or a credential of one of its channels.`;
  throw new GatewayError("bad_request", what);
}

function send(r: Request, gateway: Gateway): void {
  r.held = true;
  watchClient(r, gateway);
  sendRequest(r, gateway);
  // The body is on its way, and nobody waits.
  r.sentPrompt = readPrompt(r, gateway);
}
