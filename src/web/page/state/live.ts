// The live feed: an event stream from the gateway that reconnects by itself.

import type { ChannelView } from "../../../gateway/channels/view.ts";
import type { RequestRecord } from "../../../gateway/observe/observer.ts";
import type { About, LiveEvent, Notice, StreamRow } from "../../api.ts";
import { setZone } from "../parts/format.ts";
import { escapeMessages, forgetToken, readToken, Refused, send } from "./request.ts";

export type LiveConnection = "connecting" | "open" | "lost" | "signed out";

export interface StreamState extends StreamRow {
  readonly tokensPerSecond: number;
}

export interface LiveState {
  readonly connection: LiveConnection;
  readonly about: About | null;
  readonly streams: readonly StreamState[];
  /** Newest first. */
  readonly requests: readonly RequestRecord[];
  readonly channels: readonly ChannelView[];
  readonly spend: NonNullable<LiveEvent["spend"]> | null;
  /** Newest first. */
  readonly notices: readonly Notice[];
  readonly ledgerProblem: string | null;
  /** A new number means that the config has changed. */
  readonly revision: number | null;
}

const START: LiveState = {
  connection: "connecting",
  about: null,
  streams: [],
  requests: [],
  channels: [],
  spend: null,
  notices: [],
  ledgerProblem: null,
  revision: null,
};

interface Sample {
  readonly at: number;
  readonly tokens: number;
}

type Samples = Map<string, readonly Sample[]>;

/** A rate is the mean over this time, so that it does not jump. */
const RATE_MS = 3000;
const MAX_REQUESTS = 200;
const FIRST_WAIT_MS = 300;
const MAX_WAIT_MS = 5000;
/** The gateway sends something every five seconds.
 *  If it is silent for this time, it has stopped or hangs. */
const SILENCE_MS = 15_000;

export const feed = createFeed();

function createFeed() {
  let state = START;
  const followers = new Set<() => void>();
  const samples: Samples = new Map();
  let running: AbortController | null = null;
  const change = (part: Partial<LiveState>): void => {
    const next = { ...state, ...part };
    // Another run of the gateway may have another page.
    const isOtherRun = state.about !== null && next.about !== null && state.about.since !== next.about.since;
    if (next.about !== null && next.about.timezone !== state.about?.timezone) setZone(next.about.timezone);
    state = next;
    if (isOtherRun) location.reload();
    if (isOtherRun || next.connection === "signed out") running?.abort();
    for (const see of followers) see();
  };
  const apply = (event: LiveEvent): void => {
    const { about } = event;
    const before = about === undefined ? state : { ...START, about };
    change({ ...before, ...merge(before, event, samples), connection: "open" });
  };
  // Once the page is visible again, the state is old and must not look live.
  const stop = (): void => {
    running?.abort();
    if (state.connection !== "connecting") change({ connection: "connecting" });
  };
  const start = (): void => {
    stop();
    running = new AbortController();
    if (document.hidden) running.abort();
    else void stayConnected(running.signal, apply, change);
  };
  document.addEventListener("visibilitychange", () => {
    if (state.connection === "signed out") return;
    if (document.hidden) stop();
    else if (running?.signal.aborted === true) start();
  });
  return {
    state: () => state,
    follow: (see: () => void): (() => void) => {
      followers.add(see);
      return () => void followers.delete(see);
    },
    start,
    replaceChannel: (channel: ChannelView): void =>
      change({ channels: state.channels.map((each) => (each.name === channel.name ? channel : each)) }),
  };
}

/** Ends at `signal`, or when nobody is signed in. */
async function stayConnected(
  signal: AbortSignal,
  apply: (event: LiveEvent) => void,
  change: (part: Partial<LiveState>) => void,
): Promise<void> {
  let waitMs = FIRST_WAIT_MS;
  while (!signal.aborted) {
    const token = readToken();
    try {
      await readEvents(signal, (event) => {
        waitMs = FIRST_WAIT_MS;
        apply(event);
      });
    } catch (error) {
      if (!signal.aborted && error instanceof Refused && error.status === 401) {
        // Another tab may have signed in meanwhile.
        if (readToken() !== token) continue;
        forgetToken();
        change({ ...START, connection: "signed out" });
        return;
      }
    }
    if (signal.aborted) return;
    change({ connection: "lost", streams: [] });
    await pause(waitMs, signal);
    waitMs = Math.min(MAX_WAIT_MS, waitMs * 2);
  }
}

const DATA = "data: ";

async function readEvents(signal: AbortSignal, see: (event: LiveEvent) => void): Promise<void> {
  const silence = new AbortController();
  let timer = 0;
  const wait = (): void => {
    clearTimeout(timer);
    timer = window.setTimeout(() => silence.abort(), SILENCE_MS);
  };
  wait();
  try {
    const { body } = await send("live", { signal: AbortSignal.any([signal, silence.signal]) });
    if (body === null) return;
    const decoder = new TextDecoder();
    let text = "";
    const reader = body.getReader();
    for (;;) {
      const { value, done } = await reader.read();
      if (done || signal.aborted) return;
      wait();
      const events = (text + decoder.decode(value, { stream: true })).split("\n\n");
      text = events.pop() ?? "";
      for (const event of events)
        if (event.startsWith(DATA)) see(JSON.parse(event.slice(DATA.length), escapeMessages));
    }
  } finally {
    clearTimeout(timer);
  }
}

function merge(state: LiveState, event: LiveEvent, samples: Samples): Partial<LiveState> {
  const { requests, notices, streams, about: _, ...others } = event;
  return {
    ...others,
    ...(streams !== undefined && { streams: addRates(streams, samples) }),
    ...(requests !== undefined && {
      requests: [...requests.toReversed(), ...state.requests].slice(0, MAX_REQUESTS),
    }),
    ...(notices !== undefined && {
      notices: [...notices.toReversed(), ...state.notices].slice(0, MAX_REQUESTS),
    }),
  };
}

function addRates(streams: readonly StreamRow[], samples: Samples): StreamState[] {
  const at = performance.now();
  const open = new Set(streams.map(({ id }) => id));
  for (const id of samples.keys()) if (!open.has(id)) samples.delete(id);
  return streams.map((stream) => {
    const { id, tokens } = stream;
    const recent = (samples.get(id) ?? []).filter((sample) => at - sample.at <= RATE_MS);
    samples.set(id, [...recent, { at, tokens }]);
    const [first = { at, tokens }] = recent;
    const perMs = first.at === at ? 0 : Math.max(0, tokens - first.tokens) / (at - first.at);
    return { ...stream, tokensPerSecond: Math.round(perMs * 1000) };
  });
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
