// The pages of one browser share one live feed, because a browser opens only six connections to a host. Whoever has the lock
// reads the feed and tells the others. When that page is closed or hidden, the next one gets the lock. One that hangs loses
// it.

import type { ChannelView } from "../../api.ts";

const NAME = "gateway-console-feed";
const ALIVE_MS = 5000;
/** The page that reads the feed hangs if it says nothing for so long. */
const HUNG_MS = 15_000;

/** `hello`: a page that has just come asks for the state. `alive`: the page that reads the feed does not hang. */
type Message<State> =
  | { readonly kind: "hello" | "alive" }
  | { readonly kind: "state"; readonly state: State }
  | { readonly kind: "channel"; readonly channel: ChannelView };

export interface Pages<State> {
  /** From the page that reads the feed. Of another, nobody hears it. */
  tell(state: State): void;
  tellChannel(channel: ChannelView): void;
}

export interface Member<State> {
  /** The page leaves when it ends. */
  readonly signal: AbortSignal;
  readonly state: () => State;
  readonly show: (state: State) => void;
  readonly replaceChannel: (channel: ChannelView) => void;
  /** Another page reads the feed now, because this one hung. */
  readonly rejoin: () => void;
}

/** `read` is called when it is this page's turn to read the feed. */
export function joinPages<State>(member: Member<State>, read: () => Promise<void>): Pages<State> {
  const { signal, state, show, replaceChannel, rejoin } = member;
  // Without TLS on another host than this machine, a browser has no locks: each page reads the feed.
  if (!("locks" in navigator)) {
    void read();
    return { tell: () => {}, tellChannel: () => {} };
  }
  const pages = new BroadcastChannel(NAME);
  const say = (message: Message<State>): void => {
    if (!signal.aborted) pages.postMessage(message);
  };
  let reads = false;
  let timer = 0;
  const tell = (next: State): void => {
    if (reads) say({ kind: "state", state: next });
  };
  const left = new Promise<void>((resolve) => {
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      pages.close();
      resolve();
    });
  });
  const takeTurn = (how: LockOptions): void => {
    const turn = navigator.locks.request(NAME, how, async () => {
      reads = true;
      clearTimeout(timer);
      const signs = setInterval(() => say({ kind: "alive" }), ALIVE_MS);
      // Whatever it still waits for, the next page need not.
      await Promise.race([read(), left]);
      clearInterval(signs);
      reads = false;
    });
    turn.catch(() => {
      if (!signal.aborted) rejoin();
    });
  };
  const awaitSign = (): void => {
    clearTimeout(timer);
    timer = window.setTimeout(() => takeTurn({ steal: true }), HUNG_MS);
  };
  pages.addEventListener("message", ({ data }: MessageEvent<Message<State>>) => {
    if (signal.aborted) return;
    if (data.kind === "hello") tell(state());
    else if (data.kind === "channel") replaceChannel(data.channel);
    else if (!reads) {
      awaitSign();
      if (data.kind === "state") show(data.state);
    }
  });
  say({ kind: "hello" });
  awaitSign();
  takeTurn({ signal });
  return { tell, tellChannel: (channel) => say({ kind: "channel", channel }) };
}
