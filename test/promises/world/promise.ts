// Tests of promises that are not built yet.

import { test } from "bun:test";

/** A promise that the program does not keep yet: the reason says what it does instead. The body is the test of the promise.
 *  As soon as it passes, this test fails: then `notBuilt` becomes `test`, and changed.ts gets the reason. */
export function notBuilt(title: string, reason: string, body: () => Promise<void>): void {
  test(`${title} [not built yet: ${reason}]`, async () => {
    const passed = await body().then(
      () => true,
      () => false,
    );
    if (passed)
      throw new Error(
        "This promise is built now: write `test` in place of `notBuilt`, and move the reason to changed.ts.",
      );
  });
}
