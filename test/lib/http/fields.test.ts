// The text of a head's fields, and what is cut from it.

import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { type Field, Fields, writeFields } from "../../../src/lib/http/fields.ts";

const name = fc.stringMatching(/^[A-Za-z0-9-]{1,12}$/);
const value = fc.stringMatching(/^(?:[!-~](?:[ -~\xff]{0,20}[!-~])?)?$/);
const blanks = fc.stringMatching(/^[ \t]{0,3}$/);
/** Names, values and the blanks around them. */
const lines = fc.array(fc.tuple(name, blanks, value, blanks), { maxLength: 12 });
const read = (text: string): Fields => Fields.read(Buffer.from(text, "latin1"), 0, text.length);

describe("the fields of a head", () => {
  test("are the lines that came, with lower-case names and one space before each value", () => {
    fc.assert(
      fc.property(lines, (came) => {
        const fields = read(came.map(([a, b, c, d]) => `${a}:${b}${c}${d}\r\n`).join(""));
        const expected = came.map(([a, , c]): Field => [a.toLowerCase(), c]);
        expect([...fields]).toEqual(expected);
        expect(fields.text).toBe(expected.map(([a, c]) => `${a}: ${c}\r\n`).join(""));
        for (const [a] of expected) {
          const values = expected.flatMap(([other, c]) => (other === a ? [c] : []));
          expect(fields.getAll(a)).toEqual(values);
          expect(fields.get(a)).toBe(values[0]);
        }
      }),
    );
  });

  test("can be copied under other names and without some of them, and added to", () => {
    const rename = (text: string): string | null =>
      text.length % 3 === 0 ? null : text.length % 3 === 1 ? text : `x-${text}`;
    fc.assert(
      fc.property(lines, (came) => {
        const copy = read(came.map(([a, , c]) => `${a}: ${c}\r\n`).join(""))
          .copy(rename)
          .add("last", "1");
        const kept = came.flatMap(([a, , c]): Field[] => {
          const renamed = rename(a.toLowerCase());
          return renamed === null ? [] : [[renamed, c]];
        });
        expect([...copy]).toEqual([...kept, ["last", "1"]]);
        expect([...copy.without(new Set(["last"]))]).toEqual(kept.filter(([other]) => other !== "last"));
      }),
    );
  });

  test("are sent without those of the framing, whether they were received or not", () => {
    const received = read("Content-Length: 5\r\nA: 1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n");
    for (const fields of [received, [...received]]) expect(writeFields(fields)).toBe("a: 1\r\n");
  });
});
