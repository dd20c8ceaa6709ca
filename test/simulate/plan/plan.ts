// The plan of one run, as plain data: who will do what, and when. It is made from the seed before anything happens. A
// failure is shortened by removing parts of its plan.

export type Dialect = "messages" | "responses" | "chat" | "content" | "relay-messages" | "relay-content";
export type Platform = "messages" | "responses" | "content" | "relay";

export function platformOf(dialect: Dialect): Platform {
  if (dialect === "relay-messages" || dialect === "relay-content") return "relay";
  return dialect === "chat" ? "responses" : dialect;
}

export interface Plan {
  readonly seed: number;
  /** Wall clock at the beginning, milliseconds since 1970. */
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
  readonly platform: Platform;
  readonly priority: number;
  /** How often the gateway probes it; absent: never. */
  readonly probeSeconds?: number;
  /** What it does with the first requests for a WebSocket. It accepts later ones. Absent: it speaks only HTTP. */
  readonly sockets?: readonly UpgradePlan[];
}

export interface UpgradePlan {
  readonly kind: "accept" | "refuse" | "silence" | "wrong key" | "close at once";
  /** The status of a refusal. */
  readonly status: number;
  readonly delayMs: number;
  /** The first message is sent together with the 101. */
  readonly early: boolean;
}

/** The limits in USD that keys may have. */
export const USD_LIMITS = ["0.0005", "0.002", "0.01"];

export interface LimitPlan {
  readonly requestsPerMinute?: number;
  readonly concurrentRequests?: number;
  readonly usdPerDay?: string;
  readonly usdPerMonth?: string;
  readonly usdTotal?: string;
  readonly requestsPerMinutePerSession?: number;
  readonly usdPerSession?: string;
}

export interface ClientPlan {
  /** c0, c1, … */
  readonly name: string;
  /** The name of its key: its own name, or another client's. */
  readonly key: string;
  readonly dialect: Dialect;
  readonly startMs: number;
  /** On a WebSocket, the next request is sent before the answer to this one has come. */
  readonly pipelined: boolean;
  /** It retries as the official SDKs do. */
  readonly retries: number;
  readonly limits: LimitPlan;
  /** The number of sessions that its requests name in turn; absent: they name none. */
  readonly sessions?: number;
  /** It opens a WebSocket for its requests; absent: it speaks HTTP. */
  readonly socket?: SocketPlan | null;
  readonly requests: readonly RequestPlan[];
}

/** The session that a request names. All requests on a WebSocket have the session of its upgrade. */
export function sessionOf({ name, sessions = 0, socket }: ClientPlan, request: number): string | null {
  if (sessions === 0) return null;
  return `session-${name}-${socket ? 0 : request % sessions}`;
}

/** How a client uses a WebSocket. */
export interface SocketPlan {
  /** How many streams it names, on which responses run at the same time; 0: its messages name none. */
  readonly streams: number;
  /** It opens a new connection after this many responses. */
  readonly renewAfter: number;
  /** It sends a close frame before it ends a connection. */
  readonly closes: boolean;
}

export interface RequestPlan {
  /** Its number in the run, which is a part of the model's name. */
  readonly number: number;
  readonly stream: boolean;
  readonly promptBytes: number;
  /** Null: the client sets no cap. */
  readonly maxTokens: number | null;
  /** The pause after the previous answer. */
  readonly gapMs: number;
  readonly leave: LeavePlan | null;
  /** It pauses reading for `ms` after every `everyBytes`. */
  readonly slow: { readonly everyBytes: number; readonly ms: number } | null;
  readonly bad: BadKind | null;
  /** How long after its head its body comes; absent: with it. */
  readonly bodyMs?: number;
  /** The answers to the first attempts. Later ones are answered correctly. */
  readonly answers: readonly AnswerPlan[];
}

export interface LeavePlan {
  readonly how: "fin" | "rst";
  /** It leaves after this many bytes of the answer, or after this time, whichever comes first. */
  readonly afterBytes: number;
  readonly afterMs: number;
}

export const BAD_KINDS = [
  "not http",
  "broken body",
  "half a body",
  "bad json",
  "two types",
  "unknown key",
  "unknown path",
] as const;
export type BadKind = (typeof BAD_KINDS)[number];

export interface AnswerPlan {
  readonly kind:
    | "answer"
    | "error status"
    | "error event"
    | "silence"
    | "garbage"
    | "bodiless"
    | "close at once";
  readonly status: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly delayMs: number;
  readonly paceMs: number;
  readonly framing: "length" | "chunked" | "close";
  readonly cut: CutPlan | null;
  /** On a WebSocket: it closes the connection. */
  readonly closes: boolean;
  /** It announces this many bytes more than it sends, and never ends. */
  readonly missing: number;
  /** Some of its values are replaced by values of another kind, chosen by this number; absent: none is. */
  readonly mutated?: number;
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
      readonly kind: "channel off" | "channel on" | "broken config" | "config touched";
    }
  | { readonly kind: "key off"; readonly client: string; readonly ms: number }
  | { readonly kind: "limits changed"; readonly client: string; readonly limits: LimitPlan }
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
