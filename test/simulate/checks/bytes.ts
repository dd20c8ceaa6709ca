// Checks what a client received: the beginning of what its own upstream sent, or the gateway's own error. A reply that was
// cut must not look complete, and must not contain bytes of another request.

import type { Reply, Send } from "../clients/send.ts";
import type { World } from "../run.ts";
import { listMarks } from "../upstreams/answers.ts";
import { type Arrival, markOf } from "../upstreams/upstream.ts";

const PRIVATE = /cred-[a-z]+\d-|org-private|a=b/;

export function checkBytes(world: World, send: Send): void {
  const { reply } = send;
  if (reply === null) return;
  const text = reply.body.toString();
  const fields = [...reply.fields].map(([name, value]) => `${name}: ${value}`).join("\n");
  const all = `${fields}\n${text}`;
  checkId(world, send, reply);
  const own = `${send.name}a`;
  const foreign = listMarks(all).find((mark) => !mark.startsWith(own));
  if (foreign !== undefined && !isRepeatedError(world, send, reply, foreign))
    world.accuse("foreign bytes", `${send.name} received bytes of ${foreign}: ${text.slice(0, 200)}`);
  checkSecrets(world, send, reply.status, all);
  if (reply.status >= 300 || reply.status === 204) return;
  const sources = world.bySend.get(send.name) ?? [];
  checkSame(
    world,
    send,
    reply,
    sources.filter(({ body }) => body !== null),
  );
}

function checkSecrets(world: World, { name }: Send, status: number, text: string): void {
  const leaked = PRIVATE.exec(text);
  if (leaked !== null)
    world.accuse("secrets", `${name} received something secret (${leaked[0]}…), with status ${status}.`);
}

/** Checks that every request has its own id, whatever the answer is. */
function checkId(world: World, send: Send, { fields }: Reply): void {
  const id = fields.get("x-request-id");
  if (id === undefined) return;
  const other = world.ids.get(id);
  if (other !== undefined)
    world.accuse("ids", `${send.name} received the request id ${id}, and so did ${other}.`);
  world.ids.set(id, send.name);
}

/** While the only channel of a group is in cooldown, each client of the group gets the channel's last error. */
function isRepeatedError(world: World, { client }: Send, reply: Reply, foreign: string): boolean {
  const own = world.plan.channels.filter(({ platform }) => platform === client.dialect);
  const isError = (arrival: Arrival): boolean =>
    arrival.status >= 400 && markOf(arrival) === foreign && own.some(({ name }) => name === arrival.channel);
  return reply.status >= 400 && world.arrivals.some(isError);
}

function describeCut(whole: Buffer, got: Buffer): string {
  const missing = /^[\r\n]+$/.test(whole.toString("latin1", got.length))
    ? "only the end of its last event is missing"
    : "it was cut";
  return `ended cleanly and without an error, but ${missing}`;
}

/** The beginning of the error that the gateway adds to a stream that breaks. */
const TAIL = /^(?:\r?\n){0,2}(?:event: error\n|data: ?\{"error")/;

function checkSame(world: World, send: Send, reply: Reply, arrivals: readonly Arrival[]): void {
  const { body } = reply;
  const source = arrivals.find((arrival) => countSame(arrival, body) === body.length);
  if (source !== undefined) {
    const isCut = source.body?.length !== body.length;
    if (!isCut) send.whole = source;
    else if (send.end === "reply") accuse(world, send, reply, describeCut(source.body ?? body, body));
    return;
  }
  if (send.request.stream) checkTail(world, send, reply, arrivals);
  else accuse(world, send, reply, "is not a beginning of what its upstream sent");
}

/** Checks that only the gateway's own error follows the bytes of the upstream. */
function checkTail(world: World, send: Send, reply: Reply, arrivals: readonly Arrival[]): void {
  const { body } = reply;
  const longest = Math.max(0, ...arrivals.map((arrival) => countSame(arrival, body)));
  const tail = JSON.stringify(body.toString("latin1", longest).slice(0, 100));
  // The gateway's error begins before `longest` if its first bytes are also the upstream's next bytes.
  const begins = Array.from({ length: 120 }, (_, back) =>
    body.toString("latin1", Math.max(0, longest - back)),
  );
  if (begins.some((beginning) => TAIL.test(beginning))) return;
  if (!begins.some(isBeginningOfTail))
    accuse(world, send, reply, `continues with bytes that its upstream did not send: ${tail}`);
  if (send.end !== "reply") return;
  const source = arrivals.find((arrival) => isClosed(arrival, body));
  if (source === undefined)
    accuse(world, send, reply, `ended cleanly and without an error, but it was cut, and ${tail} was added`);
  else if (source.plan.cut === null) send.whole = source;
}

/** Whether only the line end of the last event was missing, and the gateway added it. */
function isClosed(arrival: Arrival, got: Buffer): boolean {
  const same = countSame(arrival, got);
  const hasNoMore = (bytes: Buffer): boolean => /^[\r\n]*$/.test(bytes.toString("latin1", same));
  return hasNoMore(got) && hasNoMore(arrival.body ?? got);
}

/** Whether the text is the first part of the gateway's error, after which the connection has broken. */
function isBeginningOfTail(text: string): boolean {
  const plain = text.replace(/^(?:\r?\n){0,2}(?:\r$)?/, "");
  return ["event: error\n", 'data: {"error"'].some((tail) => tail.startsWith(plain));
}

function countSame({ body }: Arrival, got: Buffer): number {
  if (body === null) return got.length;
  if (body.subarray(0, got.length).equals(got)) return got.length;
  let at = 0;
  while (at < body.length && at < got.length && body[at] === got[at]) at++;
  return at;
}

function accuse(world: World, send: Send, { status, body }: Reply, text: string): void {
  const { dialect } = send.client;
  const kind = send.request.stream ? "stream" : "answer";
  world.accuse(
    "bytes",
    `The ${kind} that ${send.name} received (${dialect}, ${status}, ${body.length} bytes) ${text}.`,
  );
}
