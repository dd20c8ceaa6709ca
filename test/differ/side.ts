// Runs one of the two executables, with its own folder, ledger and upstream. Both executables get the same config and traffic.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { listModels } from "./dialects.ts";
import {
  type Ask,
  ask,
  fieldOf,
  type Fields,
  type Got,
  type Received,
  type Script,
  startUpstream,
  type Upstream,
} from "./wire.ts";

export type Section = Readonly<Record<string, unknown>>;

export interface Step {
  readonly method?: string;
  readonly target: string;
  readonly fields?: Fields;
  /** An object is sent as JSON. */
  readonly body?: object | string | Buffer;
  /** The field in which the key comes. Null: no key. */
  readonly keyIn?: string | null;
  /** The upstream's scripts, one for each request that it gets. */
  readonly scripts?: readonly Script[];
  /** The client leaves after it has received `text`, or, with `asked`, after the upstream got the request. */
  readonly leave?: { readonly text: string } | "asked";
  /** The name of the recording that the step sends or gets. */
  readonly note?: string;
}

/** A scenario has its own channels, group and key, so that it changes no other scenario. */
export interface Scenario {
  /** Also the name of the group and the key. */
  readonly name: string;
  readonly group: Section;
  /** The channels by short name. The base URL of a channel ends in this name. With `at: nobody`, nobody
   *  listens at that URL. With `at: socket`, the upstream of WebSockets listens there. */
  readonly channels: Readonly<Record<string, Section>>;
  readonly key?: Section;
  readonly steps: readonly Step[];
}

export interface Outcome {
  readonly got: readonly Got[];
  /** The requests that the upstream received in each step. */
  readonly received: readonly (readonly Received[])[];
  /** The requests for lists of models, each once. */
  readonly lists: readonly string[];
}

const digest = (text: string): string =>
  new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, 32);
/** The secret of a key, or the credential of a channel. It is a hash, because the gateway would hide words
 *  of a readable secret in the texts of errors. */
export const secretOf = (name: string): string => `sk-${digest(name)}`;
/** A step's name. The step's lines in the ledger have it as their label. */
export const labelOf = ({ name, steps }: Scenario, step: number): string =>
  [`${name}.${step + 1}`, steps[step]?.note ?? []].flat().join("-").slice(0, 120);

export const envOf = (folder: string): Record<string, string> => ({
  PATH: process.env["PATH"] ?? "",
  HOME: folder,
  TZ: "UTC",
  NO_COLOR: "1",
});

interface Running {
  readonly queue: Script[];
  received: Received[];
  readonly lists: Set<string>;
  arrived: () => void;
  /** Requests that are being answered. */
  open: number;
  settled: () => void;
}

const UNSCRIPTED: Script = { status: 599, pieces: ["nothing is scripted"] };

export class Side {
  readonly name: string;
  readonly executable: string;
  readonly folder: string;
  port = 0;
  upstreamPort = 0;
  socketPort = 0;
  #upstream: Upstream | undefined;
  #child: Bun.Subprocess | undefined;
  #scenarios: readonly Scenario[] = [];
  readonly #running = new Map<string, Running>();

  constructor(name: string, executable: string, folder: string) {
    this.name = name;
    this.executable = executable;
    this.folder = folder;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  }

  get config(): string {
    return join(this.folder, "gateway.yaml");
  }

  /** Starts the upstream, writes the config, starts the gateway. */
  async start(scenarios: readonly Scenario[], more: Section): Promise<void> {
    this.#scenarios = scenarios;
    this.#upstream = await startUpstream((received) => this.#choose(received));
    this.upstreamPort = this.#upstream.port;
    writeFileSync(this.config, JSON.stringify(this.#writeConfig(scenarios, more), null, 1), { mode: 0o600 });
    await this.serve();
  }

  /** Starts the gateway again, with other settings in its config. */
  async restart(more: Section): Promise<void> {
    const config: Section = JSON.parse(readFileSync(this.config, "utf8"));
    writeFileSync(this.config, JSON.stringify({ ...config, ...more }, null, 1));
    await this.serve();
  }

  /** Resolves when the upstream gets a request of this scenario. */
  asked(name: string): Promise<void> {
    const running = this.#of(name);
    return running.open > 0 ? Promise.resolve() : new Promise((resolve) => (running.arrived = resolve));
  }

  #writeConfig(scenarios: readonly Scenario[], more: Section): Section {
    const channels: Record<string, Section> = {};
    const groups: Record<string, Section> = {};
    const keys: Section[] = [];
    for (const { name, group, channels: own, key } of scenarios) {
      const names = Object.keys(own).map((short) => `${name}-${short}`);
      for (const [short, { at, ...section }] of Object.entries(own)) {
        const port = at === "socket" ? this.socketPort : at === "nobody" ? 9 : this.upstreamPort;
        const base_url = `http://127.0.0.1:${port}/${name}/${short}`;
        channels[`${name}-${short}`] = { base_url, credential: secretOf(`${name}-${short}`), ...section };
      }
      groups[name] = { channels: names, ...group };
      keys.push({ name, group: name, secret: secretOf(name), ...key });
    }
    return { listen: { port: 0 }, ...more, channels, groups, keys };
  }

  async serve(): Promise<void> {
    const log = join(this.folder, "log.txt");
    const child = Bun.spawn([this.executable, "serve", "--config", this.config, "--log", "json"], {
      env: envOf(this.folder),
      stdin: "ignore",
      stdout: Bun.file(join(this.folder, "out.txt")),
      stderr: "pipe",
    });
    this.#child = child;
    let text = "";
    const decoder = new TextDecoder();
    const reader = child.stderr.getReader();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) throw new Error(`${this.executable} serve ended before it was ready:\n${text}`);
      text += decoder.decode(value, { stream: true });
      const ready = /ready on http:\/\/[^\s]*?:(\d+)/.exec(text);
      if (ready === null) continue;
      this.port = Number(ready[1]);
      break;
    }
    void (async () => {
      for (let more = await reader.read(); !more.done; more = await reader.read())
        text += decoder.decode(more.value);
      writeFileSync(log, text);
    })();
  }

  /** Resolves with the exit status. */
  async end(signal: "SIGTERM" | "SIGKILL"): Promise<number> {
    this.#child?.kill(signal);
    return (await this.#child?.exited) ?? 0;
  }

  async stop(): Promise<void> {
    await this.end("SIGKILL");
    this.#upstream?.stop();
  }

  #of(name: string): Running {
    const found = this.#running.get(name);
    if (found !== undefined) return found;
    const made: Running = {
      queue: [],
      received: [],
      lists: new Set(),
      arrived: () => {},
      open: 0,
      settled: () => {},
    };
    this.#running.set(name, made);
    return made;
  }

  #choose(received: Received): { script: Script; done: () => void } {
    const running = this.#of(received.target.split("/")[1] ?? "");
    if (received.method === "GET" && /\/models(?:\?|$)/.test(received.target)) {
      running.lists.add(
        JSON.stringify([received.target, received.fields.filter(([name]) => /key|auth/i.test(name))]),
      );
      return { script: listModels(received.target), done: () => {} };
    }
    running.received.push(received);
    running.open += 1;
    running.arrived();
    const done = (): void => {
      running.open -= 1;
      running.settled();
    };
    return { script: running.queue.shift() ?? UNSCRIPTED, done };
  }

  async run(scenario: Scenario): Promise<Outcome> {
    const { name, steps } = scenario;
    const running = this.#of(name);
    const got: Got[] = [];
    const received: (readonly Received[])[] = [];
    for (const [index, step] of steps.entries()) {
      running.queue.splice(0, Infinity, ...(step.scripts ?? []).map((script) => renameIds(script, name)));
      const asked = new Promise<void>((resolve) => (running.arrived = resolve));
      const leave = step.leave === "asked" ? asked : step.leave?.text;
      got.push(await ask(this.port, { ...buildAsk(scenario, index, step), leave }));
      // The next step waits until the upstream has finished, even if the client has left early.
      while (running.open > 0) await new Promise<void>((resolve) => (running.settled = resolve));
      received.push(running.received);
      running.received = [];
    }
    return { got, received, lists: [...running.lists].toSorted() };
  }

  /** Runs the scenarios whose names match. */
  async runSome(names: RegExp): Promise<void> {
    for (const scenario of this.#scenarios) if (names.test(scenario.name)) await this.run(scenario);
  }

  /** Reads the lines of the ledger, oldest first. */
  lines(): Section[] {
    const files = readdirSync(this.folder).filter((file) => /^ledger.*\.jsonl$/.test(file));
    const names = files.toSorted(
      (a, b) => Number(a === "ledger.jsonl") - Number(b === "ledger.jsonl") || (a < b ? -1 : 1),
    );
    return names.flatMap((file) =>
      readFileSync(join(this.folder, file), "utf8")
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line)),
    );
  }
}

/** Makes the ids of responses differ between scenarios, because the gateway remembers these ids. */
const ownId = (text: string, name: string): string =>
  text.replaceAll("resp_01ABC", `resp_${digest(name).slice(0, 8)}`);

function renameIds(script: Script, name: string): Script {
  const { pieces = [] } = script;
  return {
    ...script,
    pieces: pieces.map((piece) => (typeof piece === "string" ? ownId(piece, name) : piece)),
  };
}

function buildAsk(scenario: Scenario, index: number, step: Step): Ask {
  const {
    method = step.body === undefined ? "GET" : "POST",
    target,
    fields = [],
    body = "",
    keyIn = "authorization",
  } = step;
  const secret = secretOf(scenario.name);
  const key: Fields =
    keyIn === null ? [] : [[keyIn, keyIn === "authorization" ? `Bearer ${secret}` : secret]];
  const bytes =
    typeof body === "string" || Buffer.isBuffer(body) ? Buffer.from(body) : Buffer.from(JSON.stringify(body));
  const type: Fields =
    bytes.length > 0 && fieldOf(fields, "content-type") === undefined
      ? [["content-type", "application/json"]]
      : [];
  const label: Fields = [["x-gateway-label", labelOf(scenario, index)]];
  const given = [...label, ...type, ...fields, ...key];
  return { method, target: ownId(target, scenario.name), fields: given, body: bytes };
}
