// The action of `gateway statusline`. It asks the running gateway and reads no ledger.

import { type Allowance, writeAllowance } from "../../lib/text/allowance.ts";
import type { Status } from "../../gateway/api/status.ts";
import { getField, parseJson } from "../../lib/json/json.ts";
import { formatRounded, parseDecimal } from "../../lib/money.ts";
import { readDocument } from "../access/control.ts";
import { print } from "../terminal/terminal.ts";

export interface StatuslineFlags {
  readonly format?: string;
  readonly session?: string;
  readonly key?: string;
  readonly ledger?: string;
  readonly config?: string;
}

/** A bar shows nothing rather than wait. */
const TIMEOUT_MS = 1000;

export async function printStatusline(flags: StatuslineFlags): Promise<void> {
  const given = await readStdin();
  const ledgerPath = flags.ledger ?? (await readLedgerPath(flags));
  const session = flags.session ?? readText(getField(given, "session_id"));
  const status = await askStatus(ledgerPath, session, flags.key);
  const model = readText(getField(getField(given, "model"), "display_name"));
  print(status === null ? "" : writeLine(status, model, flags.format));
}

/** Reading the config takes half of this command's time, so that it is loaded only if it is needed. */
async function readLedgerPath({ config }: StatuslineFlags): Promise<string> {
  const { openConfig } = await import("../access/config.ts");
  return openConfig(config === undefined ? {} : { config }).catalog.ledger.path;
}

/** Null when no gateway runs, or one of another version, or it does not answer: the bar stays empty. */
async function askStatus(
  ledgerPath: string,
  session: string | undefined,
  key: string | undefined,
): Promise<Status | null> {
  const query = new URLSearchParams({
    ...(session !== undefined && { session }),
    ...(key !== undefined && { key }),
  });
  try {
    const call = { ledgerPath, timeoutMs: TIMEOUT_MS };
    return await readDocument<Status>(call, "GET", `reports/status?${query.toString()}`);
  } catch {
    return null;
  }
}

/** What Claude Code writes to stdin takes a few kilobytes. A bar may leave stdin open and write nothing. */
const MAX_STDIN_BYTES = 1 << 20;
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
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, STDIN_WAIT_MS);
  await Promise.race([read(), late.promise]);
  clearTimeout(timer);
  // Otherwise this process would wait for the end of an open stdin.
  void reader.cancel();
  return parseJson(text);
}

function readText(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function writeLine(status: Status, model: string | undefined, format: string | undefined): string {
  const parts = describeParts(status, model);
  if (format !== undefined)
    return format.replaceAll(/\{(\w+)\}/g, (whole, name: string) =>
      Object.hasOwn(parts, name) ? (parts[name] ?? whole) : whole,
    );
  const { model: shown, session, plan, today, context, cached, left, limit, windows, recording } = parts;
  return [
    recording,
    shown,
    session === "" ? "" : `session ${joinPaid(session, plan ?? "")}`,
    `today ${today}`,
    context === "" ? "" : `context ${context}`,
    cached === "" ? "" : `cached ${cached}`,
    left === "" ? "" : `left ${left} of ${limit}`,
    windows,
  ]
    .filter((part) => part !== "")
    .join(" · ");
}

/** Empty: not known. */
function describeParts(status: Status, model: string | undefined): Readonly<Record<string, string>> {
  const { session, today_usd, limit } = status;
  const rate = session?.cache_hit_rate;
  return {
    model: model ?? session?.model ?? "",
    session: session === null ? "" : formatCents(session.charge_usd),
    plan: formatPlan(session),
    today: formatCents(today_usd),
    cached: typeof rate === "number" ? `${Math.floor(rate * 100)}%` : "",
    left: limit === null ? "" : formatCents(limit.left_usd),
    limit: limit?.limit ?? "",
    context: writeContext(session),
    windows: writeAllowances(status, ["window"]),
    rise: writeRise(session),
    recording: status.recordings === undefined ? "" : `● recording ${status.recordings.join(", ")}`,
  };
}

/** What was spent and what a plan paid are never added. */
function joinPaid(spent: string | undefined, plan: string): string {
  const paid = `${plan} paid by a plan`;
  return plan === "" ? (spent ?? "") : spent === "$0.00" ? paid : `${spent} + ${paid}`;
}

const LEAST_SHARE = 0.1;

/** `84k (tools 37%, result 41%)`. */
function writeContext(session: Status["session"]): string {
  const { context } = session ?? {};
  if (context === undefined) return "";
  const parts = Object.entries(context.shares)
    .filter(([, share]) => share >= LEAST_SHARE)
    .toSorted(([, a], [, b]) => b - a)
    .map(([kind, share]) => `${CONTEXT_WORDS[kind] ?? kind} ${Math.round(share * 100)}%`);
  return `${formatThousands(context.tokens)}${parts.length > 0 ? ` (${parts.join(", ")})` : ""}`;
}

const CONTEXT_WORDS: Readonly<Record<string, string>> = { tool: "tools", call: "calls", result: "results" };

function formatThousands(tokens: number): string {
  return tokens < 1000 ? String(tokens) : `${Math.round(tokens / 1000)}k`;
}

function writeRise(session: Status["session"]): string {
  const rises = Object.entries(session?.windows ?? {});
  return rises.map(([name, rise]) => `${name} +${rise}%`).join(", ");
}

/** With its age, unless that is less than a minute. */
function writeAllowances({ allowance = [] }: Status, kinds: readonly Allowance["kind"][]): string {
  return allowance
    .filter(({ kind }) => kinds.includes(kind))
    .map((each) => {
      const minutes = Math.floor((Date.now() - Date.parse(each.seen)) / 60_000);
      return minutes < 1 ? writeAllowance(each) : `${writeAllowance(each)} (${minutes} min ago)`;
    })
    .join(", ");
}

function formatPlan(session: Status["session"]): string {
  const usd = session?.paid_by_plan_usd;
  return usd === undefined ? "" : formatCents(usd);
}

/** A bar has little room. An amount that rounds to nothing says so. */
function formatCents(usd: string): string {
  const amount = parseDecimal(usd);
  const cents = formatRounded(amount, 2);
  return amount.units > 0n && cents === "0.00" ? "<$0.01" : `$${cents}`;
}
