// A plan says as plain data who will do what in one run, and when. It is made from the seed before anything happens. A
// failure is shortened by removing parts of its plan.

/** Each client speaks the dialect of its channels' platform: the tests of conversions are in test/bridges. */
export const DIALECTS = ["messages", "content"] as const;
export type Dialect = (typeof DIALECTS)[number];

export interface Plan {
  readonly seed: number;
  /** What the wall clock shows when the run begins, in milliseconds since 1970. */
  readonly wall: number;
  readonly rotateMonthly: boolean;
  readonly drainMs: number;
  readonly attempts: number;
  readonly weather: {
    readonly latency: number;
    readonly window: number;
    readonly piece: number;
  };
  readonly channels: readonly ChannelPlan[];
  readonly clients: readonly ClientPlan[];
  readonly happenings: readonly Happening[];
}

export interface ChannelPlan {
  readonly name: string;
  readonly platform: Dialect;
  readonly priority: number;
}

/** The limits in USD that keys may have. */
export const USD_LIMITS = ["0.0005", "0.002", "0.01"];

export interface LimitPlan {
  readonly requestsPerMinute?: number;
  readonly concurrentRequests?: number;
  readonly usdPerDay?: string;
  readonly usdPerMonth?: string;
  readonly usdTotal?: string;
}

export interface ClientPlan {
  /** The client's name: c0, c1, … */
  readonly name: string;
  /** The name of the client's key: its own name, or another client's. */
  readonly key: string;
  readonly dialect: Dialect;
  readonly startMs: number;
  /** How often the client sends a request again, as the official SDKs do. */
  readonly retries: number;
  readonly limits: LimitPlan;
  readonly requests: readonly RequestPlan[];
}

export interface RequestPlan {
  /** The request's number in the run, which is a part of the model's name. */
  readonly number: number;
  readonly stream: boolean;
  readonly promptBytes: number;
  /** Null: the client sets no cap. */
  readonly maxTokens: number | null;
  /** The pause after the previous answer. */
  readonly gapMs: number;
  readonly leave: LeavePlan | null;
  /** The client pauses reading for `ms` after every `everyBytes`. */
  readonly slow: { readonly everyBytes: number; readonly ms: number } | null;
  readonly bad: BadKind | null;
  /** The answers to the first attempts. Later attempts are answered correctly. */
  readonly answers: readonly AnswerPlan[];
}

export interface LeavePlan {
  /** The client leaves after this many bytes of the answer, or after this time, whichever comes first. */
  readonly afterBytes: number;
  readonly afterMs: number;
}

export const BAD_KINDS = ["half a body", "bad json", "unknown key"] as const;
export type BadKind = (typeof BAD_KINDS)[number];

export interface AnswerPlan {
  readonly kind: "answer" | "odd answer" | "error status" | "error event" | "silence" | "close at once";
  readonly status: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly delayMs: number;
  readonly paceMs: number;
  readonly framing: "length" | "chunked" | "close";
  readonly cut: CutPlan | null;
}

export interface CutPlan {
  /** Where the answer is cut, in thousandths of its bytes. */
  readonly atPerMille: number;
  readonly how: "fin" | "rst" | "stall";
}

export type Trouble = "ECONNREFUSED" | "silent" | "ENOTFOUND";

export type Happening = { readonly atMs: number } & (
  | {
      readonly kind: "kill" | "cut power";
      readonly afterSteps: number;
      readonly downMs: number;
    }
  | { readonly kind: "stop"; readonly graceMs: number; readonly downMs: number }
  | { readonly kind: "clock"; readonly byMs: number }
  | { readonly kind: "standstill"; readonly ms: number }
  | { readonly kind: "disk full"; readonly room: number; readonly ms: number }
  | {
      readonly kind: "disk fails";
      readonly writes: number;
      readonly syncs: number;
      readonly short: number;
      readonly ms: number;
    }
  | { readonly kind: "slow disk"; readonly syncMs: number; readonly ms: number }
  | { readonly kind: "index removed" }
  | {
      readonly kind: "upstream down";
      readonly channel: string;
      readonly how: Trouble;
      readonly ms: number;
    }
);

export function hasBadDisk(plan: Plan): boolean {
  return plan.happenings.some(({ kind }) => kind === "disk fails" || kind === "disk full");
}
