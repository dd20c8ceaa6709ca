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

/** In this order: a request leaves when its record is written. */
type Moment = "records" | "requests" | "finished";

const waiting: Record<Moment, (() => void)[]> = { records: [], requests: [], finished: [] };
let isScheduled = false;

/** Runs it at the end of this turn; of the next one, if its moment has passed. */
export function atTurnEnd(moment: Moment, run: () => void): void {
  waiting[moment].push(run);
  if (!isScheduled) schedule();
}

function schedule(): void {
  isScheduled = true;
  setImmediate(() => runAll("records"));
  // Another callback: what awaits a record goes on between the two.
  setImmediate(() => {
    runAll("requests");
    runAll("finished");
    isScheduled = false;
    if (Object.values(waiting).some(({ length }) => length > 0)) schedule();
  });
}

function runAll(moment: Moment): void {
  const due = waiting[moment];
  waiting[moment] = [];
  for (const run of due)
    try {
      run();
    } catch (error) {
      reportError(error); // one that fails takes no other with it
    }
}
