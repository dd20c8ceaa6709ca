// `gateway doctor`: checks everything, then prints all findings.

import { findRunning } from "../access/running.ts";
import { checkCaches } from "./cache.ts";
import { checkChannels } from "./channels.ts";
import { checkConfig } from "./config.ts";
import { checkDisk, checkLedger } from "./ledger.ts";
import { checkPort } from "./port.ts";
import { checkTools } from "./tools.ts";
import { type Finding, note } from "./finding.ts";
import type { ListFlags } from "../access/config.ts";
import { escapeUnprintable } from "../../lib/text/printable.ts";
import { paint, print, printJson, printLines, readRoom } from "../terminal/terminal.ts";
import { formatCount, wrapWords } from "../terminal/text.ts";

/** Returns the exit status. */
export async function runDoctor(flags: ListFlags): Promise<number> {
  const findings = await collectFindings(flags);
  const wrong = findings.filter(({ state }) => state === "wrong").length;
  if (flags.json === true) printJson({ ok: wrong === 0, checks: findings.map(describeForScripts) });
  else printFindings(findings, wrong);
  return wrong === 0 ? 0 : 1;
}

/** Scripts know the fix as `mend`. */
function describeForScripts({ fix, ...finding }: Finding): Record<string, unknown> {
  return { ...finding, mend: fix };
}

async function collectFindings(flags: ListFlags): Promise<readonly Finding[]> {
  const { findings, catalog, path } = await checkConfig(flags, process.env);
  if (catalog === null) return findings;
  const running = await findRunning(catalog.ledger.path);
  const all = [
    ...findings,
    await checkPort(catalog, running),
    ...checkLedger(catalog, running),
    ...checkCaches({ catalog, path }, Date.now()),
    checkDisk(catalog.ledger.path),
    ...checkTools(catalog, running, process.env),
    ...(await checkChannels(catalog, path)),
  ];
  return running === null ? all : all.map(excuseUnsetVariable);
}

/** The running gateway, perhaps a service, was not started from this shell. */
function excuseUnsetVariable(finding: Finding): Finding {
  const { check, detail, fix } = finding;
  if (!detail.includes(" is not set")) return finding;
  return note(check, `${detail} (in this shell; the running gateway has its own variables)`, fix);
}

const MARKS = { ok: ["green", "✓"], note: ["yellow", "–"], wrong: ["red", "✗"] } as const;

function printFindings(findings: readonly Finding[], wrong: number): void {
  const names = findings.map(({ check }) => escapeUnprintable(check));
  const width = Math.max(...names.map((name) => Bun.stringWidth(name)));
  const indent = " ".repeat(width + 4);
  const fold = (text: string): string[] =>
    text.split("\n").flatMap((line) => wrapWords(escapeUnprintable(line), readRoom() - indent.length));
  for (const [index, { state, detail, fix }] of findings.entries()) {
    const [style, mark] = MARKS[state];
    const check = names[index] ?? "";
    const blank = " ".repeat(width - Bun.stringWidth(check));
    const [first = "", ...others] = fold(detail);
    printLines([
      `${paint(style, mark)} ${check}${blank}  ${first}`,
      ...others.map((line) => indent + line),
      ...(fix === null ? [] : [`${indent}→ ${paint("bold", escapeUnprintable(fix))}`]),
    ]);
  }
  print(wrong === 0 ? "No problems found." : `${formatCount(wrong, "problem")} found.`);
}
