// What is left of something that somebody gives, such as a plan: one form for all of it, on the page and in the commands.

export interface Allowance {
  readonly kind: "window" | "rate" | "balance" | "credit";
  /** `5h`; `requests`; a currency; `USD`. */
  readonly name: string;
  /** Percent of a window; null: it is none. */
  readonly used: number | null;
  /** Decimals: how much is left, and of how much. */
  readonly left: string | null;
  readonly of: string | null;
  /** ISO times: when it is whole again, and when the upstream said so. */
  readonly resets: string | null;
  readonly seen: string;
}

/** `5h 42%`, `49 of 50 requests`, `12.34 USD`, `$150 of $200`. */
export function writeAllowance({ kind, name, used, left, of }: Allowance): string {
  switch (kind) {
    case "window":
      return `${name} ${used}%`;
    case "rate":
      return `${left} of ${of} ${name}`;
    case "balance":
      return `${left} ${name}`;
    case "credit":
      return `$${left} of $${of}`;
  }
}
