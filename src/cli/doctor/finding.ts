// One result of `gateway doctor`.

export interface Finding {
  /** The thing that was checked: `config`, `channel anthropic-main`. */
  readonly check: string;
  /** `note`: worth knowing, but not a problem. */
  readonly state: "ok" | "note" | "wrong";
  readonly detail: string;
  /** The command that fixes it, or the setting to change. */
  readonly fix: string | null;
}

export function good(check: string, detail: string): Finding {
  return { check, state: "ok", detail, fix: null };
}

export function note(check: string, detail: string, fix: string | null = null): Finding {
  return { check, state: "note", detail, fix };
}

export function bad(check: string, detail: string, fix: string): Finding {
  return { check, state: "wrong", detail, fix };
}
