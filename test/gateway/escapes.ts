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
const each = (text: string, escape: Escape): string => [...text].map(escape).join("");

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
  "a URL all of whose characters are JSON's": (character) => each(url(character), json),
  "a URL all of whose characters are HTML's": (character) => each(url(character), htmlHex),
};

/** The base64 of a text that holds the secret, at a place that does not divide by three. */
export function encodeWithin(secret: string, before: string, alphabet: "base64" | "base64url"): string {
  return Buffer.from(`${before}${secret}`).toString(alphabet);
}
