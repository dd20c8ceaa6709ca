import { expect, test } from "bun:test";
import { repeatResponse } from "../../../src/gateway/upstream/answer.ts";
import { Fields } from "../../../src/lib/http/fields.ts";

test("a repeated error has the remaining time in whole seconds, and at least one", () => {
  const refused = {
    status: 503,
    dialect: "messages",
    fields: new Fields(),
    body: Buffer.from("{}"),
  } as const;
  const candidate = { channel: Object.create(null), model: "m" };
  const waitOf = (ms: number) => repeatResponse(refused, candidate, ms).response.field("retry-after");
  expect([29_001, 1000, 1, 0].map(waitOf)).toEqual(["30", "1", "1", "1"]);
});
