// A command, or a change from the console's page, that is refused with one sentence.

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
