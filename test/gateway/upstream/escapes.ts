// A secret as upstreams may write it: the ways that the gateway must recognise.

/** Writes one character so that a reader of some format gets it back. */
export type Escape = (character: string) => string;

const hex = (character: string, digits: number): string =>
  character.charCodeAt(0).toString(16).padStart(digits, "0");

const NAMES: Readonly<Record<string, string>> = {
  "+": "plus",
  "/": "sol",
  "=": "equals",
  _: "lowbar",
  "&": "amp",
  '"': "quot",
};

const json: Escape = (character) => `\\u${hex(character, 4)}`;
const url: Escape = (character) => `%${hex(character, 2)}`;
const htmlHex: Escape = (character) => `&#x${hex(character, 2)};`;
const named: Escape = (character) => (NAMES[character] === undefined ? character : `&${NAMES[character]};`);
const each = (text: string, escape: Escape): string => Array.from(text, escape).join("");

export const ESCAPES: Readonly<Record<string, Escape>> = {
  plain: (character) => character,
  "JSON's short form": (character) => JSON.stringify(character).slice(1, -1).replace("/", "\\/"),
  JSON: json,
  "JSON in upper case": (character) => `\\u${hex(character, 4).toUpperCase()}`,
  "JSON inside of JSON": (character) => `\\${json(character)}`,
  "JSON inside of JSON inside of JSON": (character) => `\\\\\\${json(character)}`,
  URL: url,
  "URL in upper case": (character) => `%${hex(character, 2).toUpperCase()}`,
  "a URL inside of a URL": (character) => url(character).replace("%", "%25"),
  "HTML's decimal": (character) => `&#${character.charCodeAt(0)};`,
  "HTML's decimal with zeros": (character) => `&#000${character.charCodeAt(0)};`,
  "HTML's hexadecimal": htmlHex,
  "HTML's names": named,
  "HTML inside of JSON": (character) => htmlHex(character).replace("&", "\\u0026"),
  "HTML inside of HTML": (character) => htmlHex(character).replace("&", "&amp;"),
  "a URL inside of HTML inside of JSON": (character) => url(character).replace("%", "\\u0026#x25;"),
  "a URL all of whose characters are JSON's": (character) => each(url(character), json),
  "a URL all of whose characters are HTML's": (character) => each(url(character), htmlHex),
  "a URL, its digits in JSON": (character) => url(character).replaceAll(/[0-9a-f]/g, json),
  "HTML, its digits in JSON": (character) => htmlHex(character).replaceAll(/\d|;/g, json),
  "HTML's decimal, its signs in a URL": (character) => `&%23${character.charCodeAt(0)}%3B`,
};

/** The base64 of a text that holds the secret, at a place that does not divide by three. */
export function encodeWithin(secret: string, before: string, alphabet: "base64" | "base64url"): string {
  return Buffer.from(`${before}${secret}`).toString(alphabet);
}

const NAMED: Readonly<Record<string, string>> = {
  amp: "&",
  plus: "+",
  sol: "/",
  equals: "=",
  lowbar: "_",
  quot: '"',
};

/** All that a reader of the text could get out of it, however it was escaped; written apart from the gateway's code. */
export function unescapeAll(text: string): string {
  let read = text;
  for (let layer = 0; layer < 5; layer += 1) {
    const before = read;
    read = read
      .replaceAll(/\\+u([0-9a-f]{4})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
      .replaceAll(/\\+([^\w\\])/g, "$1")
      .replaceAll(/%([0-7][0-9a-f])/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
      .replaceAll(/&#x([0-9a-f]+);/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
      .replaceAll(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)))
      .replaceAll(/&(amp|plus|sol|equals|lowbar|quot);/g, (_, name: string) => NAMED[name] ?? "");
    if (read === before) break;
  }
  return read;
}

let last = { shown: "", views: "" };

/** A text as it is, after unescaping, and what is in it as base64; in lower case. The last one is kept. */
function viewsOf(shown: string): string {
  if (last.shown === shown) return last.views;
  const read = unescapeAll(shown);
  const decoded = [...read.matchAll(/[A-Za-z0-9+/_-]{16,}/g)].flatMap(([run]) =>
    [0, 1, 2, 3].map((shift) => Buffer.from(run.slice(shift), "base64").toString("latin1")),
  );
  last = { shown, views: [shown, read, ...decoded].join("\n").toLowerCase() };
  return last.views;
}

/** Throws if `most` or more of the hidden characters are shown in a row: as they are, after unescaping, or in base64,
 *  in whichever case. */
export function expectSafe(shown: string, hidden: string, most = 12): void {
  const views = viewsOf(shown);
  for (let at = 0; at + most <= hidden.length; at += 1) {
    const piece = hidden.slice(at, at + most).toLowerCase();
    if (views.includes(piece)) throw new Error(`shown: ${piece} in ${shown}`);
  }
}
