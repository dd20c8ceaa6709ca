// The dialogs that create and change a key.

import { useState } from "preact/hooks";
import { COUNT_LIMITS, USD_LIMITS } from "../../../config/limit-names.ts";
import type { GroupChoice, KeyChange, KeyRow, KeysChanged, KeyWish } from "../../../gateway/api/documents.ts";
import { Dialog, Failure, Options, Snippet } from "../parts/basic.tsx";
import { type FormClosing, FormDialog, readText } from "../parts/form.tsx";
import { nameLimit } from "../parts/format.ts";
import { post } from "../state/request.ts";
import { useLive } from "../state/use.ts";

function GroupField({ groups, value }: { readonly groups: readonly GroupChoice[]; readonly value?: string }) {
  return (
    <label class="field">
      <span>Group</span>
      <select name="group" required>
        {groups.map(({ name, platform, multiplier, description }) => (
          <option key={name} value={name} selected={name === value}>
            {name} — {platform}, ×{multiplier}
            {description === "" ? "" : ` — ${description}`}
          </option>
        ))}
      </select>
      <small>
        The group decides the platform and what a request costs: the official price × its multiplier.
      </small>
    </label>
  );
}

function LimitFields({
  names,
  values,
}: {
  readonly names: readonly string[];
  readonly values: Readonly<Record<string, string>>;
}) {
  return (
    <div class="fields">
      {names.map((name) => {
        const isUsd = name.startsWith("usd_");
        return (
          <label class="field" key={name}>
            <span>
              {isUsd ? "USD " : ""}
              {nameLimit(name)}
            </span>
            <input
              name={name}
              inputMode={isUsd ? "decimal" : "numeric"}
              pattern={isUsd ? String.raw`\d+(\.\d+)?` : "[1-9][0-9]*"}
              title={isUsd ? "An amount such as 5 or 0.50" : "A number from 1"}
              placeholder="no limit"
              autocomplete="off"
              defaultValue={values[name] ?? ""}
            />
          </label>
        );
      })}
    </div>
  );
}

const EXPIRIES: Readonly<Record<string, string>> = {
  never: "never",
  "7d": "in 7 days",
  "30d": "in 30 days",
  "90d": "in 90 days",
  "365d": "in a year",
};

export function CreateKey({
  groups,
  ...closing
}: FormClosing<KeysChanged> & { readonly groups: readonly GroupChoice[] }) {
  const send = (values: FormData): Promise<KeysChanged> => {
    const limits = USD_LIMITS.flatMap((name) => {
      const value = readText(values, name);
      return value === "" ? [] : [[name, value] as const];
    });
    const key: KeyWish = {
      name: readText(values, "name"),
      group: readText(values, "group"),
      expires: readText(values, "expires"),
      limits: Object.fromEntries(limits),
    };
    return post("actions/add-key", key);
  };
  return (
    <FormDialog title="Create a key" action="Create" send={send} {...closing}>
      <label class="field">
        <span>Name</span>
        <input name="name" required autocomplete="off" placeholder="laptop" />
      </label>
      <GroupField groups={groups} />
      <label class="field">
        <span>Expires</span>
        <select name="expires">
          <Options values={Object.keys(EXPIRIES)} name={(each) => EXPIRIES[each] ?? each} />
        </select>
      </label>
      <LimitFields names={USD_LIMITS} values={{}} />
    </FormDialog>
  );
}

export function MoveKey({
  row,
  groups,
  ...closing
}: FormClosing<KeysChanged> & { readonly row: KeyRow; readonly groups: readonly GroupChoice[] }) {
  const send = (values: FormData): Promise<KeysChanged> =>
    change({ name: row.name, action: "move", group: readText(values, "group") });
  return (
    <FormDialog title={`Move ${row.name}`} action="Move" send={send} {...closing}>
      <p>The secret stays. From the next request on, the other group's channels and multiplier apply.</p>
      <GroupField groups={groups} value={row.group} />
    </FormDialog>
  );
}

const CONFIRMED = {
  rotate: [
    "New secret for",
    "Make a new secret",
    "All earlier secrets stop working at once. Every tool that uses the key needs the new one.",
  ],
  remove: [
    "Remove",
    "Remove the key",
    "Every tool that uses it is refused from now on. To stop it for a while only, disable it.",
  ],
} as const;

type Confirmed = Pick<KeyChange, "name"> & { readonly action: keyof typeof CONFIRMED };

export function ConfirmKey({ name, action, ...closing }: FormClosing<KeysChanged> & Confirmed) {
  const [title, button, text] = CONFIRMED[action];
  const send = (): Promise<KeysChanged> => change({ name, action });
  return (
    <FormDialog title={`${title} ${name}`} action={button} send={send} {...closing}>
      <p>{text}</p>
    </FormDialog>
  );
}

export function EditLimits({ row, ...closing }: FormClosing<KeysChanged> & { readonly row: KeyRow }) {
  const names = [...USD_LIMITS, ...COUNT_LIMITS];
  const send = (values: FormData): Promise<KeysChanged> => {
    const changed = [...names, "unpriced"].flatMap((name) => {
      const value = readText(values, name);
      const before = row.limits[name] ?? "";
      return value === before ? [] : [[name, value === "" ? null : value] as const];
    });
    return change({ name: row.name, action: "limit", limits: Object.fromEntries(changed) });
  };
  return (
    <FormDialog title={`Limits of ${row.name}`} action="Save" send={send} {...closing}>
      <p class="quiet">An empty field means no limit.</p>
      <LimitFields names={names} values={row.limits} />
      <label class="field">
        <span>Models without a price</span>
        <select name="unpriced">
          <option value="">refuse, because no limit could count them</option>
          <option value="allow" selected={row.limits["unpriced"] === "allow"}>
            allow
          </option>
        </select>
      </label>
    </FormDialog>
  );
}

function change(wish: KeyChange): Promise<KeysChanged> {
  return post("actions/change-key", wish);
}

export function NewSecret({
  secret,
  tools,
  onClose,
}: {
  readonly secret: NonNullable<KeysChanged["secret"]>;
  readonly tools: GroupChoice["tools"];
  readonly onClose: () => void;
}) {
  const [isWarned, setWarned] = useState(false);
  const { about } = useLive();
  const url = about?.address ?? location.origin;
  const programs = tools.filter((tool) => SDK_LINES[tool] === undefined);
  const sdk = tools.flatMap((tool) => SDK_LINES[tool]?.(url) ?? []);
  const mayClose = (): boolean => {
    setWarned(true);
    return isWarned;
  };
  return (
    <Dialog title={`The secret of ${secret.name}`} onClose={onClose} mayClose={mayClose}>
      <p>It is shown only now. Only its hash is kept. It works from now on.</p>
      {isWarned && <Failure text="Nobody can show this secret again. Copy it, then close this dialog." />}
      <Snippet text={secret.text} label="the secret" />
      {programs.length > 0 && <ToolLine tools={programs} start={about?.run ?? ""} />}
      <h3>Use it in a program</h3>
      <p class="quiet">The base URL (OpenAI’s SDK wants /v1 at its end); the secret is the API key.</p>
      <Snippet text={url} label="the base URL" />
      {sdk.length > 0 && <Snippet text={sdk.join("\n")} label="the lines of the SDK" />}
      <p class="actions">
        <button type="button" class="main" onClick={onClose}>
          Done
        </button>
      </p>
    </Dialog>
  );
}

/** The secret is in a variable, so that no file has it. */
const SDK_LINES: Readonly<Record<string, (url: string) => readonly string[]>> = {
  anthropic: (url) => [
    "from anthropic import Anthropic",
    `client = Anthropic(base_url="${url}", ${SDK_KEY})`,
  ],
  openai: (url) => ["from openai import OpenAI", `client = OpenAI(base_url="${url}/v1", ${SDK_KEY})`],
  google: (url) => [
    "from google import genai",
    `client = genai.Client(http_options={"base_url": "${url}"}, ${SDK_KEY})`,
  ],
};
const SDK_KEY = 'api_key=os.environ["GATEWAY_KEY"]';

function ToolLine({ tools, start }: { readonly tools: readonly string[]; readonly start: string }) {
  const [chosen, setChosen] = useState(tools[0] ?? "");
  return (
    <>
      <h3>
        <label>
          Start{" "}
          <select value={chosen} onChange={({ currentTarget }) => setChosen(currentTarget.value)}>
            <Options values={tools} />
          </select>{" "}
          with it
        </label>
      </h3>
      <p class="quiet">It asks for the secret, so that no shell’s history has it.</p>
      <Snippet text={`${start} ${chosen}`} label={`the line that starts ${chosen}`} />
    </>
  );
}
