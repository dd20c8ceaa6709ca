// What a user far away from the provider waits for: the first byte over TLS and a line of 25 ms each way, going direct and
// through the gateway.

import { readFileSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { join } from "node:path";
import { type Cores, type Child, type Folder, makeFolder, start } from "../machine.ts";
import type { Sample } from "../bench.ts";
import { SECRET, readReadyPort } from "../targets/targets.ts";
import { readSpread, type Results } from "../results/measures.ts";
import { type Certificate, makeCertificate } from "./certificate.ts";

const BODY = JSON.stringify({
  model: "claude-haiku-4-5",
  max_tokens: 100,
  messages: [{ role: "user", content: "x".repeat(800) }],
});
const REST_MS = 2000;
const IDLE_MS = 90_000;
const LONG_IDLE_MS = 600_000;
const TIMES = 10;
const CROWD = 8;

/** Direct, on a connection that is already open. */
export const ROUND_TRIP = "far: first byte ms, one round trip";

interface Far {
  readonly folder: Folder;
  readonly certificate: Certificate;
  readonly line: Child;
  readonly upstream: Child;
  readonly port: number;
}

export interface FarPlan {
  readonly commands: Readonly<Record<string, readonly string[]>>;
  readonly rounds: number;
  /** Without the measurements after long pauses. */
  readonly quick: boolean;
  /** Also after ten minutes. */
  readonly long: boolean;
  readonly note: (text: string) => void;
}

export async function measureFar(plan: FarPlan, cores: Cores | null, results: Results): Promise<void> {
  const far = await openFar(cores);
  if (far === null) {
    results.notes.push("The far upstream was not measured: the openssl command is missing.");
    return;
  }
  for (let round = 0; round < plan.rounds; round += 1) {
    plan.note(`far ${round + 1}/${plan.rounds}`);
    const direct = await measureDirect(far);
    const tripMs = direct[ROUND_TRIP] ?? 0;
    results.add("direct", direct);
    for (const [name, command] of Object.entries(plan.commands)) {
      await withGateway(command, far, cores, async (port) =>
        results.add(name, await measureNear(port, tripMs)),
      );
    }
  }
  const tripMs = results.read("direct", ROUND_TRIP)?.median ?? 0;
  const pauses = [...(plan.quick ? [] : [IDLE_MS]), ...(plan.long ? [LONG_IDLE_MS] : [])];
  for (const pause of pauses) {
    plan.note(`far, after ${pause / 1000} s`);
    const measured = Object.entries(plan.commands).map(async ([name, command]) => {
      await withGateway(command, far, cores, async (port) =>
        results.add(name, await measureAfter(port, pause, tripMs)),
      );
    });
    await Promise.all(measured);
  }
  await Promise.all([far.line.stop(), far.upstream.stop()]);
  far.folder.remove();
}

async function openFar(cores: Cores | null): Promise<Far | null> {
  const folder = makeFolder();
  const certificate = makeCertificate(folder);
  if (certificate === null) return null;
  const core = cores?.upstream ?? null;
  const run = (file: string, ...args: string[]): Child =>
    start([process.execPath, join(import.meta.dir, file), ...args], { core });
  const upstream = run("upstream.ts", certificate.cert, certificate.key);
  const line = run("line.ts", (await upstream.readLine()) ?? "");
  return { folder, certificate, line, upstream, port: Number(await line.readLine()) };
}

/** A fresh tool, and for comparison the round trip on connections that are already open. */
async function measureDirect(far: Far): Promise<Sample> {
  const fresh = await measureFresh(far);
  const socket = await openTls(far);
  const times: number[] = [];
  for (let count = 0; count < TIMES; count += 1) times.push(await time(socket));
  socket.destroy();
  const tripMs = readSpread(times).median;
  const crowd = await Promise.all(Array.from({ length: CROWD }, () => openTls(far)));
  await Bun.sleep(REST_MS);
  const together = await Promise.all(crowd.map(time));
  for (const each of crowd) each.destroy();
  return {
    "far: first byte ms, fresh process": fresh,
    [ROUND_TRIP]: tripMs,
    ...describeCrowd("eight at once", together, tripMs),
  };
}

function openTls({ port, certificate }: Far): Promise<Socket> {
  const socket = connectTls({ port, host: "localhost", ca: readFileSync(certificate.cert) });
  return new Promise((resolve, reject) => {
    socket.once("secureConnect", () => resolve(socket)).once("error", reject);
  });
}

async function measureFresh({ port, certificate }: Far): Promise<number> {
  const child = start(
    [
      process.execPath,
      join(import.meta.dir, "fresh.ts"),
      `https://localhost:${port}/v1/messages`,
      certificate.cert,
      BODY,
    ],
    { core: null },
  );
  const ms = Number(await child.readLine());
  await child.stop();
  return ms;
}

async function withGateway(
  command: readonly string[],
  far: Far,
  cores: Cores | null,
  measure: (port: number) => Promise<void>,
): Promise<void> {
  const folder = makeFolder();
  const file = writeFarConfig(folder, far);
  const child = start([...command, "serve", "--config", file, "--log", "off"], {
    core: cores?.proxy ?? null,
  });
  await measure(await readReadyPort(child));
  await child.stop();
  folder.remove();
}

function writeFarConfig({ path }: Folder, { port, certificate }: Far): string {
  const file = join(path, "gateway.yaml");
  const config = {
    listen: { port: 0 },
    channels: {
      far: {
        platform: "messages",
        base_url: `https://localhost:${port}`,
        ca: certificate.cert,
        credential: "credential",
      },
    },
    groups: { far: { platform: "messages", channels: ["far"] } },
    keys: [{ name: "bench", group: "far", secret: SECRET }],
  };
  writeFileSync(file, JSON.stringify(config), { mode: 0o600 });
  return file;
}

async function measureNear(port: number, tripMs: number): Promise<Sample> {
  await Bun.sleep(REST_MS);
  const first = await ask(port);
  const steady: number[] = [];
  for (let times = 0; times < TIMES; times += 1) steady.push(await ask(port));
  await Bun.sleep(REST_MS);
  const together = await askTogether(port);
  await Bun.sleep(REST_MS);
  const again = await askTogether(port);
  return {
    "far: first byte ms, first request": first,
    "far: first byte ms, steady": readSpread(steady).median,
    ...describeCrowd("eight at once", together, tripMs),
    ...describeCrowd("eight again", again, tripMs),
  };
}

function askTogether(port: number): Promise<number[]> {
  return Promise.all(Array.from({ length: CROWD }, () => ask(port)));
}

/** A request that waits for a second round trip takes twice as long or more. */
function describeCrowd(name: string, times: readonly number[], tripMs: number): Sample {
  const { median, most } = readSpread(times);
  return {
    [`far: first byte ms, ${name}, median`]: median,
    [`far: first byte ms, ${name}, last`]: most,
    [`far: in one round trip, ${name}`]: times.filter((ms) => ms < 1.5 * tripMs).length,
  };
}

/** Before the pause, eight requests ran at once. */
async function measureAfter(port: number, pause: number, tripMs: number): Promise<Sample> {
  await askTogether(port);
  await Bun.sleep(pause);
  const first = await ask(port);
  const together = await askTogether(port);
  return {
    [`far: first byte ms, after ${pause / 1000} s`]: first,
    ...describeCrowd(`eight after ${pause / 1000} s`, together, tripMs),
  };
}

/** Milliseconds from the request to the first byte of the response, on a new connection. */
async function ask(port: number): Promise<number> {
  const socket = await open(port);
  try {
    return await time(socket);
  } finally {
    socket.destroy();
  }
}

function time(socket: Socket): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  socket.once("error", reject);
  const began = performance.now();
  socket.once("data", (bytes: Buffer) => {
    const ms = performance.now() - began;
    socket.off("error", reject);
    if (bytes.toString("latin1").startsWith("HTTP/1.1 200")) resolve(ms);
    else reject(new Error(`the far upstream's answer: ${bytes.toString("latin1", 0, 200)}`));
  });
  socket.write(
    `POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nx-api-key: ${SECRET}\r\ncontent-type: application/json\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`,
  );
  return promise;
}

function open(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true });
    socket.once("connect", () => resolve(socket)).once("error", reject);
  });
}
