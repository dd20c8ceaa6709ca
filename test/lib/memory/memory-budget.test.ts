import { expect, test } from "bun:test";
import { MemoryBudget, type Reservation } from "../../../src/lib/memory/memory-budget.ts";

/** What has been granted, in order. */
function watch(budget: MemoryBudget) {
  const granted: string[] = [];
  const reserve = (name: string, bytes: number): Promise<Reservation> =>
    budget.reserve(bytes).then((reservation) => {
      granted.push(name);
      return reservation;
    });
  return { granted, reserve };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("memory is given until it is used up, then to those who waited longest", async () => {
  const budget = new MemoryBudget(100);
  const { granted, reserve } = watch(budget);
  const first = await reserve("first", 60);
  void reserve("second", 50);
  void reserve("third", 10);
  await turn();
  expect(granted).toEqual(["first"]);
  first.free();
  await turn();
  expect(granted).toEqual(["first", "second", "third"]);
  expect(budget.usedBytes).toBe(60);
});

test("memory that is not needed is given to others, and is not given back twice", async () => {
  const budget = new MemoryBudget(100);
  const { granted, reserve } = watch(budget);
  const first = await reserve("first", 100);
  void reserve("second", 30);
  first.shrink(70);
  await turn();
  expect(granted).toEqual(["first", "second"]);
  first.shrink(90);
  first.free();
  first.free();
  expect(budget.usedBytes).toBe(30);
});

test("a request for more than there is gets all of it, alone", async () => {
  const budget = new MemoryBudget(100);
  const { granted, reserve } = watch(budget);
  const small = await reserve("small", 1);
  const huge = reserve("huge", 1000);
  await turn();
  expect(granted).toEqual(["small"]);
  small.free();
  (await huge).free();
  expect(budget.usedBytes).toBe(0);
});
