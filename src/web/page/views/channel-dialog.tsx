// The dialog that adds a channel.

import { useState } from "preact/hooks";
import type { ChannelChoices, KeysReply, NewChannel } from "../../../gateway/api/documents.ts";
import { Options } from "../parts/basic.tsx";
import { type FormClosing, FormDialog, readText } from "../parts/form.tsx";
import { post } from "../state/request.ts";
import { useData } from "../state/use.ts";

export interface Added {
  readonly name: string;
  /** What the upstream said of the credential. */
  readonly finding: string;
}

/** The choice of an address in place of a preset. */
const ADDRESS = "";

export function AddChannel({
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
