// `gateway doctor`: runs all checks and prints the findings.

import type { Channel } from "../../config/catalog.ts";
import { findConfig } from "../../config/file/find.ts";
import { loadWithCredentials } from "../../config/file/load.ts";
import { isLoopback } from "../../config/proxy.ts";
import { valueAt } from "../../config/yaml/problems.ts";
import { ENV_TOOLS } from "../../dialects/platforms.ts";
import { codeOf, messageOf } from "../../lib/errors.ts";
import { escapeText } from "../../lib/text/printable.ts";
import { VERSION } from "../../lib/version.ts";
import { checkCredential, describeCheck } from "../access/credential-check.ts";
import { adviseCredential, describePlace, listUnset } from "../access/credential-place.ts";
import type { ListFlags } from "../access/config.ts";
import { type LedgerFlags, useLedger } from "../access/ledger-place.ts";
import { findRunning, formatBaseUrl } from "../access/running.ts";
import { paint, print, printJson, printLines, readRoom } from "../terminal/terminal.ts";
import { formatCount, measure, wrapWords } from "../terminal/text.ts";
import { describeMisleading } from "../tools/environment.ts";
import { TOOLS } from "../tools/tools.ts";
import * as config from "./config.ts";
import { bad, type Check, type DoctorFinding, type Examined, good, note } from "./finding.ts";
import { checkAmounts, checkEnd, checkLedger, checkOwnFiles } from "./ledger.ts";

const checkChannels: Check = (examined) => {
  const channels = [...examined.catalog.channels.values()];
  return Promise.all(channels.map((channel) => checkChannel(channel, examined)));
};

function judgeUnasked(channel: Channel, { path, source }: Examined): DoctorFinding | null {
  const { name, lack, disabled, usesLogin, baseUrl } = channel;
  const check = `channel ${name}`;
  if (lack !== null) return bad(check, lack, "gateway credentials list");
  if (disabled) return note(check, "disabled in the config");
  const passed = `passes on the client's own login to ${baseUrl.href}`;
  if (usesLogin && isLoopback(baseUrl.hostname))
    return note(check, `${passed}: the program that listens there gets it`);
  if (usesLogin) return good(check, passed);
  const [unset] = listUnset(valueAt(source, ["channels", name, "credential"]), path, process.env);
  if (unset === undefined) return null;
  return note(check, `not asked: the credential's variable ${unset} is not set`, adviseCredential(name));
}

/** The upstream has no list of models, or is busy. */
const HARMLESS: ReadonlySet<number | null> = new Set([404, 405, 429]);

async function checkChannel(channel: Channel, examined: Examined): Promise<DoctorFinding> {
  const known = judgeUnasked(channel, examined);
  if (known !== null) return known;
  const { name, baseUrl, proxy } = channel;
  const check = `channel ${name}`;
  const result = await checkCredential(channel);
  const place = proxy === null ? baseUrl.host : `${baseUrl.host} (through ${proxy.host})`;
  const text = `${place} ${describeCheck(result)}`;
  if (result.kind === "accepted") return good(check, text);
  if (result.kind === "refused")
    return bad(check, `${text}: ${describePlace(examined.path, name)}`, adviseCredential(name));
  if (HARMLESS.has(result.status)) return note(check, text);
  if (result.isTls === true)
    return bad(check, text, "if the certificate is a company's own, set `ca` to the file of its authority");
  const isOwn = isLoopback(baseUrl.hostname);
  const what = isOwn ? "start the program that serves there, or check" : "check the network,";
  const advice = `${what} channels.${name}.base_url and the proxy`;
  return bad(check, text, `${advice}: curl -I ${baseUrl.origin}`);
}

const checkToolVariables: Check = () =>
  [...TOOLS.values()].flatMap(({ name, title, misleading, program }) => {
    const detail = describeMisleading(title, misleading, process.env);
    if (detail === null) return [];
    const command = program === null ? `gateway run ${name} -- …` : `gateway run ${name}`;
    const lines = `eval "$(gateway env ${name})"`;
    const both = `${command}, or ${lines}: both remove it`;
    const fix = ENV_TOOLS.has(name) ? `${lines} removes it` : both;
    return [note(`tool ${name}`, detail, fix)];
  });

const checkPort: Check = ({ catalog: { listen }, running }) => {
  const check = "port";
  if (running !== null) {
    const { address, pid, version } = running;
    const what = `the gateway is running on ${formatBaseUrl(address)} (process ${pid})`;
    if (version === VERSION) return good(check, what);
    return note(check, `${what}, version ${version}; this is ${VERSION}`, "restart it");
  }
  const { host, port } = listen;
  const place = `${host}:${port}`;
  try {
    Bun.listen({
      hostname: host,
      port,
      exclusive: true,
      socket: { data: () => {} },
    }).stop(true);
    const reach = isLoopback(host) ? "" : "; other machines will reach the gateway";
    return good(check, `${place} is free; the gateway is not running${reach}`);
  } catch (error) {
    if (codeOf(error) !== "EADDRINUSE")
      return bad(check, `cannot listen on ${place}: ${messageOf(error)}`, "change listen:");
    const what = `${place} is used by another program, or a gateway with another config`;
    return bad(check, what, "gateway serve --port N, or change listen.port");
  }
};

const CHECKS: readonly Check[] = [
  config.describeConfig,
  config.checkPermissions,
  config.checkVariables,
  config.checkParts,
  config.checkSecrets,
  config.checkGit,
  config.checkBook,
  checkPort,
  checkOwnFiles,
  checkLedger,
  checkEnd,
  checkAmounts,
  checkToolVariables,
  checkChannels,
];

export async function runDoctor(flags: ListFlags & LedgerFlags): Promise<number> {
  const findings = await collectFindings(flags);
  const wrong = findings.filter(({ state }) => state === "wrong").length;
  // Scripts read the JSON, in which a fix is called `mend`.
  const checks = findings.map(({ fix, ...finding }) => ({ ...finding, mend: fix }));
  if (flags.json === true) printJson({ ok: wrong === 0, checks });
  else {
    printFindings(findings);
    print(wrong === 0 ? "No problems found." : `${formatCount(wrong, "problem")} found.`);
  }
  return wrong === 0 ? 0 : 1;
}

async function collectFindings(flags: LedgerFlags): Promise<readonly DoctorFinding[]> {
  const { env } = process;
  let path = "";
  try {
    path = findConfig(flags.config, env);
    const loaded = useLedger(await loadWithCredentials(path, env, { missing: "keep" }), flags);
    const running = await findRunning(loaded.catalog.ledger.path);
    const found: DoctorFinding[] = [];
    const examined = { ...loaded, running };
    for (const check of CHECKS) found.push(...[(await check(examined)) ?? []].flat());
    return running === null ? found : found.map(excuseUnsetVariable);
  } catch (error) {
    return config.explainProblems(error, path, flags);
  }
}

/** A running gateway may have the variable from another shell. */
function excuseUnsetVariable(finding: DoctorFinding): DoctorFinding {
  const { check, detail, fix } = finding;
  if (check === "config" || !detail.includes(" is not set")) return finding;
  return note(check, `${detail} (in this shell; the running gateway has its own variables)`, fix);
}

const MARKS = {
  ok: ["green", "✓"],
  note: ["yellow", "–"],
  wrong: ["red", "✗"],
} as const;

function printFindings(findings: readonly DoctorFinding[]): void {
  const width = Math.max(...findings.map(({ check }) => measure(escapeText(check))));
  const indent = " ".repeat(width + 4);
  for (const { check, state, detail, fix } of findings) {
    const [style, mark] = MARKS[state];
    const name = escapeText(check);
    const [first = "", ...others] = detail
      .split("\n")
      .flatMap((line) => wrapWords(escapeText(line), readRoom() - indent.length));
    printLines([
      `${paint(style, mark)} ${name}${" ".repeat(width - measure(name))}  ${first}`,
      ...others.map((line) => indent + line),
      ...(fix === null ? [] : [`${indent}→ ${paint("bold", escapeText(fix))}`]),
    ]);
  }
}
