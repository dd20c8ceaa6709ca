// Tests of today's spending use the real clock: the day must not end while they run.

const DAY_MS = 86_400_000;
/** The longest time that a test of today's spending may take. */
const ROOM_MS = 30_000;

/** Resolves when no midnight (UTC) is near: at once, except in the last half minute of a day. */
export async function passMidnight(): Promise<void> {
  const left = DAY_MS - (Date.now() % DAY_MS);
  if (left < ROOM_MS) await Bun.sleep(left + 1);
}
