// Reads scalars from their source text, so decimals are exact.
// No message repeats a value: it may be a secret in the wrong place.

import { formatDecimal, parseDecimal } from "../../lib/money.ts";
import { isLoopback } from "../proxy.ts";
import { createZone } from "../../lib/text/zone.ts";

function readForm(form: RegExp, problem: string): (text: string) => string {
  return (text) => {
    if (form.test(text)) return text;
    throw new RangeError(problem);
  };
}

export const readName = readForm(
  /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
  "a name is 1 to 64 ASCII letters, digits, dots, dashes or underscores, and begins with a letter or a digit",
);

export const readText = readForm(/./s, "is empty");

export const RECORDING_NAME = /^[A-Za-z0-9_-]{1,64}$/;

export const readRecordingName = readForm(
  RECORDING_NAME,
  "the name of a recording is 1 to 64 ASCII letters, digits, dashes or underscores",
);

const readPlainDecimal = readForm(
  /^\d{1,40}(\.\d{1,40})?$/,
  'expected a plain decimal number without sign or exponent, such as 0.8 or "1.25"',
);

/** Canonical: "1.250" → "1.25". */
export function readDecimal(text: string): string {
  return formatDecimal(parseDecimal(readPlainDecimal(text.trim())));
}

const readDigits = readForm(/^\d{1,15}$/, "expected a whole number");

export function readCount(text: string): number {
  return Number(readDigits(text));
}

const readTruth = readForm(/^(true|false)$/, "expected true or false");

export function readFlag(text: string): boolean {
  return readTruth(text) === "true";
}

const MS_PER_UNIT = new Map(Object.entries({ ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }));

export function readDuration(text: string): number {
  const [, count = "", unit = ""] = /^(\d{1,15}(?:\.\d+)?)\s*([a-z]*)$/.exec(text.trim()) ?? [];
  const factor = MS_PER_UNIT.get(unit);
  if (factor === undefined)
    throw new RangeError('expected a duration with its unit, such as "300s", "5m" or "500ms"');
  return Math.round(Number(count) * factor);
}

/** The runtime's timers fire at once above this. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export function readTimerDuration(text: string): number {
  const ms = readDuration(text);
  if (ms > MAX_TIMER_MS) throw new RangeError("must be shorter than 24 days");
  return ms;
}

function readAtLeast(leastMs: number, problem: string): (text: string) => number {
  return (text) => {
    const ms = readTimerDuration(text);
    if (ms < leastMs) throw new RangeError(problem);
    return ms;
  };
}

export const readTimeLimit = readAtLeast(1, "must be more than nothing");
export const readProbeInterval = readAtLeast(1000, "must be 1s or more: leave it out for no probes");

export function readSize(text: string): number {
  const [, count, prefix = "", binary] =
    /^(\d{1,12}(?:\.\d+)?)\s*(?:([kmg])(i)?b|b)?$/i.exec(text.trim()) ?? [];
  if (count === undefined) throw new RangeError('expected a size, such as "64MiB" or "1GiB"');
  const factor = (binary === undefined ? 1000 : 1024) ** " kmg".indexOf(prefix.toLowerCase() || " ");
  const bytes = Math.round(Number(count) * factor);
  if (bytes === 0) throw new RangeError("must be more than nothing");
  return bytes;
}

/** A date without a time means its midnight in UTC. */
export function readMoment(text: string): Date {
  const plain = text.trim();
  const [, day = "", clock = ""] =
    /^(\d{4}-\d\d-\d\d)(T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d))?$/.exec(plain) ?? [];
  const midnight = new Date(`${day}T00:00:00Z`);
  const moment = clock === "" ? midnight : new Date(plain);
  const isRealDay = !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(day);
  if (day !== "" && isRealDay && !Number.isNaN(moment.getTime())) return moment;
  throw new RangeError('expected a date, such as 2027-01-31 or "2027-01-31T12:00:00Z"');
}

export const readOtherPath = readForm(
  /^\/v1(?:beta)?(?:\/[\w@~-][\w@~.:=+,-]*)+$/,
  "expected a path of a version and names, such as /v1/files, without escapes or a final slash",
);

/** Only characters that a header can carry. */
export const readSecretText = readForm(
  /^[\x21-\x7e]+$/,
  "a secret has only visible ASCII characters, without spaces",
);

export function readHttpUrl(text: string): URL {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== "https:" && url.protocol !== "http:")) {
    throw new RangeError("expected a URL that begins with https:// or http://");
  }
  return url;
}

function readBareUrl(text: string, setting: string): URL {
  const url = readHttpUrl(text);
  if (url.username === "" && url.password === "") return url;
  throw new RangeError(`must not hold a user name or password: the secret belongs in \`${setting}\``);
}

/** Traces must not cross a network unencrypted. */
export function readTracesUrl(text: string): URL {
  const url = readBareUrl(text, "headers");
  if (url.protocol === "http:" && !isLoopback(url.hostname))
    throw new RangeError("must begin with https://, unless it is an address of this machine");
  if (url.pathname === "/") url.pathname = "/v1/traces";
  return url;
}

export function readBaseUrl(text: string): URL {
  const url = readBareUrl(text, "credential");
  if (url.search !== "" || url.hash !== "") throw new RangeError("must not hold a query or a fragment");
  url.pathname = url.pathname.replace(/\/+$/, "");
  return url;
}

/** Request paths have the API version already. */
export function withoutVersion(url: URL): URL {
  const bare = new URL(url);
  bare.pathname = url.pathname.replace(/\/v1(beta)?$/, "").replace(/\/+$/, "");
  return bare;
}

export function readOrigin(text: string): string {
  if (text === "*") return text;
  const url = readHttpUrl(text);
  if (url.pathname !== "/" || url.search !== "" || url.hash !== "" || url.username !== "") {
    throw new RangeError("an origin is scheme and host only, such as https://app.example");
  }
  return url.origin;
}

export function readHostName(text: string): string {
  if (/^[A-Za-z0-9._-]+$|^\[?[0-9A-Fa-f:.]+\]?$/.test(text) && !/^[\w.-]+:\d+$/.test(text))
    return text.toLowerCase();
  throw new RangeError("expected a host name without scheme and port");
}

export function readListenHost(text: string): string {
  return readHostName(text).replace(/^\[(.*)\]$/, "$1");
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const FRAMING = /^(host|connection|content-length|transfer-encoding|upgrade|keep-alive|te|trailer)$/;

export function readHeaderName(text: string): string {
  if (!TOKEN.test(text)) throw new RangeError("is not a header name");
  const name = text.toLowerCase();
  if (FRAMING.test(name)) throw new RangeError("is a header that the gateway writes itself");
  return name;
}

export function readHeaderValue(text: string): string {
  // oxlint-disable-next-line no-control-regex -- control characters would end the header line
  if (/[\x00-\x08\x0a-\x1f\x7f]|[^\x00-\xff]/.test(text))
    throw new RangeError("holds characters that a header cannot carry");
  return text.trim();
}

const readWord = readForm(
  /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/,
  "becomes part of a header's name: letters, digits and dashes only",
);

export function readVendor(text: string): string {
  return readWord(text).toLowerCase();
}

/** `system` stays as it is: finding the machine's zone takes long. */
export function readZone(text: string): string {
  try {
    if (text !== "system") createZone(text).toLocal(0);
    return text;
  } catch {
    throw new RangeError("expected a time zone such as Europe/Berlin, or system");
  }
}

const readSegment = readForm(
  /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/,
  "one path segment of letters, digits, dashes and underscores, without slashes",
);

const OWN_PATH =
  /^(console|api|healthz|metrics|messages|responses|chat|completions|embeddings|models|v\d+([a-z]+\d*)?)$/i;

export function readRelayPrefix(text: string): string {
  if (OWN_PATH.test(readSegment(text))) throw new RangeError(`would shadow the gateway's own path /${text}`);
  return text;
}
