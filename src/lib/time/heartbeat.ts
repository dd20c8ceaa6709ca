// One timer for all that is due every second. It does not keep the process alive.

const PERIOD_MS = 1000;

const beats = new Set<{ readonly run: () => void }>();
let timer: Timer | null = null;

/** Calling the result ends it. */
export function everySecond(run: () => void): () => void {
  const own = { run };
  beats.add(own);
  timer ??= setInterval(beat, PERIOD_MS).unref();
  return () => {
    beats.delete(own);
    if (beats.size > 0 || timer === null) return;
    clearInterval(timer);
    timer = null;
  };
}

function beat(): void {
  for (const { run } of beats) run();
}
