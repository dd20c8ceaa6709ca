// `bun run differ OLD NEW [--only WORD]`: the same traffic through two executables, and the same ledgers read by both.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Comparison, isObject, type Ports } from "./compare.ts";
import { listRecorded } from "./recorded.ts";
import { labelOf, type Scenario, type Section, Side } from "./side.ts";
import { SOCKET_SCENARIOS, startSockets } from "./socket.ts";
import { settle } from "./wanted.ts";
import { listScenarios } from "./traffic.ts";

const LANES = 6;

const SETTINGS: Section = { max_body: "2MiB", failover: { attempts: 3, total: "20s" } };

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
  const sockets = sides.map(startSockets);
  await Promise.all(sides.map((side) => side.start([...scenarios, ...overSockets], SETTINGS)));
  const comparison = new Comparison(portsOf(old), portsOf(fresh));
  const left = [...scenarios];
  const lane = async (): Promise<void> => {
    for (let scenario = left.shift(); scenario !== undefined; scenario = left.shift()) {
      const [a, b] = await Promise.all([old.run(scenario), fresh.run(scenario)]);
      comparison.outcome(
        scenario.name,
        scenario.steps.map((_, at) => labelOf(scenario, at)),
        a,
        b,
      );
    }
  };
  const compareSockets = async (): Promise<void> => {
    for (const scenario of overSockets) {
      const [a, b] = await Promise.all(sockets.map((each) => each.run(scenario)));
      const where = `traffic/${scenario.name}`;
      comparison.json(`${where}/messages`, a?.messages, b?.messages);
      comparison.json(`${where}/received`, a?.received, b?.received);
      comparison.text(`${where}/end`, a?.end ?? "", b?.end ?? "");
      comparison.fields(`${where}/handshake`, a?.handshakes.flat() ?? [], b?.handshakes.flat() ?? []);
    }
  };
  await Promise.all([compareSockets(), ...Array.from({ length: LANES }, lane)]);
  for (const each of sockets) each.stop();
  const statuses = await Promise.all(sides.map((side) => side.end("SIGTERM")));
  comparison.text("traffic/exit", String(statuses[0]), String(statuses[1]));
  const [a, b] = [groupLines(old), groupLines(fresh)];
  for (const scenario of scenarios)
    for (const index of scenario.steps.keys()) {
      const label = labelOf(scenario, index);
      comparison.lines(`traffic/${label}`, a.get(label) ?? [], b.get(label) ?? []);
    }
  for (const { name } of overSockets)
    comparison.lines(`traffic/${name}`, a.get(name) ?? [], b.get(name) ?? []);
  comparison.lines("traffic/unlabelled", a.get("(no label)") ?? [], b.get("(no label)") ?? []);
  return comparison;
}

async function main(): Promise<number> {
  const words = process.argv.slice(2);
  const at = words.indexOf("--only");
  const only = at < 0 ? "" : (words.splice(at, 2)[1] ?? "");
  const [first, second] = words;
  if (first === undefined || second === undefined) {
    console.error("Usage: bun run differ OLD NEW [--only WORD]");
    return 2;
  }
  const folder = mkdtempSync(join(tmpdir(), "gateway-differ-"));
  const sides = [
    new Side("old", resolve(first), join(folder, "old")),
    new Side("new", resolve(second), join(folder, "new")),
  ] as const;
  const recorded = listRecorded();
  if (recorded.passed === 0) console.log("Skipped: there are no recordings in ../shared/fixtures.");
  const scenarios = [...listScenarios(), ...recorded.scenarios].filter(({ name }) => name.includes(only));
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(
      signal,
      () => void Promise.all(sides.map((side) => side.stop())).then(() => process.exit(1)),
    );
  try {
    const began = performance.now();
    const comparison = await compareTraffic(sides, scenarios, only);
    const steps = scenarios.reduce((sum, each) => sum + each.steps.length, 0);
    console.log(
      `${scenarios.length} scenarios, ${steps} requests, ${comparison.compared} values compared, ${Math.round(performance.now() - began)} ms`,
    );
    const { unexpected, report } = settle(comparison.differences, only === "");
    console.log(report);
    return unexpected === 0 ? 0 : 1;
  } finally {
    for (const side of sides) await side.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

process.exit(await main());
