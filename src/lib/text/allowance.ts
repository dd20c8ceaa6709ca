// What is left of an allowance, for the page and the commands.

export interface Allowance {
  readonly kind: "window" | "rate";
  /** `5h`, `requests`. */
  readonly name: string;
  /** The percentage of a window. Null for a rate. */
  readonly used: number | null;
  /** Decimals: how much is left, and of how much. */
  readonly left: string | null;
  readonly of: string | null;
  /** When it is full again, and when the upstream said so. */
  readonly resets: string | null;
  readonly seen: string;
}

/** `5h 42%`, `49 of 50 requests`. */
export function writeAllowance({ kind, name, used, left, of }: Allowance): string {
  return kind === "window" ? `${name} ${used}%` : `${left} of ${of} ${name}`;
}
