// Turns of the event loop: long work takes turns with everything else, and what can wait is done together at their ends.

/** Resolves when the event loop has turned: what has arrived meanwhile was served first. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

const LONG_BYTES = 1024 * 1024;

/** True if work on this number of bytes takes milliseconds for each step. The event loop then turns between two steps. */
export function isLongWork(bytes: number): boolean {
  return bytes > LONG_BYTES;
}

/** Work that may stop after each step, so that the event loop turns before the next one. */
export type Steps<Result> = Generator<void, Result, void>;

export function runAtOnce<Result>(steps: Steps<Result>): Result {
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

export async function runInTurns<Result>(steps: Steps<Result>): Promise<Result> {
  let step = steps.next();
  while (step.done !== true) {
    await nextTurn();
    step = steps.next();
  }
  return step.value;
}

// Packets wait until the loop has read all sockets that have something, and leave together: the first one wakes the other
// side up, which costs as much as the rest of a write, and the others find it awake.

/** In this order: answers wait for nothing, and a request leaves when its record is written. */
type Moment = "answers" | "records" | "requests" | "finished";

const waiting: Record<Moment, (() => void)[]> = { answers: [], records: [], requests: [], finished: [] };
let isScheduled = false;

/** Runs it at the end of this turn; of the next one, if its moment has passed. */
export function atTurnEnd(moment: Moment, run: () => void): void {
  waiting[moment].push(run);
  if (!isScheduled) schedule();
}

function schedule(): void {
  isScheduled = true;
  setImmediate(() => runAll("answers", "records"));
  // Another callback: what awaits a record goes on between the two.
  setImmediate(() => {
    runAll("requests", "finished");
    isScheduled = false;
    if (Object.values(waiting).some(({ length }) => length > 0)) schedule();
  });
}

function runAll(first: Moment, second: Moment): void {
  for (const moment of [first, second]) {
    const due = waiting[moment];
    waiting[moment] = [];
    for (const run of due) runSafely(run);
  }
}

/** One that fails takes no other with it. */
function runSafely(run: () => void): void {
  try {
    run();
  } catch (error) {
    reportError(error);
  }
}
