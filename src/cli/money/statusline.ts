// `gateway statusline`: asks the running gateway for what it prints.

import type { Status } from "../../gateway/api/status.ts";
import { getField, getText, parseJson } from "../../lib/json/json.ts";
import { writeAllowance } from "../../lib/text/allowance.ts";
import { readDocument } from "../access/control.ts";
import { print, printNote } from "../terminal/terminal.ts";
import { formatCents } from "../terminal/text.ts";

export interface StatuslineFlags {
  readonly format?: string;
  readonly session?: string;
  readonly key?: string;
  readonly ledger?: string;
  readonly config?: string;
}

const TIMEOUT_MS = 1000;

export async function printStatusline(flags: StatuslineFlags): Promise<void> {
  const { format, key, ledger } = flags;
  const given = await readStdin();
  // --ledger saves reading the config, which takes half of the time.
  const ledgerPath = ledger ?? (await import("../access/ledger-place.ts")).locateLedger(flags);
  const named = flags.session ?? getText(getField(given, "session_id"));
  const session = named === "last" ? await findLastSession(ledgerPath) : named;
  const query = new URLSearchParams({
    ...(session !== "" && { session }),
    ...(key !== undefined && { key }),
  });
  const call = { ledgerPath, timeoutMs: TIMEOUT_MS };
  const status = await readDocument<Status>(call, "GET", `reports/status?${query.toString()}`).catch(
    () => null,
  );
  if (status === null) return print("");
  const parts = describeParts(status, getText(getField(getField(given, "model"), "display_name")));
  print(format === undefined ? writeUsual(parts) : fill(format, parts));
}

async function findLastSession(ledgerPath: string): Promise<string> {
  const { openTable } = await import("../access/ledger-place.ts");
  const { findLast } = await import("../../billing/reports/requests.ts");
  using table = openTable(ledgerPath, {});
  return findLast(table, "session") ?? "";
}

const MAX_STDIN_BYTES = 1 << 20;
/** A status bar may leave stdin open. */
const STDIN_WAIT_MS = 300;

async function readStdin(): Promise<unknown> {
  if (process.stdin.isTTY) return undefined;
  const reader = Bun.stdin.stream().getReader();
  const decoder = new TextDecoder();
  let text = "";
  const read = async (): Promise<void> => {
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      text += decoder.decode(chunk.value, { stream: true });
      if (text.length > MAX_STDIN_BYTES || parseJson(text) !== undefined) return;
    }
  };
  const late = new Promise<void>((resolve) => void setTimeout(resolve, STDIN_WAIT_MS).unref());
  await Promise.race([read(), late]);
  void reader.cancel();
  return parseJson(text);
}

/** Unknown fields stay, because the status bar may fill them. */
function fill(format: string, parts: Readonly<Record<string, string>>): string {
  return format.replaceAll(/\{(\w+)\}/g, (whole, name: string) => {
    if (Object.hasOwn(parts, name)) return parts[name] ?? whole;
    printNote(`There is no field ${whole}. Known: ${Object.keys(parts).join(", ")}.`);
    return whole;
  });
}

function describeParts(status: Status, model: string) {
  const { session, today_usd, limit, allowance = [], recordings } = status;
  const windows = allowance.filter(({ kind }) => kind === "window");
  return {
    model: model || (session?.model ?? ""),
    ...describeSession(session),
    today: writeAmount(today_usd),
    left: writeAmount(limit?.left_usd),
    limit: limit?.limit ?? "",
    windows: windows.map(writeWindow).join(", "),
    recording: recordings === undefined ? "" : `● recording ${recordings.join(", ")}`,
  };
}

function describeSession(session: Status["session"]) {
  const { charge_usd, paid_by_plan_usd: plan, cache_hit_rate: rate, context, windows } = session ?? {};
  const rises = Object.entries(windows ?? {}).map(([name, rise]) => `${name} +${rise}%`);
  return {
    session: writeAmount(charge_usd),
    plan: writeAmount(plan),
    cached: typeof rate === "number" ? `${Math.floor(rate * 100)}%` : "",
    context: context === undefined ? "" : writeContext(context),
    rise: rises.join(", "),
  };
}

function writeUsual(parts: ReturnType<typeof describeParts>): string {
  const { model, session, plan, today, context, cached, left, limit, windows, recording } = parts;
  // A charge and a plan's payment are shown as two amounts, never as their sum.
  const paid = [session === "$0.00" && plan !== "" ? "" : session, plan && `${plan} paid by a plan`];
  const spent = paid.filter((part) => part !== "").join(" + ");
  return [
    recording,
    model,
    spent && `session ${spent}`,
    `today ${today}`,
    context && `context ${context}`,
    cached && `cached ${cached}`,
    left && `left ${left} of ${limit}`,
    windows,
  ]
    .filter((part) => part !== "")
    .join(" · ");
}

const LEAST_SHARE = 0.1;
const CONTEXT_WORDS: Readonly<Record<string, string>> = {
  tool: "tools",
  call: "calls",
  result: "results",
};

function writeContext({ tokens, shares }: NonNullable<NonNullable<Status["session"]>["context"]>): string {
  const parts = Object.entries(shares)
    .filter(([, share]) => share >= LEAST_SHARE)
    .toSorted(([, a], [, b]) => b - a)
    .map(([kind, share]) => `${CONTEXT_WORDS[kind] ?? kind} ${Math.round(share * 100)}%`);
  const count = tokens < 1000 ? String(tokens) : `${Math.round(tokens / 1000)}k`;
  return parts.length === 0 ? count : `${count} (${parts.join(", ")})`;
}

function writeWindow(window: NonNullable<Status["allowance"]>[number]): string {
  const minutes = Math.floor((Date.now() - Date.parse(window.seen)) / 60_000);
  return minutes < 1 ? writeAllowance(window) : `${writeAllowance(window)} (${minutes} min ago)`;
}

function writeAmount(usd: string | undefined): string {
  return usd === undefined ? "" : formatCents(usd);
}
