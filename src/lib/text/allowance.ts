// What is left of an allowance, for the page and the commands.

export interface Allowance {
  readonly kind: "window" | "rate";
  readonly name: string;
  /** The percentage of a window. Null for a rate. */
  readonly used: number | null;
  /** How much is left, and of how much, as whole numbers. */
  readonly left: string | null;
  readonly of: string | null;
  /** When all of it is there again. */
  readonly resets: string | null;
  /** When the upstream reported this. */
  readonly seen: string;
}

/** `5h 42%`, `49 of 50 requests`. */
export function writeAllowance({ kind, name, used, left, of }: Allowance): string {
  return kind === "window" ? `${name} ${used}%` : `${left} of ${of} ${name}`;
}
