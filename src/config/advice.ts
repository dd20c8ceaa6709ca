// The commands that error messages suggest, with the flags that they need to succeed.

import type { Key, Plan } from "./catalog.ts";

/** For a plan that is not active. */
export function adviseActivation({ name, until }: Plan, now: Date): string {
  return `gateway plans activate ${name}${until !== null && until <= now ? " --until DATE" : ""}`;
}

/** For a key that has expired. */
export function adviseRotation({ name }: Key): string {
  return `gateway keys rotate ${name} --expires 30d`;
}
