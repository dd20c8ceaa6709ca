// The state of every channel, and its actions.

import { useState } from "preact/hooks";
import { type Allowance, writeAllowance } from "../../../lib/text/allowance.ts";
import { FAILED } from "../../../billing/reports/words.ts";
import type { ChannelChoices, KeysReply, NewChannel } from "../../../gateway/api/documents.ts";
import type { ChannelState, ChannelView } from "../../../gateway/channels/view.ts";
import { Amount, Empty, Fact, Failure, Pill, Options } from "../parts/basic.tsx";
import { formatCount, formatFull, formatMs, formatSpan } from "../parts/format.ts";
import { ScopeBar } from "../parts/scope-bar.tsx";
import { describeError, post } from "../state/request.ts";
import { go, type Route } from "../state/route.ts";
import { hrefFrom, hrefScoped, readScope } from "../state/scope.ts";
import { feed } from "../state/live.ts";
import { useData, useLive, useNow } from "../state/use.ts";
import { type FormClosing, FormDialog, readText } from "../parts/form.tsx";

export function ChannelsView({ route }: { readonly route: Route }) {
  const { channels, connection } = useLive();
  const { data } = useData<{ readonly choices: ChannelChoices | null }>("reports/channel-choices");
  const [added, setAdded] = useState<Added | null>(null);
  const choices = data?.choices ?? null;
  const close = (): void => go(hrefFrom(route, ["channels"]), "replace");
  const scope = readScope(route);
  const { channel: name, group } = scope.filters;
  const shown = channels.filter(
    (each) => (name ?? each.name) === each.name && (group === undefined || each.groups.includes(group)),
  );
  return (
    <>
      <div class="toolbar">
        <ScopeBar path={["channels"]} scope={scope} names={["channel", "group"]} />
        {choices !== null && (
          <a class="button main" href={hrefFrom(route, ["channels", "new"])}>
            Add a channel
          </a>
        )}
      </div>
      {added !== null && (
        <p class="quiet" role="status">
          Added {added.name}. {added.finding}.
        </p>
      )}
      {channels.length === 0 ? (
        connection === "open" && (
          <Empty title="There is no channel yet.">
            <p>
              Add one: an upstream and its credential. In a terminal, <code>gateway channels add</code> does
              the same.
            </p>
          </Empty>
        )
      ) : (
        <ul class="channels">
          {shown.map((channel) => (
            <li key={channel.name}>
              <Channel channel={channel} />
            </li>
          ))}
        </ul>
      )}
      {choices !== null && route.path[1] === "new" && (
        <AddChannel
          choices={choices}
          onDone={(channel) => {
            setAdded(channel);
            close();
          }}
          onClose={close}
        />
      )}
    </>
  );
}

export const TONES: Readonly<Record<ChannelState, "good" | "warn" | "bad" | "calm">> = {
  available: "good",
  degraded: "warn",
  resting: "warn",
  unavailable: "bad",
  disabled: "calm",
  unknown: "calm",
};

function Head({
  channel: { name, state, since, until },
  now,
}: {
  readonly channel: ChannelView;
  readonly now: number;
}) {
  const began = since === null ? null : Date.parse(since);
  const span = began === null ? "" : formatSpan(now - began);
  return (
    <header>
      <h2>{name}</h2>
      <Pill tone={TONES[state]}>{state}</Pill>
      <span class="quiet" title={began === null ? undefined : formatFull(began)}>
        {span !== "" && `for ${span}`}
        {until !== null && `, ${formatSpan(Date.parse(until) - now)} left`}
      </span>
    </header>
  );
}

const TITLES: Readonly<Record<Allowance["kind"], string>> = {
  window: "Window of the plan",
  rate: "Remaining rate limit",
};

function describeAllowance(allowance: Allowance, now: number): string {
  const { resets, seen } = allowance;
  const end = resets === null ? "" : `, resets in ${formatSpan(Date.parse(resets) - now)}`;
  return `${writeAllowance(allowance)}${end}, seen ${formatSpan(now - Date.parse(seen))} ago`;
}

function Facts({ channel, now }: { readonly channel: ChannelView; readonly now: number }) {
  const { name, platform, groups } = channel;
  const only = { channel: name };
  return (
    <dl class="facts-row">
      <Fact title="Platform" text={platform} />
      <Fact title="Groups" text={groups.join(", ") || "none"} />
      <Fact
        title="First byte"
        text={formatMs(channel.latency_ms)}
        more={`The median; 95 % of the requests are below ${formatMs(channel.latency_p95_ms)}`}
      />
      <Fact
        title="Failed (1 h)"
        text={`${formatCount(channel.errors_hour)} of ${formatCount(channel.requests_hour)}`}
        href={hrefScoped(["requests"], { period: "1h", filters: { ...only, outcome: FAILED } })}
      />
      <Fact
        title="Charged today"
        text={<Amount usd={channel.charge_today_usd} />}
        href={hrefScoped(["sessions"], { period: "today", filters: only }, { order: "charge" })}
      />
      {channel.paid_by_plan_today_usd !== undefined && (
        <Fact title="Paid by a plan today" text={<Amount usd={channel.paid_by_plan_today_usd} />} />
      )}
      {channel.allowance?.map((each) => (
        <Fact key={each.kind + each.name} title={TITLES[each.kind]} text={describeAllowance(each, now)} />
      ))}
    </dl>
  );
}

type Action = "disable" | "enable" | "probe";

function Channel({ channel }: { readonly channel: ChannelView }) {
  const { name, state, reason } = channel;
  const now = useNow(10_000);
  const [busy, setBusy] = useState<Action | null>(null);
  const [error, setError] = useState<string | null>(null);
  const act = async (action: Action): Promise<void> => {
    setBusy(action);
    try {
      feed.replaceChannel(await post<ChannelView>("actions/change-channel", { name, action }));
      setError(null);
    } catch (failure) {
      setError(describeError(failure));
    }
    setBusy(null);
  };
  const switching = state === "disabled" ? "enable" : "disable";
  const hrefOf = (period: string) => hrefScoped(["requests"], { period, filters: { channel: name } });
  // The page does not enable a channel that the file disables.
  const isByFile = state === "disabled" && reason !== "by command";
  return (
    <section class="card channel" aria-label={`Channel ${name}`}>
      <Head channel={channel} now={now} />
      {reason !== null && (
        <p class="reason">
          {reason}
          {isByFile && (
            <>
              . To enable it: <code>gateway channels set {name} disabled=none</code>
            </>
          )}
        </p>
      )}
      {state === "unknown" && (
        <p class="reason">No request has used it yet. “Check now” asks its upstream.</p>
      )}
      <Facts channel={channel} now={now} />
      <div class="strips">
        <Strip counts={channel.hour} label="Last hour" href={hrefOf("1h")} />
        <Strip counts={channel.day} label="Last day" href={hrefOf("24h")} />
      </div>
      {error !== null && <Failure text={error} />}
      <p class="actions">
        {!isByFile && (
          <button type="button" disabled={busy !== null} onClick={() => void act(switching)}>
            {switching === "enable" ? "Enable" : "Disable"}
            <span class="hidden"> {name}</span>
          </button>
        )}
        <button type="button" disabled={busy !== null} onClick={() => void act("probe")}>
          {busy === "probe" ? "Checking …" : "Check now"}
          <span class="hidden"> {name}</span>
        </button>
      </p>
    </section>
  );
}

const BAR_WIDTH = 8;
const BAR_HEIGHT = 28;
const EMPTY_HEIGHT = 2;

/** The height of a bar shows its requests. The colour shows how many failed. */
function Strip({
  counts,
  label,
  href,
}: {
  readonly counts: ChannelView["hour"];
  readonly label: string;
  readonly href: string;
}) {
  const most = Math.max(1, ...counts.map(({ requests }) => requests));
  const requests = counts.reduce((sum, each) => sum + each.requests, 0);
  const errors = counts.reduce((sum, each) => sum + each.errors, 0);
  const words =
    requests === 0 ? "no requests" : `${formatCount(requests)} requests, ${formatCount(errors)} failed`;
  return (
    <figure class="strip">
      <svg
        viewBox={`0 0 ${counts.length * BAR_WIDTH} ${BAR_HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${label}: ${words}`}
      >
        {counts.map((each, index) => {
          const height =
            each.requests === 0 ? EMPTY_HEIGHT : Math.max(4, (each.requests / most) * BAR_HEIGHT);
          return (
            <rect
              key={index}
              class={toneOf(each)}
              x={index * BAR_WIDTH + 1}
              y={BAR_HEIGHT - height}
              width={BAR_WIDTH - 2}
              height={height}
              rx="1"
            />
          );
        })}
      </svg>
      <figcaption>
        <a href={href}>{label}</a>
      </figcaption>
    </figure>
  );
}

function toneOf({ requests, errors }: ChannelView["hour"][number]): string {
  if (requests === 0 && errors === 0) return "none";
  if (errors === 0) return "good";
  return errors * 2 > requests ? "bad" : "warn";
}

export interface Added {
  readonly name: string;
  /** What the upstream said of the credential. */
  readonly finding: string;
}

const ADDRESS = "";

function AddChannel({
  choices: { presets, platforms },
  ...closing
}: FormClosing<Added> & { readonly choices: ChannelChoices }) {
  const { data } = useData<KeysReply>("reports/keys");
  const [what, setWhat] = useState(presets[0]?.id ?? ADDRESS);
  const preset = presets.find(({ id }) => id === what);
  const send = (values: FormData): Promise<Added> => {
    const read = (name: string): string | undefined => readText(values, name) || undefined;
    const wish: NewChannel = {
      what: read("url") ?? what,
      platform: read("platform"),
      name: read("name"),
      group: read("group"),
      credential: read("credential"),
    };
    return post("actions/add-channel", wish);
  };
  return (
    <FormDialog title="Add a channel" action="Check and add" send={send} {...closing}>
      <label class="field">
        <span>Upstream</span>
        <select value={what} onChange={({ currentTarget: { value } }) => setWhat(value)}>
          {presets.map(({ id, title }) => (
            <option key={id} value={id}>
              {title}
            </option>
          ))}
          <option value={ADDRESS}>another address …</option>
        </select>
      </label>
      {preset === undefined && <Address platforms={platforms} />}
      {preset?.credential !== null && (
        <label class="field">
          <span>Credential</span>
          <input
            name="credential"
            type="password"
            required={preset !== undefined}
            autocomplete="off"
            placeholder={preset === undefined ? "a server on this machine may need none" : ""}
          />
          <small>Kept in gateway.env next to the config, which only you can read.</small>
        </label>
      )}
      <label class="field">
        <span>Name</span>
        <input name="name" autocomplete="off" placeholder={preset?.id ?? "as the host"} />
      </label>
      <label class="field">
        <span>Group</span>
        <select name="group">
          <option value="">a new group</option>
          <Options values={data?.groups.map(({ name }) => name) ?? []} />
        </select>
      </label>
    </FormDialog>
  );
}

function Address({ platforms }: Pick<ChannelChoices, "platforms">) {
  return (
    <>
      <label class="field">
        <span>URL</span>
        <input name="url" type="url" required autocomplete="off" placeholder="where its API is" />
      </label>
      <label class="field">
        <span>What it speaks</span>
        <select name="platform">
          <Options values={platforms} />
        </select>
      </label>
    </>
  );
}
