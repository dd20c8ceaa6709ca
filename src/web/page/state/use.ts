// Hooks: the live feed, reloaded data, and the time.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { feed, type LiveState } from "./live.ts";
import { describeError, get } from "./request.ts";

export function useLive(): LiveState {
  const [state, setState] = useState(feed.state);
  useEffect(() => {
    const see = (): void => setState(feed.state());
    // The state may have changed before this effect ran.
    see();
    return feed.follow(see);
  }, []);
  return state;
}

export function useNow(everyMs: number): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

export interface LoadedData<T> {
  /** The last answer, also during the next load. */
  readonly data: T | null;
  /** `data` still answers the previous question. */
  readonly isCounting: boolean;
  readonly error: string | null;
  readonly tookMs: number;
  readonly load: () => void;
}

export function useData<T>(name: string): LoadedData<T> & { readonly set: (data: T) => void } {
  const [answer, setAnswer] = useState<{ readonly name: string; readonly data: T } | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [round, setRound] = useState(0);
  const [tookMs, setTook] = useState(0);
  useEffect(() => {
    const ended = new AbortController();
    const began = performance.now();
    get<T>(name, ended.signal).then(
      (data) => {
        if (ended.signal.aborted) return;
        setAnswer({ name, data });
        setTook(performance.now() - began);
        setError(null);
      },
      (failure: unknown) => {
        if (!ended.signal.aborted) setError(describeError(failure));
      },
    );
    return () => ended.abort();
  }, [name, round]);
  return {
    data: answer?.data ?? null,
    isCounting: error === null && answer !== null && answer.name !== name,
    error,
    tookMs,
    load: useCallback(() => setRound((before) => before + 1), []),
    set: useCallback((data: T) => setAnswer({ name, data }), [name]),
  };
}

export function useRetry(isPartial: boolean, afterMs: number, { data, load }: LoadedData<unknown>): void {
  useEffect(() => {
    if (!isPartial) return undefined;
    const timer = setTimeout(load, afterMs);
    return () => clearTimeout(timer);
  }, [data, isPartial, load]);
}

/** Returns a pause so long that loading takes at most a hundredth of the time. */
export function spaceOut(everyMs: number, tookMs: number): number {
  return Math.max(everyMs, 100 * tookMs);
}

export function useFresh(everyMs: number, load: () => void): void {
  const { requests, revision } = useLive();
  useAfterChange(requests[0]?.id, everyMs, load);
  useAfterChange(revision, 0, load);
}

export function useAfterChange(value: unknown, everyMs: number, act: () => void): void {
  const acted = useRef({ value, at: Date.now() });
  useEffect(() => {
    if (value === acted.current.value) return undefined;
    const timer = setTimeout(
      () => {
        acted.current = { value, at: Date.now() };
        act();
      },
      Math.max(0, acted.current.at + everyMs - Date.now()),
    );
    return () => clearTimeout(timer);
  }, [value, everyMs, act]);
}
