// The gateway is killed (SIGKILL) again and again under load, and starts again on the same
// ledger: every request that reached an upstream has one line, and the ledger is whole.
//
// A request that the journal named but that had not left yet when the gateway died
// gets an `interrupted` line of basis `unknown`, too. It looks the same as one that had left
// (the connection's bytes are in the kernel, not in the journal), and an extra line that
// charges nothing is better than a missing one. Nothing else may have a line.

import { join } from "node:path";
import { expect, test } from "bun:test";
import type { Finding } from "../../../src/billing/verify/finding.ts";
import { verifyLedger } from "../../../src/billing/verify/verify.ts";
import { openLedger } from "../../../src/billing/ledger/ledger.ts";
import { type DemoUpstream, startDemoUpstream } from "../../../src/demo/upstream.ts";
import { addUsd, formatUsd, parseUsd, ZERO_USD } from "../../../src/lib/money.ts";
import { optionsFor, type ReadLedger, readWholeLedger } from "../../billing/ledger/ledger-samples.ts";
import { type ChildGateway, CREDENTIAL, makeConfig, startGateway } from "../../harness/gateway.ts";
import { makeTempFolder } from "../../harness/temp.ts";
import { Crowd, type Dice, openDice, readModel, type Sent } from "../crowd.ts";

const KILLS = Number(process.env["KILLS"] ?? 200);
/** Each has an upstream, a ledger and a gateway of its own. */
const LEDGERS = [
  { sync: "batch" },
  { sync: "always" },
  { sync: "never", rotate: { size: "100KiB" } },
  { sync: "batch", rotate: { size: "30KiB" } },
] as const;
const CLIENTS = 8;

/** When a gateway dies: during its start, some time after it began to serve, or once the upstream or the clients have seen a number of requests. */
type Instant =
  | { readonly kind: "starting"; readonly ms: number }
  | { readonly kind: "serving"; readonly ms: number }
  | { readonly kind: "arrived" | "answered"; readonly count: number };

function choose(roll: Dice): Instant {
  const which = roll();
  if (which < 0.15) return { kind: "starting", ms: 10 + roll() * 40 };
  if (which < 0.45) return { kind: "serving", ms: roll() * 30 };
  return { kind: which < 0.75 ? "arrived" : "answered", count: 1 + Math.floor(roll() * 25) };
}

/** What the test compares once the last gateway has ended. */
interface Lane extends ReadLedger {
  readonly sent: readonly Sent[];
  /** Models of the requests that reached the upstream. */
  readonly reached: ReadonlySet<string>;
  readonly findings: readonly Finding[];
  /** As a gateway knows it that starts on this ledger. */
  readonly spent: string;
}

async function runLane(
  executable: string,
  ledger: (typeof LEDGERS)[number],
  kills: number,
  seed: number,
): Promise<Lane> {
  using folder = makeTempFolder();
  const upstream = startDemoUpstream({ credential: CREDENTIAL });
  const start = { config: makeConfig(upstream, { ledger }), folder, command: [executable] };
  const roll = openDice(seed);
  const crowd = new Crowd(upstream, roll);
  for (let kill = 0; kill < kills; kill += 1) {
    const instant = choose(roll);
    if (instant.kind === "starting") await killStarting(start, instant.ms);
    else await killServing(await startGateway(start), crowd, upstream, instant);
  }
  await (await startGateway(start)).stop();
  upstream.stop();
  const path = folder.join("ledger.jsonl");
  return {
    ...readWholeLedger(path),
    ...(await prove(path)),
    sent: crowd.sent,
    reached: new Set(upstream.requests.map(readModel)),
  };
}

/** The executable starts in a third of the time that the sources need. */
async function build(outfile: string): Promise<string> {
  const entrypoints = [join(import.meta.dir, "../../../src/main.ts")];
  await Bun.build({ entrypoints, minify: true, bytecode: true, format: "esm", compile: { outfile } });
  return outfile;
}

async function killStarting(options: Parameters<typeof startGateway>[0], ms: number): Promise<void> {
  const spawned = (child: { kill(name: "SIGKILL"): void }) =>
    void setTimeout(() => child.kill("SIGKILL"), ms);
  const started = await startGateway({ ...options, spawned }).catch(() => null);
  await started?.exited;
}

async function killServing(
  gateway: ChildGateway,
  crowd: Crowd,
  upstream: DemoUpstream,
  instant: Exclude<Instant, { kind: "starting" }>,
): Promise<void> {
  const seen = upstream.requests.length;
  const running = crowd.run(gateway.port, CLIENTS);
  if (instant.kind === "serving") await Bun.sleep(instant.ms);
  else if (instant.kind === "arrived") await upstream.received(seen + instant.count - 1);
  else await crowd.answered(instant.count);
  gateway.signal("SIGKILL");
  crowd.stop();
  await Promise.all([running, gateway.exited]);
}

async function prove(path: string): Promise<Pick<Lane, "findings" | "spent">> {
  const findings: Finding[] = [];
  verifyLedger(path, { partial: false, running: false }, (finding) => void findings.push(finding));
  const ledger = openLedger(optionsFor(path));
  const spent = formatUsd(ledger.spentTogether("total"));
  await ledger.close();
  return { findings, spent };
}

test(`after ${KILLS} kills at random moments under load, every request that reached an upstream has exactly one line`, async () => {
  using built = makeTempFolder();
  const executable = await build(built.join("gateway"));
  const share = Math.ceil(KILLS / LEDGERS.length);
  // Each one is ended, even if another fails: no gateway outlives the test.
  const running = LEDGERS.map((ledger, index) => runLane(executable, ledger, share, 20261121 + index));
  await Promise.allSettled(running);
  const lanes = await Promise.all(running);
  for (const { lines, count, sent, reached, findings, spent } of lanes) {
    expect(findings).toEqual([]);
    expect([...count.values()].filter((times) => times !== 1)).toEqual([]);
    const byModel = Map.groupBy(lines, (line) => line["model"]);
    expect([...reached].filter((model) => byModel.get(model)?.length !== 1)).toEqual([]);
    // Every line belongs to a request, and one that never left charges nothing.
    const asked = new Map(sent.map((each) => [each.model, each]));
    for (const line of lines) {
      expect(asked.has(String(line["model"]))).toBe(true);
      if (reached.has(String(line["model"]))) continue;
      expect(line).toMatchObject({
        outcome: "interrupted",
        basis: "unknown",
        status: null,
        charge_usd: null,
      });
    }
    // The client's request id is the line's id.
    for (const { model, id } of sent) {
      if (id !== null && reached.has(model)) expect(byModel.get(model)![0]!.id).toBe(id);
    }
    const charges = lines.flatMap(({ charge_usd: charge }) => (typeof charge === "string" ? [charge] : []));
    const sum = charges.reduce((total, charge) => addUsd(total, parseUsd(charge)), ZERO_USD);
    expect(spent).toBe(formatUsd(sum));
  }
  const outcomes = new Set(lanes.flatMap(({ lines }) => lines.map(({ outcome }) => outcome)));
  expect([...outcomes].sort()).toEqual([
    "client_closed",
    "complete",
    "interrupted",
    "upstream_cut",
    "upstream_error",
  ]);
}, 240_000);
