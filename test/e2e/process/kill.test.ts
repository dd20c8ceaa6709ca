// The gateway is killed (SIGKILL) again and again under load, and starts again on the same ledger: every request that reached an
// upstream has one line, and the ledger is whole. The simulator kills it far more often; here the kernel is real.
//
// Some requests are in the journal, but not yet sent when the gateway dies. The next start cannot know that,
// because only the kernel knew what was sent. So they get an `interrupted` line of basis `unknown`, too: an
// extra line that charges nothing is better than a missing one. A request outside the journal has no line.

import { expect, test } from "bun:test";
import { openLedger } from "../../../src/billing/ledger/ledger.ts";
import { type DemoUpstream, startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { getField } from "../../../src/lib/json/json.ts";
import { addUsd, formatUsd, parseUsd, ZERO_USD } from "../../../src/lib/money.ts";
import { listProblems, optionsFor, readWholeLedger } from "../../billing/ledger/ledger-samples.ts";
import { type ChildGateway, CREDENTIAL, makeConfig, startGateway } from "../../harness/gateway.ts";
import { openRaw, parseAnswer, writeRequest } from "../../harness/raw.ts";
import { openDice } from "../../harness/random.ts";
import { makeTempFolder } from "../../harness/temp.ts";
import { makeRequest } from "../world.ts";

const KILLS = Number(process.env["KILLS"] ?? 8);
/** The settings of two ledgers. Each ledger has a gateway and an upstream of its own. */
const LEDGERS = [{}, { rotate: { monthly: true } }] as const;
const CLIENTS = 8;

/** A request, as its client knows it. Its model's name has a unique date, which does not change the price. */
interface Sent {
  readonly model: string;
  /** The `x-request-id` of the answer, if so much of it arrived. */
  id: string | null;
}

/** Clients that send requests, one after another, until `stop`. */
class Crowd {
  readonly sent: Sent[] = [];
  #isOver = false;

  async run(port: number, roll: () => number): Promise<void> {
    this.#isOver = false;
    const clients = Array.from({ length: CLIENTS }, async () => {
      while (!this.#isOver) await this.#ask(port, roll() < 0.6, roll() < 0.2);
    });
    await Promise.all(clients);
  }

  stop(): void {
    this.#isOver = true;
  }

  async #ask(port: number, stream: boolean, leaves: boolean): Promise<void> {
    const sent: Sent = { model: `gpt-5.4-20${String(this.sent.length).padStart(6, "0")}`, id: null };
    this.sent.push(sent);
    const client = await openRaw(port).catch(() => null);
    if (client === null) return;
    client.send(writeRequest(makeRequest(leaves ? "chat" : "responses", stream, { model: sent.model })));
    await client
      .until((bytes) => {
        const answer = parseAnswer(bytes);
        sent.id ??= answer?.field("x-request-id") ?? null;
        return answer !== null && (answer.complete || leaves);
      })
      .catch(() => null);
    client.close();
  }
}

const modelOf = (value: unknown): string => String(getField(value, "model"));

/** Kills a gateway during its start, some time later, or once its upstream has seen a number of requests. */
async function killOnce(
  start: Parameters<typeof startGateway>[0],
  crowd: Crowd,
  upstream: DemoUpstream,
  roll: () => number,
): Promise<void> {
  const [which, when] = [roll(), roll()];
  if (which < 0.15) {
    const spawned = (child: { kill(name: "SIGKILL"): void }) =>
      void setTimeout(() => child.kill("SIGKILL"), 10 + when * 40);
    const started = await startGateway({ ...start, spawned }).catch(() => null);
    await started?.exited;
    return;
  }
  const gateway: ChildGateway = await startGateway(start);
  const seen = upstream.requests.length;
  const running = crowd.run(gateway.port, roll);
  if (which < 0.45) await Bun.sleep(when * 30);
  else await upstream.received(seen + Math.floor(when * 25));
  gateway.signal("SIGKILL");
  crowd.stop();
  await Promise.all([running, gateway.exited]);
}

async function runLane(ledger: (typeof LEDGERS)[number], kills: number, seed: number): Promise<void> {
  using folder = makeTempFolder();
  const upstream = startDemoUpstream({ credential: CREDENTIAL, paceMs: 1 });
  const start = { config: makeConfig(upstream, { ledger }), folder };
  const [roll, crowd] = [openDice(seed), new Crowd()];
  for (let kill = 0; kill < kills; kill += 1) await killOnce(start, crowd, upstream, roll);
  await (await startGateway(start)).stop();
  upstream.stop();

  const path = folder.join("ledger.jsonl");
  expect(listProblems(path)).toEqual([]);
  const { lines, count } = readWholeLedger(path);
  expect([...count.values()].filter((times) => times !== 1)).toEqual([]);
  expect(new Set(lines.map(({ outcome }) => outcome))).toContain("interrupted");
  const reached = new Set(upstream.requests.map(({ json }) => modelOf(json)));
  const byModel = Map.groupBy(lines, modelOf);
  expect([...reached].filter((model) => byModel.get(model)?.length !== 1)).toEqual([]);
  // Every line belongs to a request, and the line of a request that never left charges nothing.
  const asked = new Set(crowd.sent.map(({ model }) => model));
  const nothing = { outcome: "interrupted", basis: "unknown", status: null, charge_usd: null };
  for (const [model, [line]] of byModel) {
    expect(asked.has(model)).toBe(true);
    if (!reached.has(model)) expect(line).toMatchObject(nothing);
  }
  // The request id that the client got is the line's id.
  for (const { model, id } of crowd.sent)
    if (id !== null && reached.has(model)) expect(byModel.get(model)![0]!.id).toBe(id);
  // A gateway that starts on this ledger knows the sum of its charges.
  const opened = openLedger(optionsFor(path));
  const charges = lines.flatMap(({ charge_usd: charge }) => (typeof charge === "string" ? [charge] : []));
  const sum = charges.reduce((total, charge) => addUsd(total, parseUsd(charge)), ZERO_USD);
  expect(formatUsd(opened.sums.spentTogether("total"))).toBe(formatUsd(sum));
  await opened.close();
}

test(`P124: after ${KILLS} kills at random moments under load, every request that reached an upstream has exactly one line`, async () => {
  const share = Math.ceil(KILLS / LEDGERS.length);
  // Each lane ends, even if another lane fails: no gateway outlives the test.
  const running = LEDGERS.map((ledger, index) => runLane(ledger, share, 20261121 + index));
  await Promise.allSettled(running);
  await Promise.all(running);
});
