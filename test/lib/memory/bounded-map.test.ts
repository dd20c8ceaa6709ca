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

test("a bounded map forgets the oldest entry after any changes, also after it was emptied", () => {
  const [map, model] = [new BoundedMap<number, number>(5), new Map<number, number>()];
  for (let step = 0; step < 5000; step += 1) {
    const key = (step * step + 3 * step) % 17;
    if (step % 1000 === 999) for (const each of [map, model]) each.clear();
    else if (step % 7 === 3) for (const each of [map, model]) each.delete(key);
    else {
      map.set(key, step);
      model.delete(key);
      model.set(key, step);
      const [oldest = 0] = model.keys();
      if (model.size > 5) model.delete(oldest);
    }
    expect([...map]).toEqual([...model]);
  }
});
