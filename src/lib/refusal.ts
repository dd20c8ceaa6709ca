// A command, or a change from the console's page, that is refused with one sentence.

import { getErrorMessage } from "./errors.ts";

export class Refusal extends Error {
  override readonly name: string = "Refusal";
  /** Of the command. 1: it was right and failed. 2: it was wrong. */
  readonly exitStatus: number;
  constructor(message: string, exitStatus: number) {
    super(message);
    this.exitStatus = exitStatus;
  }
}

/** For a valid command that failed. */
export function fail(message: string): never {
  throw new Refusal(message, 1);
}

/** For wrong usage. */
export function refuseUsage(message: string): never {
  throw new Refusal(message, 2);
}

/** Reads what the user has given. The reader's error ends a sentence that begins with `start`. */
export function readGiven<T>(read: () => T, start: string): T {
  try {
    return read();
  } catch (error) {
    return refuseUsage(`${start}: ${getErrorMessage(error)}.`);
  }
}
