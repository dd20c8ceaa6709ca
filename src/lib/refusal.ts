// Why a command, or a change from the page, is refused.

import { messageOf } from "./errors.ts";

export class Refusal extends Error {
  override readonly name: string = "Refusal";
  /** 1: a valid command failed. 2: the command was wrong. */
  readonly exitStatus: number;
  constructor(message: string, exitStatus: number) {
    super(message);
    this.exitStatus = exitStatus;
  }
}

export function fail(message: string): never {
  throw new Refusal(message, 1);
}

export function refuseUsage(message: string): never {
  throw new Refusal(message, 2);
}

export function readGiven<T>(read: () => T, start: string): T {
  try {
    return read();
  } catch (error) {
    return refuseUsage(`${start}: ${messageOf(error)}.`);
  }
}
