// Long work takes turns with everything else that waits for the event loop.

/** Resolves when the event loop has turned: what has arrived meanwhile was served first. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

const LONG_BYTES = 1024 * 1024;

/** True if work on this number of bytes takes milliseconds for each step. The event loop then turns between two steps. */
export function isLongWork(bytes: number): boolean {
  return bytes > LONG_BYTES;
}
