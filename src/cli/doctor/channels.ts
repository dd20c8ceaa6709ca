// `gateway doctor` on the channels: whether each upstream can be reached and accepts the credential, free of charge.

import type { Channel } from "../../config/catalog.ts";
import { isLoopback } from "../../config/proxy.ts";
import { valueAt } from "../../config/yaml/problems.ts";
import { adviseCredential, describePlace, listUnset } from "../access/credential-place.ts";
import { checkCredential, describeCheck } from "../access/credential-check.ts";
import { bad, type Check, type Examined, type DoctorFinding, good, note } from "./finding.ts";

export const checkChannels: Check = (examined) =>
  Promise.all(Array.from(examined.catalog.channels.values(), (channel) => checkChannel(channel, examined)));

/** Null: its upstream has to be asked. */
function judgeUnasked(channel: Channel, { path, env, source }: Examined): DoctorFinding | null {
  const { name, lack, disabled, usesLogin, baseUrl, groups } = channel;
  const check = `channel ${name}`;
  if (lack !== null) return bad(check, lack, "gateway credentials list");
  if (disabled) return note(check, "disabled in the config");
  // Nobody but the tool has a login to check it with.
  const passed = `passes on the client's own login to ${baseUrl.href}`;
  if (usesLogin)
    return isLoopback(baseUrl.hostname)
      ? note(check, `${passed}: the program that listens there gets it`)
      : good(check, passed);
  const [unset] = listUnset(valueAt(source, ["channels", name, "credential"]), path, env);
  if (unset === undefined) return null;
  const judge = groups.length === 0 ? note : bad;
  return judge(check, `the credential's variable ${unset} is not set`, adviseCredential(name));
}

/** The upstream has no such list, or is busy. */
const HARMLESS: ReadonlySet<number | null> = new Set([404, 405, 429]);

async function checkChannel(channel: Channel, examined: Examined): Promise<DoctorFinding> {
  const known = judgeUnasked(channel, examined);
  if (known !== null) return known;
  const { name, baseUrl, proxy } = channel;
  const check = `channel ${name}`;
  const result = await checkCredential(channel);
  const text = `${baseUrl.host}${proxy === null ? "" : ` (through ${proxy.host})`} ${describeCheck(result)}`;
  if (result.kind === "accepted") return good(check, text);
  if (result.kind === "refused")
    return bad(check, `${text}: ${describePlace(examined.path, name)}`, adviseCredential(name));
  if (HARMLESS.has(result.status)) return note(check, text);
  if (result.isTls === true)
    return bad(check, text, "for a company's own certificate, name the file of its authority in `ca`");
  const what = isLoopback(baseUrl.hostname)
    ? "start the program that serves there, or check"
    : "check the network,";
  return bad(check, text, `${what} channels.${name}.base_url and the proxy: curl -I ${baseUrl.origin}`);
}
