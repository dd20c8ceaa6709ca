// The page's frame: navigation, the current view and current problems.
// It removes the sign-in code from the address.

import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Amount, Empty, Failure, Snippet } from "./parts/basic.tsx";
import { countOf, formatUsd } from "./parts/format.ts";
import { describeError, followSignIns, readToken, signIn, signOut } from "./state/request.ts";
import { followLinks, hrefOf, useRoute } from "./state/route.ts";
import { hrefFrom } from "./state/scope.ts";
import { feed } from "./state/live.ts";
import { useLive } from "./state/use.ts";
import { ChannelsView } from "./views/channels.tsx";
import { KeysView } from "./views/keys.tsx";
import { RequestsView } from "./views/requests.tsx";
import { SessionsView } from "./views/sessions.tsx";
import { OverviewView } from "./views/overview.tsx";

const VIEWS = [
  { name: "", title: "Overview", View: OverviewView },
  { name: "sessions", title: "Sessions", View: SessionsView },
  { name: "requests", title: "Requests", View: RequestsView },
  { name: "keys", title: "Keys", View: KeysView },
  { name: "channels", title: "Channels", View: ChannelsView },
];

export function App({ code }: { readonly code: string | null }) {
  const [phase, setPhase] = useState<"signing in" | "in" | "out">(
    code !== null ? "signing in" : readToken() !== null ? "in" : "out",
  );
  const [error, setError] = useState<string | null>(null);
  const { connection } = useLive();
  useEffect(() => {
    if (code === null) return;
    signIn(code).then(
      () => setPhase("in"),
      (failure: unknown) => {
        setError(describeError(failure));
        // This browser may still be signed in from earlier.
        setPhase(readToken() !== null ? "in" : "out");
      },
    );
  }, [code]);
  useEffect(() => {
    if (phase === "in") feed.start();
  }, [phase]);
  const isOut = phase === "out" || connection === "signed out";
  // Reloads, because another run of the gateway may have another page.
  useEffect(() => (isOut ? followSignIns(() => location.reload()) : undefined), [isOut]);
  if (phase === "signing in") return <p class="loading">Signing in …</p>;
  if (isOut) return <SignedOut error={error} />;
  const problem = error === null ? null : `${error} This browser is still signed in.`;
  return <Frame problem={connection === "open" ? problem : null} dismiss={() => setError(null)} />;
}

function SignedOut({ error }: { readonly error: string | null }) {
  return (
    <main class="signed-out">
      <h1>Gateway</h1>
      {error !== null && <Failure text={error} />}
      <p>You are not signed in. In a terminal of this machine, run</p>
      <Snippet text={`gateway open --url ${location.origin}`} label="the command" />
      <p class="quiet">It opens this page, signed in for thirty days.</p>
    </main>
  );
}

function Frame({
  problem,
  dismiss,
}: {
  /** The problem of the sign-in link that opened the page. */
  readonly problem: string | null;
  readonly dismiss: () => void;
}) {
  const route = useRoute();
  const view = VIEWS.find(({ name }) => name === (route.path[0] ?? ""));
  const title = view?.title ?? "Gateway";
  const { spend } = useLive();
  const today = spend === null ? "" : `${formatUsd(spend.today_usd)} · `;
  useEffect(() => {
    document.title = `${today}${title} · Gateway`;
  }, [title, today]);
  return (
    <div class="frame" onClick={followLinks}>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="bar">
        <p class="brand">
          <span class="mark" aria-hidden="true" />
          Gateway
        </p>
        <nav aria-label="Views">
          <ul>
            {VIEWS.map(({ name, title: text }) => (
              <li key={name}>
                <a
                  href={hrefFrom(route, name === "" ? [] : [name])}
                  aria-current={name === view?.name ? "page" : undefined}
                >
                  {text}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <State />
      </header>
      <main id="main" tabIndex={-1}>
        <h1 class="hidden">{title}</h1>
        {problem !== null && <Failure text={problem} close={dismiss} />}
        <Problems />
        {view === undefined ? (
          <Empty title="There is no such view.">
            <p>
              <a href={hrefOf([])}>Back to the overview</a>
            </p>
          </Empty>
        ) : (
          <view.View route={route} />
        )}
      </main>
      <Footer />
    </div>
  );
}

const CONNECTIONS = {
  connecting: ["calm", "connecting"],
  open: ["good", "live"],
  lost: ["warn", "no connection"],
  "signed out": ["calm", "signed out"],
} as const;

function State() {
  const { connection, spend, streams } = useLive();
  const [tone, words] = CONNECTIONS[connection];
  return (
    <p class="state">
      {spend !== null && (
        <a href={hrefOf([], { period: "today" })}>
          <b class="number">
            <Amount usd={spend.today_usd} />
          </b>{" "}
          <span class="quiet">today</span>
        </a>
      )}
      <span class={`connection ${tone}`} role="status">
        <span class="dot" aria-hidden="true" />
        {connection === "open" && streams.length > 0 ? countOf(streams.length, "open stream") : words}
      </span>
    </p>
  );
}

function Problems() {
  const { connection, ledgerProblem } = useLive();
  return (
    <>
      {connection === "lost" && (
        <Failure text="The gateway does not answer. This page connects again by itself." />
      )}
      {ledgerProblem !== null && (
        <Failure text={`The ledger cannot be written, so requests are refused: ${ledgerProblem}`} />
      )}
    </>
  );
}

function Footer() {
  const { about } = useLive();
  return (
    <footer class="foot">
      {about !== null && (
        <p class="quiet">
          gateway {about.version} on {about.address} · days are those of {about.timezone} ·{" "}
          {about.config ?? "demo"}
        </p>
      )}
      <button
        type="button"
        class="plain"
        onClick={() => void signOut().finally(() => location.assign(hrefOf([])))}
      >
        Sign out
      </button>
    </footer>
  );
}

const CODE = /^#code=([\w-]+)$/;

const code = CODE.exec(location.hash)?.[1] ?? null;
// In an open page, a sign-in link changes only what follows the #.
addEventListener("hashchange", () => {
  if (CODE.test(location.hash)) location.reload();
});
if (code !== null) history.replaceState(null, "", location.pathname + location.search);

const page = document.getElementById("page");
if (page !== null) render(<App code={code} />, page);
