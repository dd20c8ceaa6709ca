// Long work takes turns with everything else that waits for the event loop.

/** Resolves when the event loop has turned: what has arrived meanwhile was served first. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

const LONG_BYTES = 1024 * 1024;

/** Whether each step of work on so many bytes takes milliseconds, so that the event loop turns between two steps. */
export function isLongWork(bytes: number): boolean {
  return bytes > LONG_BYTES;
}
