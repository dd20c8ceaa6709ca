// Commands that refusals advise, with the flag without which they would be refused themselves. Words only.

import type { Key, Plan } from "./catalog.ts";

/** For a plan that is not in force. */
export function adviseActivation({ name, until }: Plan, now: Date): string {
  return `gateway plans activate ${name}${until !== null && until <= now ? " --until DATE" : ""}`;
}

/** For a key that has expired. */
export function adviseRotation({ name }: Key): string {
  return `gateway keys rotate ${name} --expires 30d`;
}
