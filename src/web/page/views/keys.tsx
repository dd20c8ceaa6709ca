// The keys: what each may spend and has spent, and every change that `gateway keys` makes.

import { useState } from "preact/hooks";
import type { KeyChange, KeyRow, KeysChanged, KeysReply } from "../../api.ts";
import { Empty, Fact, Failure, Pill } from "../parts/basic.tsx";
import { writeLimit, formatDay, formatSpan, formatUsd } from "../parts/format.ts";
import { describeError, post } from "../state/request.ts";
import { ScopeBar } from "../parts/scope-bar.tsx";
import { go, type Route, useRoute } from "../state/route.ts";
import { hrefFrom, hrefScoped, readScope } from "../state/scope.ts";
import { useData, useFresh, useNow } from "../state/use.ts";
import { CreateKey, EditLimits, MoveKey, NewSecret, RemoveKey, RotateKey } from "./key-dialogs.tsx";
import { Limit } from "./overview-cards.tsx";

const REFRESH_MS = 3000;

export function KeysView({ route }: { readonly route: Route }) {
  const { data, error, load, set } = useData<KeysReply>("keys");
  const [secret, setSecret] = useState<NonNullable<KeysChanged["secret"]> | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useFresh(REFRESH_MS, load);
  const close = (): void => go(hrefFrom(route, ["keys"]), "replace");
  const scope = readScope(route);
  const { key: name, group } = scope.filters;
  const fits = (row: KeyRow): boolean =>
    (name ?? row.name) === row.name && (group ?? row.group) === row.group;
  const finish = (changed: KeysChanged): void => {
    const { secret: made, problem: late, ...keys } = changed;
    set(keys);
    setSecret(made ?? null);
    setProblem(late);
    close();
  };
  if (data === null)
    return error === null ? <p class="loading">Loading the keys …</p> : <Failure text={error} retry={load} />;
  return (
    <>
      {error !== null && <Failure text={error} retry={load} />}
      {problem !== null && <Failure text={problem} />}
      <div class="toolbar">
        <ScopeBar path={["keys"]} scope={scope} names={["key", "group"]} />
        <p class="quiet">{data.fixed ?? "A key is what a tool sends. Each is bound to one group."}</p>
        {data.fixed === null && (
          <a class="button main" href={hrefFrom(route, ["keys", "new"])}>
            Create a key
          </a>
        )}
      </div>
      {data.keys.length === 0 ? (
        <Empty title="There is no key yet.">
          <p>Create one, and paste its line into a terminal: the tool then uses this gateway.</p>
        </Empty>
      ) : (
        <ul class="keys">
          {data.keys.filter(fits).map((each) => (
            <li key={each.name}>
              <KeyCard row={each} isFixed={data.fixed !== null} onChange={finish} />
            </li>
          ))}
        </ul>
      )}
      {secret !== null && <NewSecret secret={secret} onClose={() => setSecret(null)} />}
      <KeyDialog route={route} data={data} onDone={finish} onClose={close} />
    </>
  );
}

/** The dialog that the address names. */
function KeyDialog({
  route,
  data,
  ...closing
}: {
  readonly route: Route;
  readonly data: KeysReply;
  readonly onDone: (changed: KeysChanged) => void;
  readonly onClose: () => void;
}) {
  const [, name, action] = route.path;
  if (name === "new" && action === undefined) return <CreateKey groups={data.groups} {...closing} />;
  const row = data.keys.find((each) => each.name === name);
  if (row === undefined) return null;
  if (action === "rotate") return <RotateKey row={row} {...closing} />;
  if (action === "remove") return <RemoveKey row={row} {...closing} />;
  if (action === "move") return <MoveKey row={row} groups={data.groups} {...closing} />;
  return action === "limits" ? <EditLimits row={row} {...closing} /> : null;
}

const TONES: Readonly<Record<KeyRow["state"], "good" | "warn" | "calm">> = {
  active: "good",
  disabled: "calm",
  expired: "warn",
  "plan inactive": "warn",
};

function KeyCard({
  row,
  isFixed,
  onChange,
}: {
  readonly row: KeyRow;
  readonly isFixed: boolean;
  readonly onChange: (changed: KeysChanged) => void;
}) {
  const now = useNow(30_000);
  const { name, group, platform, multiplier, state, created, expires, last_used: used } = row;
  const counts = Object.entries(row.limits).filter(
    ([limit]) => !row.limits_used.some((use) => use.limit === limit),
  );
  return (
    <section class="card key" aria-label={`Key ${name}`}>
      <header>
        <h2>{name}</h2>
        <Pill tone={TONES[state]}>{state}</Pill>
        <span class="quiet">
          <bdi>{group}</bdi> · {platform} · ×{multiplier}
        </span>
      </header>
      <dl class="facts-row">
        <Spent title="Today" usd={row.spent_today_usd} period="today" name={name} />
        <Spent title="In total" usd={row.spent_total_usd} period="all" name={name} />
        <Fact
          title="Last used"
          text={used === null ? "never" : `${formatSpan(now - Date.parse(used))} ago`}
        />
        <Fact title="Created" text={created === null ? "–" : formatDay(created)} />
        <Fact title="Expires" text={expires === null ? "never" : formatDay(expires)} />
      </dl>
      {row.limits_used.length > 0 && (
        <ul class="limits">
          {row.limits_used.map((use) => (
            <li key={use.limit}>
              <Limit row={use} now={now} />
            </li>
          ))}
        </ul>
      )}
      {counts.length > 0 && (
        <p class="quiet">{counts.map(([limit, value]) => writeLimit(limit, value)).join(", ")}</p>
      )}
      {!isFixed && <KeyActions row={row} onChange={onChange} />}
    </section>
  );
}

function Spent({ title, usd, period, name }: Readonly<Record<"title" | "usd" | "period" | "name", string>>) {
  const href = hrefScoped(["sessions"], { period, filters: { key: name } }, { order: "charge" });
  return <Fact title={title} text={formatUsd(usd)} exact={`$${usd}`} href={href} />;
}

function KeyActions({
  row: { name, state },
  onChange,
}: {
  readonly row: KeyRow;
  readonly onChange: (changed: KeysChanged) => void;
}) {
  const [error, setError] = useState<string | null>(null);
  const route = useRoute();
  const action = state === "disabled" ? "enable" : "disable";
  const change = (): void => {
    post<KeysChanged>("keys/change", { name, action } satisfies KeyChange).then(
      onChange,
      (failure: unknown) => setError(describeError(failure)),
    );
  };
  const links = [
    ["limits", "Limits", `of ${name}`],
    ["move", "Move", name],
    ["rotate", "New secret", `of ${name}`],
    ["remove", "Remove", name],
  ] as const;
  return (
    <>
      {error !== null && <Failure text={error} />}
      <p class="actions">
        <button type="button" onClick={change}>
          {action === "enable" ? "Enable" : "Disable"}
          <span class="hidden"> {name}</span>
        </button>
        {links.map(([part, title, whose]) => (
          <a class="button" key={part} href={hrefFrom(route, ["keys", name, part])}>
            {title}
            <span class="hidden"> {whose}</span>
          </a>
        ))}
      </p>
    </>
  );
}
