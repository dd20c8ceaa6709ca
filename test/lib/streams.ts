// Makes random event streams, and reads their events step by step as the standard says.

import * as fc from "fast-check";

export interface Event {
  readonly name: string;
  readonly data: string;
}

const line = fc.constantFrom(
  "data: x",
  "data:y",
  "data:  two spaces",
  "data",
  "data:",
  'data: {"usage":1}',
  'data: "é€😀"',
  "database: no",
  "event: a",
  "event",
  "event:b",
  ": a comment",
  "id: 1",
  "retry: 5",
  "",
);

/** Lines with any mix of line ends, with or without a byte order mark. */
export const streams = fc
  .tuple(fc.boolean(), fc.array(fc.tuple(line, fc.constantFrom("\n", "\r", "\r\n")), { maxLength: 40 }))
  .map(([mark, lines]) => `${mark ? "\ufeff" : ""}${lines.flat().join("")}`);

export const cuts = fc.array(fc.nat(400), { maxLength: 12 });

export function cutAt(text: string, offsets: readonly number[]): Uint8Array[] {
  const bytes = new TextEncoder().encode(text);
  const places = offsets.map((cut) => Math.min(cut, bytes.length)).toSorted((a, b) => a - b);
  return [...places, bytes.length].map((end, index) => bytes.subarray(places[index - 1] ?? 0, end));
}

/** Follows "interpreting an event stream" of the HTML standard, step by step, on a complete text. */
export function readByStandard(text: string): Event[] {
  const events: Event[] = [];
  let [data, name] = ["", ""];
  const lines = text.replace(/^\ufeff/, "").split(/\r\n|\r|\n/);
  for (const each of lines.slice(0, -1)) {
    const colon = each.indexOf(":");
    const field = colon < 0 ? each : each.slice(0, colon);
    const value = colon < 0 ? "" : each.slice(colon + 1).replace(/^ /, "");
    if (field === "event") name = value;
    if (field === "data") data += `${value}\n`;
    if (each !== "") continue;
    if (data !== "") events.push({ name, data: data.slice(0, -1) });
    [data, name] = ["", ""];
  }
  return events;
}
