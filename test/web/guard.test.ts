import { expect, test } from "bun:test";
import { Fields } from "../../src/lib/http1/fields.ts";
import { readCookie } from "../../src/web/guard.ts";

test.each([
  ["session=a", "a"],
  ["other=b; session=a", "a"],
  ["other=b;session=a; more=c", "a"],
  ["session=", ""],
  ["my_session=b; session=a", "a"],
  ["other=session=b; session=a", "a"],
  ["sessions=b", null],
  ["my_session=b", null],
  ["", null],
])("the cookie is read from %p", (value, found) => {
  expect(readCookie({ fields: Fields.of([["cookie", value]]) }, "session")).toBe(found);
});

test("the cookie is found in any of several fields", () => {
  const fields = Fields.of([
    ["cookie", "other=b"],
    ["x-cookie", "session=c"],
    ["cookie", "session=a"],
  ]);
  expect(readCookie({ fields }, "session")).toBe("a");
});
