// The upstream of every target, in a process of its own. It answers with bytes
// made in advance, as the prompt says: a JSON reply, a stream as fast as the socket
// accepts it, or a paced stream whose events contain the time at which they were sent.
// Prints its port. Runs until its stdin ends, as it does when the benchmark dies.

import { writeJsonAnswer, writeStreamAnswer } from "./answers.ts";
import {
  EVENTS,
  type Kind,
  KINDS,
  MARK,
  NO_STAMP,
  PACE_MS,
  type PacedKind,
  type Shape,
  STAMP_DIGITS,
} from "./requests.ts";
import { BROKEN, openSet, READABLE, type Watched, WRITABLE } from "./socket-set.ts";
import {
  acceptFrom,
  closeSocket,
  inbox,
  listenOn,
  pin,
  type Pinned,
  readMicros,
  readSome,
  sendSome,
} from "./sockets.ts";

/** Events of a paced stream. A slow one has as many, but its client leaves earlier. */
const PACED_EVENTS = 25;
const HALVES_EVENTS = 100;
const STDIN = 0;
const FLOOD_EVENTS = 20_000;

interface Peer extends Watched {
  /** The request so far, while it is in pieces. */
  held: Buffer | null;
  /** Body bytes still to come of a request whose kind is known; Infinity when it comes in chunks. */
  missing: number;
  kind: Kind;
  shape: Shape;
  /** The size of the last request: the next is mostly the same. */
  usual: number;
  unsent: Pinned | null;
  sent: number;
  /** A paced stream: the events still to send, and when the next one is due. */
  steps: readonly Step[];
  step: number;
  paceMs: number;
  due: number;
}

type Step = Pinned & { readonly stampAt: number };
type Paced = Readonly<Record<PacedKind, readonly Step[]>>;
type Whole = Readonly<Record<Exclude<Kind, PacedKind>, Pinned>>;

function writeWhole(shape: Shape): Whole {
  return {
    json: pin(writeJsonAnswer(shape)),
    flood: pin(Buffer.concat(writeStreamAnswer(shape, FLOOD_EVENTS, false))),
    burst: pin(Buffer.concat(writeStreamAnswer(shape, EVENTS.burst, false))),
    turn: pin(Buffer.concat(writeStreamAnswer(shape, EVENTS.turn, false, readCache))),
  };
}

/** An agent's prompt is in the cache but for its end. */
function readCache(event: string): string {
  return event
    .replace('"cache_read_input_tokens":0', '"cache_read_input_tokens":41000')
    .replace('"cache_creation_input_tokens":0', '"cache_creation_input_tokens":900')
    .replace('"ephemeral_5m_input_tokens":0', '"ephemeral_5m_input_tokens":900');
}

function writePaced(shape: Shape): Paced {
  const paced = writeStreamAnswer(shape, PACED_EVENTS, true).map(pinStep);
  const short = writeStreamAnswer(shape, HALVES_EVENTS, false);
  const middle = short.length / 2;
  const halves = [short.slice(0, middle), short.slice(middle)].map((half) => pinStep(Buffer.concat(half)));
  return {
    paced,
    slow: paced,
    halves,
    events: writeSteps(shape, "events"),
    lasting: writeSteps(shape, "lasting"),
  };
}

function writeSteps(shape: Shape, kind: "events" | "lasting"): readonly Step[] {
  return writeStreamAnswer(shape, EVENTS[kind], false).map(pinStep);
}

const whole = {
  messages: writeWhole("messages"),
  responses: writeWhole("responses"),
  chat: writeWhole("chat"),
};
const paced = {
  messages: writePaced("messages"),
  responses: writePaced("responses"),
  chat: writePaced("chat"),
};
const mark = Buffer.from(MARK);
const HEAD_END = Buffer.from("\r\n\r\n");
const CHUNKS_END = Buffer.from("\r\n0\r\n\r\n");

const listener = listenOn(0);
const set = openSet<Peer>();
const running = new Set<Peer>();
set.add(openPeer(listener.fd));
set.add(openPeer(STDIN));
process.stdout.write(`${listener.port}\n`);
for (;;) {
  set.wait(waitTime(), (peer, events) => {
    if (peer.fd === STDIN) process.exit();
    if (peer.fd === listener.fd) set.add(openPeer(acceptFrom(listener.fd)));
    else if ((events & BROKEN) !== 0) leave(peer);
    else if ((events & WRITABLE) !== 0) send(peer, true);
    else if ((events & READABLE) !== 0) receive(peer);
  });
  if (running.size > 0) sendDue();
}

function openPeer(fd: number): Peer {
  return {
    fd,
    held: null,
    missing: 0,
    kind: "json",
    shape: "messages",
    usual: -1,
    unsent: null,
    sent: 0,
    steps: [],
    step: 0,
    paceMs: 0,
    due: 0,
  };
}

function pinStep(bytes: Uint8Array): Step {
  const pinned = pin(bytes);
  return { ...pinned, stampAt: pinned.bytes.indexOf(NO_STAMP) };
}

function leave(peer: Peer): void {
  running.delete(peer);
  set.remove(peer);
  closeSocket(peer.fd);
}

function receive(peer: Peer): void {
  const size = readSome(peer.fd);
  if (size <= 0) {
    leave(peer);
    return;
  }
  const bytes = inbox.subarray(0, size);
  if (peer.missing > 0) {
    peer.missing =
      peer.missing === Infinity && bytes.subarray(-7).equals(CHUNKS_END) ? 0 : peer.missing - size;
    if (peer.missing === 0) answer(peer);
  } else if (size === peer.usual && peer.held === null) {
    peer.kind = findKind(bytes) ?? "json";
    peer.shape = findShape(bytes);
    answer(peer);
  } else {
    begin(peer, peer.held === null ? bytes : Buffer.concat([peer.held, bytes]));
  }
}

/** A request's first bytes, which contain its length and its kind. */
function begin(peer: Peer, all: Buffer): void {
  const end = all.indexOf(HEAD_END);
  const head = end < 0 ? "" : all.toString("latin1", 0, end).toLowerCase();
  const chunked = head.includes("transfer-encoding: chunked");
  const length = Number(/content-length: *(\d+)/.exec(head)?.[1] ?? 0);
  const whole = chunked ? Infinity : end + HEAD_END.length + length;
  const ended = chunked ? all.subarray(-7).equals(CHUNKS_END) : all.length === whole;
  const kind = findKind(all);
  if (end < 0 || (kind === null && !ended)) {
    peer.held = Buffer.from(all);
    return;
  }
  peer.held = null;
  peer.kind = kind ?? "json";
  peer.shape = findShape(all);
  if (ended) {
    if (!chunked) peer.usual = all.length;
    answer(peer);
  } else {
    peer.missing = whole - all.length;
  }
}

function findKind(bytes: Buffer): Kind | null {
  const at = bytes.indexOf(mark);
  const initial = at < 0 ? undefined : bytes[at + mark.length];
  return KINDS.find((kind) => kind.charCodeAt(0) === initial) ?? null;
}

/** By the path's letter after `POST /v1/`. */
function findShape(bytes: Buffer): Shape {
  const letter = String.fromCharCode(bytes[9] ?? 0);
  if (letter === "r") return "responses";
  return letter === "c" ? "chat" : "messages";
}

function answer(peer: Peer): void {
  const { kind, shape } = peer;
  if (kind === "json" || kind === "flood" || kind === "burst" || kind === "turn") {
    peer.unsent = whole[shape][kind];
    peer.sent = 0;
    send(peer, false);
    return;
  }
  peer.steps = paced[shape][kind];
  peer.step = 0;
  peer.paceMs = PACE_MS[kind];
  peer.due = readMicros() + peer.paceMs * 1000;
  running.add(peer);
  sendStep(peer);
}

/** `again`: the kernel accepts more. */
function send(peer: Peer, again: boolean): void {
  if (peer.unsent === null) return;
  const taken = sendSome(peer.fd, peer.unsent, peer.sent);
  peer.sent += Math.max(0, taken);
  if (peer.sent === peer.unsent.bytes.length) {
    peer.unsent = null;
    if (again) set.watch(peer, READABLE);
  } else {
    if (!again) set.watch(peer, READABLE | WRITABLE);
  }
}

function waitTime(): number {
  if (running.size === 0) return -1;
  const now = readMicros();
  let wait = 1000;
  for (const peer of running) wait = Math.min(wait, (peer.due - now) / 1000);
  return Math.max(0, Math.ceil(wait));
}

function sendDue(): void {
  const now = readMicros();
  for (const peer of running) {
    if (peer.due > now) continue;
    peer.due += peer.paceMs * 1000;
    sendStep(peer);
  }
}

/** Small enough for the kernel to accept it whole; a peer that does not read even this has left. */
function sendStep(peer: Peer): void {
  const step = peer.steps[peer.step];
  peer.step += 1;
  if (step === undefined) return;
  if (peer.step === peer.steps.length) running.delete(peer);
  if (step.stampAt >= 0) {
    step.bytes.write(Math.round(readMicros()).toString().padStart(STAMP_DIGITS, "0"), step.stampAt, "latin1");
  }
  sendSome(peer.fd, step, 0);
}
