// Long work is divided into turns of the event loop. What can wait comes last.

/** Resolves after the event loop has served what has arrived. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

const LONG_BYTES = 1024 * 1024;

/** Whether it takes milliseconds to work on this many bytes. */
export function isLongWork(bytes: number): boolean {
  return bytes > LONG_BYTES;
}

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

/** The moments of a turn in their order.
 *  A request leaves after its record is written. */
type Moment = "steps" | "records" | "requests" | "finished";

const waiting: Record<Moment, (() => void)[]> = { steps: [], records: [], requests: [], finished: [] };
let isScheduled = false;

/** Runs at this moment of the turn, or in the next turn if it has passed. */
export function atTurnEnd(moment: Moment, run: () => void): void {
  waiting[moment].push(run);
  if (!isScheduled) schedule();
}

/** Requests that wait here go on one after the other,
 *  because the same code is faster when it runs again. */
export function inStep(): Promise<void> {
  return new Promise((resolve) => atTurnEnd("steps", resolve));
}

function schedule(): void {
  isScheduled = true;
  // Code that a callback wakes runs before the next callback begins.
  setImmediate(() => runAll("steps"));
  setImmediate(() => runAll("records"));
  setImmediate(() => {
    runAll("requests");
    runAll("finished");
    runAll("records");
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
      reportError(error); // the others still run
    }
}
