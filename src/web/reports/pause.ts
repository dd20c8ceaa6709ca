// Streams go first: while one is open, a report is made in short pieces with a pause after each. A thread that runs on
// would keep the core of the gateway's thread for milliseconds, whatever its priority, because Linux lets a thread run for
// a while before another one may interrupt it.

/** About how long a stream may wait for a report on one core: ten lines. */
const PIECE_MS = 0.1;
/** The system makes it about 0.05 ms longer. */
const PAUSE_MS = 0.05;
/** Longer than the gateway's thread or another report usually runs. A report then still gets a tenth of a core, which is
 *  the share that its priority would give it. */
const LONG_PAUSE_MS = 1;

/** To be called after each line, or more often. `streams`: how many are open, as the gateway's thread counts them. */
export function createPause(streams: Int32Array): () => void {
  let until = 0;
  return () => {
    const open = Atomics.load(streams, 0);
    if (open === 0 || performance.now() < until) return;
    const began = performance.now();
    Atomics.wait(streams, 0, open, PAUSE_MS);
    const now = performance.now();
    const paused = now - began;
    // A pause is long where other programs want the core: then short pieces would help no stream, and a report would take
    // many times as long. After a shorter one, the gateway had work, so a longer piece would delay its next event.
    until = now + (paused < LONG_PAUSE_MS ? PIECE_MS : paused / 2);
  };
}
