// Finds the differences between the outcomes of two executables, each with its place.

import { fieldOf, type Fields, type Got, type Received } from "./wire.ts";
import type { Outcome, Section } from "./side.ts";
import type { SocketOutcome } from "./socket.ts";

const ABSENT = "(absent)";

export interface Difference {
  /** `traffic/SCENARIO.STEP/client/status`, `ledgers/LEDGER/COMMAND/rows[0].requests`, … */
  readonly where: string;
  readonly old: string;
  readonly new: string;
}

/** The ports of one side, with the name that replaces each port in texts. */
export type Ports = ReadonlyMap<string, string>;

const NEAR_S = 3600;

/** Replaces what always differs between the two sides: ids, times and ports. */
function neutral(text: string, ports: Ports): string {
  const now = Date.now() / 1000;
  const isNear = (seconds: number): boolean => Math.abs(seconds - now) < NEAR_S;
  return text
    .replaceAll(/(?:127\.0\.0\.1|localhost):(\d{4,5})\b/g, (all, port: string) => ports.get(port) ?? all)
    .replaceAll(/req_[0-9a-z]{20,}/g, "req_ID")
    .replaceAll(/0m[0-9a-z]{20,}/g, "ID")
    .replaceAll(/gw1\.[\w.-]+/g, "gw1.SEALED")
    .replaceAll(/inferred-[0-9a-f-]+/g, "inferred-ID")
    .replaceAll(/\bin \d\d? s\b/g, "in N s")
    .replaceAll(/\b1[5-9]\d{8}\b/g, (all) => (isNear(Number(all)) ? "1000000000" : all))
    .replaceAll(/\b1[5-9]\d{11}\b/g, (all) => (isNear(Number(all) / 1000) ? "1000000000000" : all))
    .replaceAll(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, (all) =>
      isNear(Date.parse(all) / 1000) ? "TIME" : all,
    );
}

/** Cuts both texts to the surroundings of their first difference. */
function around(a: string, b: string): readonly [string, string] {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at += 1;
  const cut = (text: string): string => {
    const found = text.slice(Math.max(0, at - 40), at + 120);
    return `${at > 40 ? "…" : ""}${found}${at + 120 < text.length ? "…" : ""}`;
  };
  return [cut(a), cut(b)];
}

export class Comparison {
  readonly differences: Difference[] = [];
  compared = 0;
  /** Steps whose clients got different statuses. */
  readonly #apart = new Set<string>();
  readonly #old: Ports;
  readonly #new: Ports;

  constructor(old: Ports, fresh: Ports) {
    this.#old = old;
    this.#new = fresh;
  }

  #note(where: string, old: string, fresh: string): void {
    const [a, b] = old.length + fresh.length > 300 ? around(old, fresh) : [old, fresh];
    this.differences.push({ where, old: a, new: b });
  }

  text(where: string, old: string, fresh: string): void {
    this.compared += 1;
    if (old === fresh) return;
    const [a, b] = [neutral(old, this.#old), neutral(fresh, this.#new)];
    if (a !== b) this.#note(where, a, b);
  }

  /** Compares two values member by member. `skip` names members whose values are not compared. */
  json(where: string, old: unknown, fresh: unknown, skip: RegExp = /^$/): void {
    if (Array.isArray(old) && Array.isArray(fresh)) {
      if (old.length !== fresh.length) this.text(`${where}.length`, `${old.length}`, `${fresh.length}`);
      for (const [at, each] of old.slice(0, fresh.length).entries())
        this.json(`${where}[${nameOf(each, at)}]`, each, fresh[at], skip);
    } else if (isObject(old) && isObject(fresh)) {
      for (const name of new Set([...Object.keys(old), ...Object.keys(fresh)]))
        if (!skip.test(name)) this.json(`${where}.${name}`, old[name], fresh[name], skip);
    } else this.text(where, JSON.stringify(old) ?? ABSENT, JSON.stringify(fresh) ?? ABSENT);
  }

  /** Compares converted answers. It ignores the order of members and the cuts of texts into events, which nobody promises. */
  #converted(where: string, old: string, fresh: string): void {
    const [a, b] = [neutral(old, this.#old), neutral(fresh, this.#new)];
    const [left, right] = [parse(a) ?? readEvents(a), parse(b) ?? readEvents(b)];
    this.json(where, left, right, /^sequence_number$/);
  }

  /** Compares the bytes of two bodies, or their members if both bodies are JSON. */
  body(where: string, old: Buffer, fresh: Buffer): void {
    this.compared += 1;
    if (old.equals(fresh)) return;
    const [a, b] = [neutral(old.toString("latin1"), this.#old), neutral(fresh.toString("latin1"), this.#new)];
    if (a === b) return;
    const [left, right] = [parse(a), parse(b)];
    const before = this.differences.length;
    if (left !== undefined && right !== undefined) this.json(where, left, right);
    if (this.differences.length === before) this.#note(where, a, b);
  }

  fields(where: string, old: Fields, fresh: Fields): void {
    const [a, b] = [gather(old), gather(fresh)];
    for (const name of new Set([...a.keys(), ...b.keys()])) {
      const [x = ABSENT, y = ABSENT] = [a.get(name), b.get(name)];
      if (TRANSPORT.test(name) || (RANDOM.has(name) && a.has(name) && b.has(name))) continue;
      if (name !== "retry-after" || !(Math.abs(Number(x) - Number(y)) <= SLACK_S))
        this.text(`${where}/${name}`, x, y);
    }
  }

  /** Compares two answers. False: they have different statuses, so nothing else can be compared. */
  #got(where: string, old: Got, fresh: Got): boolean {
    if (old.status !== fresh.status) {
      const [a, b] = [old, fresh].map(({ status, body }) => `${status} ${body.toString().slice(0, 140)}`);
      this.text(`${where}/status`, a!, b!);
      return false;
    }
    this.text(`${where}/end`, old.end, fresh.end);
    this.fields(`${where}/field`, old.fields, fresh.fields);
    // How much has arrived when the client leaves depends on the network.
    if (old.end === "left" && fresh.end === "left") return true;
    const isConverted = [old, fresh].some(
      ({ fields }) => fieldOf(fields, "x-gateway-converted") !== undefined,
    );
    if (isConverted) this.#converted(`${where}/body`, old.body.toString("utf8"), fresh.body.toString("utf8"));
    else this.body(`${where}/body`, old.body, fresh.body);
    return true;
  }

  #received(where: string, old: Received, fresh: Received): void {
    this.text(`${where}/request`, `${old.method} ${old.target}`, `${fresh.method} ${fresh.target}`);
    this.text(`${where}/left`, String(old.left), String(fresh.left));
    this.fields(`${where}/field`, old.fields, fresh.fields);
    this.body(`${where}/body`, old.body, fresh.body);
  }

  outcome(where: string, labels: readonly string[], old: Outcome, fresh: Outcome): void {
    for (const [index, label] of labels.entries()) {
      if (!this.#got(`traffic/${label}/client`, old.got[index]!, fresh.got[index]!)) {
        this.#apart.add(label);
        continue;
      }
      const [a = [], b = []] = [old.received[index], fresh.received[index]];
      this.text(`traffic/${label}/upstream/requests`, String(a.length), String(b.length));
      for (let at = 0; at < Math.min(a.length, b.length); at += 1)
        this.#received(`traffic/${label}/upstream/${at + 1}`, a[at]!, b[at]!);
    }
    this.text(`traffic/${where}/upstream/lists`, old.lists.join("\n"), fresh.lists.join("\n"));
  }

  socket(where: string, old: SocketOutcome, fresh: SocketOutcome): void {
    this.json(`${where}/messages`, old.messages, fresh.messages);
    this.json(`${where}/received`, old.received, fresh.received);
    this.text(`${where}/end`, old.end, fresh.end);
    this.fields(`${where}/handshake`, old.handshakes.flat(), fresh.handshakes.flat());
  }

  /** Compares the lines that have this label in the two ledgers. */
  lines(label: string, old: readonly Section[], fresh: readonly Section[]): void {
    if (this.#apart.has(label)) return;
    const where = `traffic/${label}`;
    this.text(`${where}/lines`, String(old.length), String(fresh.length));
    for (const [index, line] of old.entries()) {
      const other = fresh[index];
      if (other !== undefined) this.json(`${where}/line/${index + 1}:`, line, other, UNSTEADY);
    }
  }
}

/** In a stream, each of these members has a part of one longer text. */
const DELTAS = /^(?:delta|text|thinking|partial_json|content|reasoning_content|arguments)$/;

/** The events of a stream. If neighbours differ only in one member of DELTAS, they become one event. */
function readEvents(text: string): unknown[] {
  const joined: { event: string; data: unknown; frame: string; delta: string | null }[] = [];
  for (const lines of text.split(/\r?\n\r?\n/)) {
    const [event = "", line = ""] = lines.split(/(?<=^|\n)data: /);
    let delta: string | null = null;
    const mayGoOn = /delta|candidates/.test(line);
    const frame = JSON.stringify(parse(line), (name, value: unknown) => {
      if (name === "sequence_number") return 0;
      if (!mayGoOn || delta !== null || typeof value !== "string" || !DELTAS.test(name)) return value;
      delta = value;
      return "…";
    });
    const last = joined.at(-1);
    if (delta !== null && last?.frame === frame && last.delta !== null) last.delta += delta;
    else joined.push({ event, data: parse(frame) ?? line, frame, delta });
  }
  return joined.map(({ event, data, delta }) => ({ event, data, delta }));
}

/** The members of a line that differ from run to run: ids, times, durations, hashes. */
const UNSTEADY = /^(?:id|time|prev|first_byte_ms|duration_ms)$/;
/** By how many seconds two fields `retry-after` may differ, because the machine may be busy. */
const SLACK_S = 10;
/** Header fields with random values: only their presence is compared. */
const RANDOM: ReadonlySet<string> = new Set(["x-gateway-hop", "x-request-id"]);
const TRANSPORT = /^(?:connection|keep-alive|transfer-encoding|content-length|date)$/;

function gather(fields: Fields): Map<string, string> {
  const found = new Map<string, string>();
  for (const [name, value] of fields) {
    const key = name.toLowerCase();
    found.set(key, [...(found.get(key)?.split("\n") ?? []), value].toSorted().join("\n"));
  }
  return found;
}

const nameOf = (value: unknown, at: number): string =>
  isObject(value) && typeof value["name"] === "string" ? value["name"] : String(at);

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
