// Shows keys, limits and spending. Changes keys as `gateway keys` does.

import { useState } from "preact/hooks";
import type { KeyChange, KeyRow, KeysChanged, KeysReply } from "../../../gateway/api/documents.ts";
import { Amount, Charge, Empty, Failure, Pill, Waiting } from "../parts/basic.tsx";
import { formatDay, formatSpan, nameLimit } from "../parts/format.ts";
import { Menu } from "../parts/menu.tsx";
import { describeError, post } from "../state/request.ts";
import { ScopeBar } from "../parts/scope-bar.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { go, type Route, useRoute } from "../state/route.ts";
import { hrefFrom, hrefScoped, readScope } from "../state/scope.ts";
import { useData, useFresh, useNow } from "../state/use.ts";
import { ConfirmKey, CreateKey, EditLimits, MoveKey, NewSecret } from "./key-dialogs.tsx";
import { Limit } from "./overview-cards.tsx";

const REFRESH_MS = 3000;

export function KeysView({ route }: { readonly route: Route }) {
  const loaded = useData<KeysReply>("reports/keys");
  const { data, load, set } = loaded;
  const [secret, setSecret] = useState<NonNullable<KeysChanged["secret"]> | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useFresh(REFRESH_MS, load);
  const now = useNow(30_000);
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
  const waiting = <Waiting of={loaded} text="Loading the keys …" />;
  if (data === null) return waiting;
  return (
    <>
      {waiting}
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
        <section class="card">
          <Table
            name="Keys"
            columns={listColumns(now, data.fixed === null ? finish : null)}
            rows={data.keys.filter(fits)}
            keyOf={(row) => row.name}
          />
        </section>
      )}
      {secret !== null && (
        <NewSecret
          secret={secret}
          tools={data.groups.find(({ name }) => name === secret.group)?.tools ?? []}
          onClose={() => setSecret(null)}
        />
      )}
      <KeyDialog route={route} data={data} onDone={finish} onClose={close} />
    </>
  );
}

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
  if (action === "rotate" || action === "remove")
    return <ConfirmKey name={row.name} action={action} {...closing} />;
  if (action === "move") return <MoveKey row={row} groups={data.groups} {...closing} />;
  return action === "limits" ? <EditLimits row={row} {...closing} /> : null;
}

const TONES: Readonly<Record<KeyRow["state"], "good" | "warn" | "calm">> = {
  active: "good",
  disabled: "calm",
  expired: "warn",
  "plan inactive": "warn",
};

type Change = (changed: KeysChanged) => void;

/** `onChange`: null if no key can be changed. */
function listColumns(now: number, onChange: Change | null): readonly Column<KeyRow>[] {
  return [
    ["Key", "name", ({ name }) => name],
    ["State", "", ({ state }) => <Pill tone={TONES[state]}>{state}</Pill>],
    ["Group", "name more", ({ group, multiplier }) => `${group} ×${multiplier}`],
    ["Today", "number", ({ name, spent_today_usd: usd }) => <Spent usd={usd} period="today" name={name} />],
    [
      "Total",
      "number some",
      ({ name, spent_total_usd: usd }) => <Spent usd={usd} period="all" name={name} />,
    ],
    ["Limits", "text more", (row) => <Limits row={row} now={now} />],
    [
      "Last used",
      " some",
      ({ last_used: used }) => (used === null ? "never" : `${formatSpan(now - Date.parse(used))} ago`),
    ],
    ["Created", " rare", ({ created }) => created && formatDay(created)],
    ["Expires", " rare", ({ expires }) => (expires === null ? "never" : formatDay(expires))],
    ...(onChange === null
      ? []
      : ([
          ["Change", "number", (row) => <ChangeMenu row={row} onChange={onChange} />],
        ] satisfies Column<KeyRow>[])),
  ];
}

function Limits({ row, now }: { readonly row: KeyRow; readonly now: number }) {
  const counts = Object.entries(row.limits).filter(
    ([limit]) => !row.limits_used.some((use) => use.limit === limit),
  );
  return (
    <>
      {row.limits_used.map((use) => (
        <Limit key={use.limit} row={use} now={now} short />
      ))}
      {counts.length > 0 && (
        <ul class="quiet">
          {counts.map(([limit, value]) => (
            <li key={limit}>
              {limit.startsWith("usd_") ? <Amount usd={value} /> : limit !== "unpriced" && value}{" "}
              {nameLimit(limit)}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function Spent({ usd, period, name }: Readonly<Record<"usd" | "period" | "name", string>>) {
  const href = hrefScoped(["sessions"], { period, filters: { key: name } }, { order: "charge" });
  return (
    <a href={href}>
      <Charge usd={usd} />
    </a>
  );
}

const ACTIONS = [
  ["limits", "Limits"],
  ["move", "Move to a group"],
  ["rotate", "New secret"],
  ["remove", "Remove"],
] as const;

function ChangeMenu({ row: { name, state }, onChange }: { readonly row: KeyRow; readonly onChange: Change }) {
  const [error, setError] = useState<string | null>(null);
  const route = useRoute();
  const action = state === "disabled" ? "enable" : "disable";
  const change = (): void => {
    post<KeysChanged>("actions/change-key", { name, action } satisfies KeyChange).then(
      onChange,
      (failure: unknown) => setError(describeError(failure)),
    );
  };
  return (
    <>
      {error !== null && <Failure text={error} />}
      <Menu text="⋯" label={`Change ${name}`}>
        <button type="button" onClick={change}>
          {action === "enable" ? "Enable" : "Disable"}
        </button>
        {ACTIONS.map(([part, title]) => (
          <a key={part} href={hrefFrom(route, ["keys", name, part])}>
            {title}
          </a>
        ))}
      </Menu>
    </>
  );
}
