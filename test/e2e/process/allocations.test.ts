// What a request allocates is the same on every machine, so it can be compared with what it was.

import { expect, test } from "bun:test";
import { findRegressions } from "../../bench/allocated/baseline.ts";
import { countAllocated } from "../../bench/allocated/exact.ts";
import { MAIN } from "../../bench/targets/targets.ts";

/** Timers allocate too. On a busy machine more of them run meanwhile, so a count can only be too high. */
const ATTEMPTS = 3;

test("a request and a stream allocate no more than the benchmark's baseline says", async () => {
  let regressions: string[] = [];
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    regressions = findRegressions(await countAllocated([MAIN], "requests"));
    if (regressions.length === 0) break;
  }
  expect(regressions).toEqual([]);
}, 120_000);
