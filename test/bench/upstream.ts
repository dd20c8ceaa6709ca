// The upstream of every target, in a process of its own. It answers with bytes
// made beforehand, as the prompt says: a JSON reply, a stream as fast as it is
// taken, or a paced stream whose events bear the time at which they were sent.
// Prints its port. Runs until its stdin ends, as it does when the benchmark dies.

import {
  type Kind,
  KINDS,
  MARK,
  NO_STAMP,
  PACE_MS,
  STAMP_DIGITS,
  writeJsonAnswer,
  writeStreamAnswer,
} from "./messages.ts";
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

/** Events of a paced stream; a slow one has as many and is left by its client before. */
const PACED_EVENTS = 50;
const HALVES_EVENTS = 100;
const STDIN = 0;
const FLOOD_EVENTS = 20_000;

interface Peer extends Watched {
  /** The request so far, while it is in pieces. */
  held: Buffer | null;
  /** Body bytes still to come of a request whose kind is known; Infinity when it comes in chunks. */
  missing: number;
  kind: Kind;
  /** The size of the last request: the next is mostly the same. */
  usual: number;
  unsent: Pinned | null;
  sent: number;
  /** The next event of a paced stream, and when it is due. */
  step: number;
  due: number;
}

const answers = {
  json: pin(writeJsonAnswer()),
  flood: pin(Buffer.concat(writeStreamAnswer(FLOOD_EVENTS, false))),
};
const paced = writeStreamAnswer(PACED_EVENTS, true).map(pinStep);
const short = writeStreamAnswer(HALVES_EVENTS, false);
const middle = short.length / 2;
const halves = [short.slice(0, middle), short.slice(middle)].map((half) => pinStep(Buffer.concat(half)));
const schedules = { paced, slow: paced, halves };
type Step = (typeof paced)[number];
const needles = KINDS.map((kind) => ({ kind, needle: Buffer.from(MARK + kind) }));
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
    usual: -1,
    unsent: null,
    sent: 0,
    step: -1,
    due: 0,
  };
}

function pinStep(bytes: Uint8Array) {
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
    answer(peer);
  } else {
    begin(peer, peer.held === null ? bytes : Buffer.concat([peer.held, bytes]));
  }
}

/** A request's first bytes: its length and its kind are to be found in them. */
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
  if (ended) {
    if (!chunked) peer.usual = all.length;
    answer(peer);
  } else {
    peer.missing = whole - all.length;
  }
}

function findKind(bytes: Buffer): Kind | null {
  for (const { kind, needle } of needles) if (bytes.includes(needle)) return kind;
  return null;
}

function answer(peer: Peer): void {
  const { kind } = peer;
  if (kind === "json" || kind === "flood") {
    peer.unsent = answers[kind];
    peer.sent = 0;
    send(peer, false);
    return;
  }
  peer.step = 0;
  peer.due = readMicros() + PACE_MS[kind] * 1000;
  running.add(peer);
  sendStep(peer, schedules[kind]);
}

/** `again`: the kernel has said that it takes more. */
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
    const { kind } = peer;
    if (peer.due > now || kind === "json" || kind === "flood") continue;
    peer.due += PACE_MS[kind] * 1000;
    sendStep(peer, schedules[kind]);
  }
}

/** Small enough for the kernel to take it whole; a peer that doesn't read so little has left. */
function sendStep(peer: Peer, steps: readonly Step[]): void {
  const step = steps[peer.step];
  peer.step += 1;
  if (step === undefined) return;
  if (peer.step === steps.length) running.delete(peer);
  if (step.stampAt >= 0) {
    step.bytes.write(Math.round(readMicros()).toString().padStart(STAMP_DIGITS, "0"), step.stampAt, "latin1");
  }
  sendSome(peer.fd, step, 0);
}
