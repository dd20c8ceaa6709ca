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

/** At the end of this turn, or of the next one. */
export function atTurnEnd(moment: Moment, run: () => void): void {
  waiting[moment].push(run);
  if (!isScheduled) schedule();
}

/** Waiting requests take their step one after the other:
 *  code that has just run is faster. */
export function inStep(): Promise<void> {
  return new Promise((resolve) => atTurnEnd("steps", resolve));
}

function schedule(): void {
  isScheduled = true;
  // Separate callbacks: code that awaits a moment runs before the next one.
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
