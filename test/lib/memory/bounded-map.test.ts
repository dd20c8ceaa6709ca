import { expect, test } from "bun:test";
import { BoundedMap } from "../../../src/lib/memory/bounded-map.ts";

test("a bounded map keeps what was set last, in the order in which it was set", () => {
  const map = new BoundedMap<string, number>(3);
  for (const [index, name] of ["a", "b", "c", "a", "d"].entries()) map.set(name, index);
  expect([...map]).toEqual([
    ["c", 2],
    ["a", 3],
    ["d", 4],
  ]);
  map.delete("c");
  map.set("e", 5).set("f", 6);
  expect([...map.keys()]).toEqual(["d", "e", "f"]);
  expect(map.get("a")).toBeUndefined();
});
