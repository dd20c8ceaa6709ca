// The bytes that the gateway allocates on the runtime's heap, exactly: for a request, a short stream, an event and a converted
// event. It runs without a collector and without the compiler, and its client and upstream take turns. So a number differs
// between two runs, and between machines, only by the heap's blocks of 16 KB. allocations.ts measures what a warm gateway
// allocates; that differs more.

import { join } from "node:path";
import { KB, type Sample } from "../bench.ts";
import { type Child, makeFolder, start } from "../machine.ts";
import { describeLayer } from "../targets/layers.ts";
import { readReadyPort, SECRET, writeGatewayConfig } from "../targets/targets.ts";
import { writeRequest } from "../wire/requests.ts";
import { openClient, TurnsUpstream, USER_AGENT } from "./turns.ts";

export const WHAT = "bytes before compilation";

const SHORT = 2;
const CROWD = 64;
const MESSAGES = {
  path: "/v1/messages",
  model: "claude-haiku-4-5",
  fields: { "x-api-key": SECRET },
} as const;
const CHAT = {
  path: "/v1/chat/completions",
  model: "gpt-5-mini",
  fields: { authorization: `Bearer ${SECRET}-responses` },
} as const;

type Way = typeof MESSAGES | typeof CHAT;

/** `requests`: only a request and a short stream, on one connection. */
export async function countAllocated(
  command: readonly string[],
  extent: "requests" | "all",
): Promise<Sample> {
  const folder = makeFolder();
  const upstream = new TurnsUpstream();
  const config = writeGatewayConfig(folder, upstream.port);
  const child = startCounted([command.at(-1) ?? "", "serve", "--config", config, "--log", "off"]);
  try {
    const counted = { child, port: await readReadyPort(child), upstream };
    const alone = await openClients(1, counted);
    const few = { ...(await countRequests(alone)) };
    if (extent === "requests") return few;
    const events = await countEvents(alone, 502);
    // The gateway closes connections that are not used for a while, so these are opened when they are needed.
    const crowd = await openClients(CROWD, counted);
    return { ...few, ...events, ...(await countRequests(crowd)), ...(await countEvents(crowd, 102)) };
  } finally {
    await child.stop();
    upstream.stop();
    folder.remove();
  }
}

/** The same for a program that is only a part of the gateway: a request, on one connection. */
export async function countLayer(name: string): Promise<Sample> {
  const folder = makeFolder();
  const upstream = new TurnsUpstream();
  const child = startCounted(describeLayer(name, upstream.port, folder));
  try {
    const counted = { child, port: Number(await child.readLine()), upstream };
    const { at, count } = await openClients(1, counted);
    return { [`${WHAT}, JSON request, ${at}`]: await count(MESSAGES, 0, 960) };
  } finally {
    await child.stop();
    upstream.stop();
    folder.remove();
  }
}

function startCounted(words: readonly string[]): Child {
  return start([process.execPath, join(import.meta.dir, "counted.ts"), ...words], {
    core: null,
    env: { BUN_JSC_useGC: "0", BUN_JSC_useJIT: "0" },
  });
}

interface Counted {
  readonly child: Child;
  readonly port: number;
  readonly upstream: TurnsUpstream;
}

interface Clients {
  readonly at: string;
  /** Bytes for each request, after a quarter as many for the first time. */
  readonly count: (way: Way, words: number, times: number) => Promise<number>;
}

async function openClients(connections: number, { child, port, upstream }: Counted): Promise<Clients> {
  const opening = Array.from({ length: connections }, (_, client) =>
    openClient(port, () => upstream.sendNext(client)),
  );
  const clients = await Promise.all(opening);
  return {
    at: `${connections} connection${connections === 1 ? "" : "s"}`,
    count: async (way, words, times) => {
      const ask = async (rounds: number): Promise<void> => {
        for (let round = 0; round < rounds; round += 1)
          await Promise.all(clients.map((client, number) => client.ask(writeTurn(way, words, number, port))));
      };
      const rounds = Math.ceil(times / connections);
      await ask(Math.ceil(rounds / 4));
      const before = await readHeap(child);
      await ask(rounds);
      return ((await readHeap(child)) - before) / (rounds * connections);
    },
  };
}

async function countRequests({ at, count }: Clients): Promise<Sample> {
  return {
    [`${WHAT}, JSON request, ${at}`]: await count(MESSAGES, 0, 240),
    [`${WHAT}, stream of two events, ${at}`]: await count(MESSAGES, SHORT, 48),
  };
}

async function countEvents({ at, count }: Clients, long: number): Promise<Sample> {
  const countEvent = async (way: Way): Promise<number> => {
    const short = await count(way, SHORT, 48);
    return ((await count(way, long, 12)) - short) / (long - SHORT);
  };
  return {
    [`${WHAT}, event, ${at}`]: await countEvent(MESSAGES),
    [`${WHAT}, converted event, ${at}`]: await countEvent(CHAT),
  };
}

/** Zero words: no stream. */
function writeTurn({ path, model, fields }: Way, words: number, client: number, port: number): Buffer {
  const kind = words === 0 ? "json" : "events";
  const request = writeRequest({
    kind,
    port,
    path,
    model,
    fields: { ...fields, "user-agent": `${USER_AGENT}${client}` },
    bytes: KB,
  });
  // The prompt has the number of words in place of as many of its letters.
  const note = ` words: ${words} `;
  const text = request.toString("latin1");
  const at = text.indexOf("all work");
  return Buffer.from(text.slice(0, at) + note + text.slice(at + note.length), "latin1");
}

async function readHeap(child: Child): Promise<number> {
  void child.process.stdin.write("\n");
  void child.process.stdin.flush();
  for (let line = await child.readLine(); line !== null; line = await child.readLine()) {
    const bytes = /^heap: (\d+)/.exec(line)?.[1];
    if (bytes !== undefined) return Number(bytes);
  }
  throw new Error(`the gateway has ended: ${child.complaints()}`);
}
