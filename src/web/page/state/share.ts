// The pages of one browser share one live feed, because a browser opens only six connections to a host. Whoever has the lock
// reads the feed and tells the others. When that page is closed or hidden, the next one gets the lock.

import type { ChannelRow } from "../../api.ts";

const NAME = "gateway-console-feed";

/** `hello`: a page that has just come asks for the state. */
type Message<State> =
  | { readonly kind: "hello" }
  | { readonly kind: "state"; readonly state: State }
  | { readonly kind: "channel"; readonly channel: ChannelRow };

export interface Pages<State> {
  /** From the page that reads the feed. Of another, nobody hears it. */
  tell(state: State): void;
  tellChannel(channel: ChannelRow): void;
}

export interface Member<State> {
  /** The page leaves when it ends. */
  readonly signal: AbortSignal;
  readonly state: () => State;
  readonly show: (state: State) => void;
  readonly replaceChannel: (channel: ChannelRow) => void;
}

/** `read` is called when it is this page's turn to read the feed. */
export function joinPages<State>(member: Member<State>, read: () => Promise<void>): Pages<State> {
  const { signal, state, show, replaceChannel } = member;
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
  const tell = (next: State): void => {
    if (reads) say({ kind: "state", state: next });
  };
  pages.addEventListener("message", ({ data }: MessageEvent<Message<State>>) => {
    if (signal.aborted) return;
    if (data.kind === "hello") tell(state());
    else if (data.kind === "channel") replaceChannel(data.channel);
    else if (!reads) show(data.state);
  });
  const left = new Promise<void>((resolve) => {
    signal.addEventListener("abort", () => {
      pages.close();
      resolve();
    });
  });
  say({ kind: "hello" });
  const turn = navigator.locks.request(NAME, { signal }, async () => {
    reads = true;
    // Whatever it still waits for, the next page need not.
    await Promise.race([read(), left]);
    reads = false;
  });
  // It left before its turn.
  turn.catch(() => {});
  return { tell, tellChannel: (channel) => say({ kind: "channel", channel }) };
}
