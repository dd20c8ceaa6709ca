import { expect, test } from "bun:test";
import { Fields } from "../../src/lib/http/fields.ts";
import { readCookies } from "../../src/web/guard.ts";

test.each([
  ["session=a", ["a"]],
  ["other=b; session=a", ["a"]],
  ["other=b;session=a; more=c", ["a"]],
  ["session=", [""]],
  ["session=x; session=a", ["x", "a"]],
  ["my_session=b; session=a", ["a"]],
  ["other=session=b; session=a", ["a"]],
  ["sessions=b", []],
  ["my_session=b", []],
  ["", []],
])("the cookies of a name are read from %p", (value, found) => {
  expect(readCookies({ fields: Fields.of([["cookie", value]]) }, "session")).toEqual(found);
});

test("the cookie is found in any of several fields", () => {
  const fields = Fields.of([
    ["cookie", "other=b"],
    ["x-cookie", "session=c"],
    ["cookie", "session=a"],
  ]);
  expect(readCookies({ fields }, "session")).toEqual(["a"]);
});

test("of more cookies of one name than a browser sends, the last ones count", () => {
  const value = Array.from({ length: 100 }, (_, index) => `session=${index}`).join("; ");
  expect(readCookies({ fields: Fields.of([["cookie", value]]) }, "session").slice(-2)).toEqual(["98", "99"]);
});
