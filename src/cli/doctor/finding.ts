// What `gateway doctor` says of one thing that it looked at.

export interface Finding {
  /** What was looked at: `config`, `channel anthropic-main`. */
  readonly check: string;
  /** `note`: worth knowing, and nothing is wrong. */
  readonly state: "ok" | "note" | "wrong";
  readonly detail: string;
  /** The command that mends it, or the setting to change. */
  readonly mend: string | null;
}

export function good(check: string, detail: string): Finding {
  return { check, state: "ok", detail, mend: null };
}

export function note(check: string, detail: string, mend: string | null = null): Finding {
  return { check, state: "note", detail, mend };
}

export function bad(check: string, detail: string, mend: string): Finding {
  return { check, state: "wrong", detail, mend };
}
