// The plan of one run: everything that will be done, and by whom, as plain data. It is made
// from the seed before anything happens; a story is shrunk by taking parts of it away.

export type Dialect = "messages" | "responses" | "chat" | "content" | "relay-messages" | "relay-content";
export type Platform = "messages" | "responses" | "content" | "relay";

export function platformOf(dialect: Dialect): Platform {
  switch (dialect) {
    case "messages":
    case "responses":
    case "content":
      return dialect;
    case "chat":
      return "responses";
    case "relay-messages":
    case "relay-content":
      return "relay";
  }
}

export interface Plan {
  readonly seed: number;
  /** Wall clock at the beginning, milliseconds since 1970. */
  readonly wall: number;
  readonly sync: "batch" | "always" | "never";
  readonly rotateBytes: number | null;
  readonly rotateMonthly: boolean;
  readonly drainMs: number;
  readonly attempts: number;
  readonly maxFiles: number;
  readonly weather: { readonly latency: number; readonly window: number; readonly piece: number };
  readonly channels: readonly ChannelPlan[];
  readonly clients: readonly ClientPlan[];
  readonly happenings: readonly Happening[];
}

export interface ChannelPlan {
  readonly name: string;
  readonly platform: Platform;
  readonly priority: number;
  /** How the upstream treats connections at rest; 0: it keeps them. */
  readonly idleCloseMs: number;
  readonly idleClose: "fin" | "rst";
  /** Sends `keep-alive: timeout=N`; 0: it does not. */
  readonly keepAliveSeconds: number;
  /** The gateway probes it this often; absent: never. */
  readonly probeSeconds?: number;
  /** What becomes of one request for a WebSocket after another; later ones are accepted. Absent: it speaks HTTP only. */
  readonly sockets?: readonly UpgradePlan[];
}

export interface UpgradePlan {
  readonly kind: "accept" | "refuse" | "silence" | "wrong key" | "close at once";
  /** Of a refusal. */
  readonly status: number;
  readonly delayMs: number;
  /** The first message comes together with the 101. */
  readonly early: boolean;
}

export interface LimitPlan {
  readonly requestsPerMinute?: number;
  readonly concurrentRequests?: number;
  readonly usdPerDay?: string;
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
  /** One connection for all requests, or a new one for each. */
  readonly keepAlive: boolean;
  /** The next request is sent before the answer to this one has come. */
  readonly pipelined: boolean;
  /** As the official SDKs do. */
  readonly retries: number;
  /** The largest piece of a request that is sent at once; 0: whole. */
  readonly piece: number;
  readonly limits: LimitPlan;
  /** Its requests are of so many sessions in turn; absent: they name none. */
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
  /** Names of streams on which responses run at the same time; 0: no message names one. */
  readonly streams: number;
  /** The most bytes of a message in one frame; 0: each message is one. */
  readonly fragment: number;
  readonly pings: boolean;
  /** It opens a new connection after so many responses. */
  readonly renewAfter: number;
  /** It ends a connection with a close frame, or just ends it. */
  readonly closes: boolean;
}

export interface RequestPlan {
  /** Of all requests of the run: it is a part of the model's name. */
  readonly number: number;
  readonly stream: boolean;
  readonly promptBytes: number;
  /** Null: the client sets no cap. */
  readonly maxTokens: number | null;
  /** After the answer to the request before. */
  readonly gapMs: number;
  readonly leave: LeavePlan | null;
  /** Reads nothing for so long after every so many bytes. */
  readonly slow: { readonly everyBytes: number; readonly ms: number } | null;
  readonly bad: BadKind | null;
  readonly coding: "gzip" | "zstd" | null;
  /** The upstream goes on after its answer, and the client fetches the result; absent: it does not. */
  readonly background?: BackgroundPlan | null;
  /** For one attempt after another; those that follow are answered rightly. */
  readonly answers: readonly AnswerPlan[];
}

export interface BackgroundPlan {
  /** The upstream has finished so long after its answer. */
  readonly readyMs: number;
  /** The client asks for it this often. */
  readonly pollMs: number;
  /** The result is fetched once more, although it was got. */
  readonly again: boolean;
}

export interface LeavePlan {
  readonly how: "fin" | "rst";
  /** After so many bytes of the answer, or so many milliseconds, whichever is first. */
  readonly afterBytes: number;
  readonly afterMs: number;
}

export const BAD_KINDS = [
  "no host",
  "two lengths",
  "broken chunk",
  "bad json",
  "unknown key",
  "unknown path",
  "half a body",
  "expect",
] as const;
export type BadKind = (typeof BAD_KINDS)[number];

export interface AnswerPlan {
  readonly kind:
    | "answer"
    | "error status"
    | "error event"
    | "silence"
    | "garbage"
    | "bodiless with body"
    | "close at once";
  readonly status: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly delayMs: number;
  readonly paceMs: number;
  readonly framing: "length" | "chunked" | "close";
  readonly coding: "gzip" | "br" | "zstd" | null;
  readonly cut: CutPlan | null;
  readonly interim: number;
  /** After the answer, unasked: a whole second one. */
  readonly unasked: { readonly delayMs: number } | null;
  /** `connection: close`, and then it does. */
  readonly closes: boolean;
  /** Says this many bytes more than it sends, and goes on waiting. */
  readonly missing: number;
  /** Reads nothing of the request for so long. */
  readonly slowReadMs: number;
  /** A real provider's answer of the same kind, by this number; absent: one that the simulator writes. */
  readonly recorded?: number;
}

export interface CutPlan {
  /** Of all bytes of the answer, in parts of a thousand. */
  readonly atPerMille: number;
  readonly how: "fin" | "rst" | "stall";
}

export type Happening = { readonly atMs: number } & (
  | { readonly kind: "kill" | "cut power"; readonly afterSteps: number; readonly downMs: number }
  | { readonly kind: "stop"; readonly graceMs: number; readonly downMs: number }
  | { readonly kind: "second gateway" }
  | { readonly kind: "clock"; readonly byMs: number }
  | { readonly kind: "standstill"; readonly ms: number }
  | { readonly kind: "network changed" }
  | { readonly kind: "disk full"; readonly room: number; readonly ms: number }
  | {
      readonly kind: "disk fails";
      readonly writes: number;
      readonly syncs: number;
      readonly short: number;
      readonly ms: number;
    }
  | { readonly kind: "slow disk"; readonly syncMs: number; readonly ms: number }
  | { readonly kind: "ledger removed" | "ledger moved" | "sums removed" }
  | { readonly kind: "channel off" | "channel on" | "broken config" | "config touched" }
  | { readonly kind: "key off"; readonly client: string; readonly ms: number }
  | { readonly kind: "limits changed"; readonly client: string; readonly limits: LimitPlan }
  | { readonly kind: "command"; readonly channel: string; readonly action: "disable" | "enable" | "probe" }
  | {
      readonly kind: "reprice";
      readonly graceMs: number;
      readonly downMs: number;
      /** It is killed at this step; 0: it is not. */
      readonly afterSteps: number;
    }
  | {
      readonly kind: "upstream down";
      readonly channel: string;
      readonly how: "ECONNREFUSED" | "silent" | "ENOTFOUND";
      readonly ms: number;
    }
  | { readonly kind: "idle connections closed"; readonly channel: string; readonly how: "fin" | "rst" }
);
