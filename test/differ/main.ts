// `bun run differ OLD NEW [--only WORD] [--to FILE]`: compares what two executables do with the same traffic and ledgers.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { Comparison, isObject, type Ports } from "./compare.ts";
import {
  AFTER_START,
  copyLedger,
  inLanes,
  listCommands,
  makeLarge,
  print,
  runOf,
  STORED,
  listStored,
} from "./ledgers.ts";
import { listRecorded } from "./recorded.ts";
import { labelOf, type Scenario, type Section, Side } from "./side.ts";
import { SOCKET_SCENARIOS, startSockets } from "./socket.ts";
import { Verdict } from "./wanted.ts";
import { listScenarios } from "./traffic.ts";

/** The number of lines that the large ledger has. */
const LARGE = 100_000;

/** Which commands are compared on these ledgers. On the other ledgers, `few` commands are compared. */
const READ: Readonly<Record<string, "all" | "most">> = { "0.2.0": "all", "0.1.0": "most" };
const SETTINGS: Section = { max_body: "2MiB", failover: { attempts: 3, total: "20s" } };

/** After the traffic, the running gateways get the commands `LIVE`. Members named in `MOVING` may differ. */
const LIVE = ["channels", "cache today", "keys list", "models --group aliases", "top"];
const MOVING =
  /^(?:latency_\w+|\w+_ms|pid|version|address|since|until|seen|connections|hour|day|last_used|time|id|recent|streams|state|reason)$/;

function portsOf(side: Side): Ports {
  return new Map([
    [String(side.port), "GATEWAY"],
    [String(side.upstreamPort), "UPSTREAM"],
    [String(side.socketPort), "SOCKETS"],
  ]);
}

function groupLines(side: Side): Map<string, Section[]> {
  const found = new Map<string, Section[]>();
  for (const line of side.lines()) {
    const client = line["client"];
    const label = isObject(client) ? String(client["label"]) : "(no label)";
    found.set(label, [...(found.get(label) ?? []), line]);
  }
  return found;
}

async function compareTraffic(
  sides: readonly [Side, Side],
  scenarios: readonly Scenario[],
  only: string,
): Promise<Comparison> {
  const [old, fresh] = sides;
  const overSockets = SOCKET_SCENARIOS.filter(({ name }) => name.includes(only));
  const [forOld, forNew] = [startSockets(old), startSockets(fresh)];
  await Promise.all(sides.map((side) => side.start([...scenarios, ...overSockets], SETTINGS)));
  const comparison = new Comparison(portsOf(old), portsOf(fresh));
  const run = async (scenario: Scenario): Promise<void> => {
    const [a, b] = await Promise.all([old.run(scenario), fresh.run(scenario)]);
    const labels = scenario.steps.map((_, at) => labelOf(scenario, at));
    comparison.outcome(scenario.name, labels, a, b);
  };
  const compareSockets = async (): Promise<void> => {
    for (const scenario of overSockets) {
      const [a, b] = await Promise.all([forOld.run(scenario), forNew.run(scenario)]);
      comparison.socket(`traffic/${scenario.name}`, a, b);
    }
  };
  await Promise.all([compareSockets(), inLanes(scenarios, run)]);
  for (const each of [forOld, forNew]) each.stop();
  await inLanes(LIVE, async (command) => {
    const [a, b] = await Promise.all(
      sides.map((side) => print(runOf(side.executable), command, side.folder)),
    );
    comparison.json(`live/${command}`, a, b, MOVING);
  });
  const statuses = await Promise.all(sides.map((side) => side.end("SIGTERM")));
  comparison.text("traffic/exit", String(statuses[0]), String(statuses[1]));
  const [a, b] = [groupLines(old), groupLines(fresh)];
  for (const scenario of scenarios)
    for (const index of scenario.steps.keys()) {
      const label = labelOf(scenario, index);
      comparison.lines(label, a.get(label) ?? [], b.get(label) ?? []);
    }
  for (const { name } of overSockets) comparison.lines(name, a.get(name) ?? [], b.get(name) ?? []);
  comparison.lines("unlabelled", a.get("(no label)") ?? [], b.get("(no label)") ?? []);
  return comparison;
}

/** Both executables read the same ledgers, before and after a gateway has started on them. */
async function compareLedgers(sides: readonly [Side, Side], only: string): Promise<Comparison> {
  const comparison = new Comparison(new Map(), new Map());
  const from = join(sides[0].folder, "large");
  const names = [...listStored(), "large"].filter((name) => `ledgers/${name}`.includes(only));
  if (names.includes("large")) makeLarge(join(STORED, "0.2.0"), from, LARGE);
  for (const name of names) {
    const readers = sides.map(
      (side) => new Side(side.name, side.executable, join(side.folder, "ledgers", name)),
    );
    for (const { folder } of readers) copyLedger(name === "large" ? from : join(STORED, name), folder);
    const compare = (what: string, commands: readonly string[]): Promise<void> =>
      inLanes(commands, async (command) => {
        const [a, b] = await Promise.all(
          readers.map(({ executable, folder }) => print(runOf(executable), command, folder)),
        );
        const where = `ledgers/${name}/${what}${command}`;
        comparison.text(`${where}/status`, String(a?.status), String(b?.status));
        comparison.json(where, a?.document, b?.document);
      });
    // Reading the large ledger takes seconds: it is read after a start only.
    if (name !== "large") await compare("", listCommands(readers[0]!.folder, READ[name] ?? "few"));
    await Promise.all(readers.map((reader) => reader.serve().then(() => reader.end("SIGTERM"))));
    await compare("after a start: ", AFTER_START);
  }
  return comparison;
}

const since = (from: number): string => `${Math.round((performance.now() - from) / 1000)} s`;

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { only: { type: "string", default: "" }, to: { type: "string" } },
  });
  const [first, second] = positionals;
  if (first === undefined || second === undefined) {
    console.error("Usage: bun run differ OLD NEW [--only WORD] [--to FILE]");
    return 2;
  }
  const { only, to } = values;
  const folder = mkdtempSync(join(tmpdir(), "gateway-differ-"));
  const sides = [
    new Side("old", resolve(first), join(folder, "old")),
    new Side("new", resolve(second), join(folder, "new")),
  ] as const;
  const recorded = listRecorded();
  if (recorded === null) console.log("Skipped: there are no recordings in ../shared/fixtures.");
  const scenarios = [...listScenarios(), ...(recorded ?? [])].filter(({ name }) => name.includes(only));
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(
      signal,
      () => void Promise.all(sides.map((side) => side.stop())).then(() => process.exit(1)),
    );
  try {
    const began = performance.now();
    const verdict = new Verdict();
    const traffic = await compareTraffic(sides, scenarios, only);
    const steps = scenarios.reduce((sum, each) => sum + each.steps.length, 0);
    console.log(verdict.add(traffic.differences));
    console.log(
      `${scenarios.length} scenarios, ${steps} requests, ${traffic.compared} values, ${since(began)}`,
    );
    const read = performance.now();
    const ledgers = await compareLedgers(sides, only);
    console.log(verdict.add(ledgers.differences));
    console.log(`${listStored().length + 1} ledgers, ${ledgers.compared} values, ${since(read)}`);
    const all = [...traffic.differences, ...ledgers.differences];
    if (to !== undefined) writeFileSync(to, all.map((each) => `${JSON.stringify(each)}\n`).join(""));
    console.log(verdict.conclude(only === ""));
    return verdict.unexpected === 0 ? 0 : 1;
  } finally {
    for (const side of sides) await side.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

process.exit(await main());
