// `gateway doctor`: looks at everything, then tells all of it.

import { z } from "zod";
import type { Catalog } from "../../config/catalog.ts";
import { tryGateway } from "../control.ts";
import { checkChannels } from "./channels.ts";
import { checkConfig } from "./config.ts";
import { checkDisk, checkLedger } from "./ledger.ts";
import { checkPort, type Running } from "./port.ts";
import { checkTools } from "./tools.ts";
import { type Finding, note } from "./finding.ts";
import type { ConfigFlags } from "../config-access.ts";
import { paint, print, printJson } from "../terminal.ts";

export interface DoctorFlags extends ConfigFlags {
  readonly json?: true;
}

/** The exit status. */
export async function runDoctor(flags: DoctorFlags): Promise<number> {
  const findings = await examine(flags);
  const wrong = findings.filter(({ state }) => state === "wrong").length;
  if (flags.json === true) printJson({ ok: wrong === 0, checks: findings });
  else report(findings, wrong);
  return wrong === 0 ? 0 : 1;
}

async function examine(flags: DoctorFlags): Promise<readonly Finding[]> {
  const { findings, catalog } = checkConfig(flags, process.env);
  if (catalog === null) return findings;
  const running = await askRunning(catalog);
  const all = [
    ...findings,
    await checkPort(catalog, running),
    ...checkLedger(catalog, running),
    checkDisk(catalog.ledger.path),
    ...checkTools(catalog, running, process.env),
    ...(await checkChannels(catalog)),
  ];
  return running === null ? all : all.map(excuseUnset);
}

/** What runs, as a service perhaps, was not started from this shell. */
function excuseUnset(finding: Finding): Finding {
  const { check, detail, mend } = finding;
  if (mend?.startsWith("export ") !== true) return finding;
  return note(check, `${detail} (in this shell: the running gateway has variables of its own)`, mend);
}

const runningSchema = z.object({
  version: z.string(),
  pid: z.number(),
  address: z.object({ host: z.string(), port: z.number() }),
  ledger: z.object({ problem: z.string().nullable() }),
});

async function askRunning(catalog: Catalog): Promise<Running | null> {
  if (process.platform === "win32") return null;
  try {
    const state = await tryGateway({ ledgerPath: catalog.ledger.path }, "GET", "/state");
    return runningSchema.safeParse(state).data ?? null;
  } catch {
    return null;
  }
}

const MARKS = { ok: ["green", "✓"], note: ["yellow", "–"], wrong: ["red", "✗"] } as const;

function report(findings: readonly Finding[], wrong: number): void {
  const width = Math.max(...findings.map(({ check }) => Bun.stringWidth(check)));
  const indent = " ".repeat(width + 4);
  for (const { check, state, detail, mend } of findings) {
    const [style, mark] = MARKS[state];
    const blank = " ".repeat(width - Bun.stringWidth(check));
    print(`${paint(style, mark)} ${check}${blank}  ${detail.replaceAll("\n", `\n${indent}`)}`);
    if (mend !== null) print(`${indent}→ ${paint("bold", mend)}`);
  }
  print(wrong === 0 ? "Nothing is wrong." : `${wrong} ${wrong === 1 ? "thing is" : "things are"} wrong.`);
}
