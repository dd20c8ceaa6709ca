// Saves what is remembered of channels in a file next to the ledger, so that cooldowns survive a restart. A lost file does
// no harm.

import { z } from "zod";
import { parseJson } from "../../lib/json/json.ts";
import { readOwn, replaceFile } from "../../lib/files/own-file.ts";
import { type ChannelMemory, createMemory, type Cooldown } from "./cooldown.ts";

const cooldownSchema = z.lazy(() =>
  z.object({
    state: z.enum(["resting", "unavailable"]),
    brief: z.string(),
    reason: z.string(),
    since: z.number(),
    /** Files of version 0.1 lack it. */
    begun: z.number().optional(),
    until: z.number(),
    told: z.boolean(),
    strikes: z.number(),
  }),
);

const memorySchema = z.lazy(() =>
  z.object({
    name: z.string(),
    identity: z.string(),
    disabled: z.boolean(),
    strikes: z.number(),
    rest: cooldownSchema.nullable(),
    models: z.array(z.tuple([z.string(), cooldownSchema])),
    window: z.array(z.number()),
    day: z.array(z.number()).default([]),
    last_answer: z.number(),
    last_failure: z.object({ at: z.number(), reason: z.string() }).nullable(),
    shown: z.object({ state: z.string(), since: z.number() }).nullable(),
  }),
);

const fileSchema = z.lazy(() => z.object({ v: z.literal(1), channels: z.array(memorySchema) }));

const DELAY_MS = 2000;

export class ChannelStore {
  readonly #path: string;
  readonly #list: () => Iterable<ChannelMemory>;
  readonly #clock: () => number;
  #timer: Timer | null = null;
  #isClosed = false;

  constructor(ledgerPath: string, list: () => Iterable<ChannelMemory>, clock: () => number) {
    this.#path = `${ledgerPath}.channels.json`;
    this.#list = list;
    this.#clock = clock;
  }

  /** Empty if there is no file, or none that can be read. */
  load(now: number): Map<string, ChannelMemory> {
    return read(this.#path, now);
  }

  /** Something has changed. It is written soon. */
  touch(): void {
    if (!this.#isClosed) this.#timer ??= setTimeout(() => this.flush(), DELAY_MS).unref();
  }

  /** Writes unwritten changes now. */
  flush(): void {
    if (this.#timer === null) return;
    clearTimeout(this.#timer);
    this.#timer = null;
    const channels = [...this.#list()].map((memory) => encode(memory, this.#clock()));
    try {
      replaceFile(this.#path, `${JSON.stringify({ v: 1, channels })}\n`);
    } catch {
      // The ledger reports a full disk.
    }
  }

  /** The answer to a probe may still come, when the file may belong to the next gateway. */
  close(): void {
    this.flush();
    this.#isClosed = true;
  }
}

type SavedMemory = z.infer<typeof memorySchema>;

function encode(memory: ChannelMemory, now: number): SavedMemory {
  const { name, identity, disabled, strikes, cooldown, shown } = memory;
  return {
    name,
    identity,
    disabled,
    strikes,
    rest: cooldown === null ? null : saveCooldown(cooldown),
    models: [...memory.models].map(([model, own]) => [model, saveCooldown(own)]),
    window: memory.window.hour.save(now),
    day: memory.window.day.save(now),
    last_answer: memory.lastAnswer,
    last_failure: memory.lastFailure,
    shown,
  };
}

function read(path: string, now: number): Map<string, ChannelMemory> {
  const memories = new Map<string, ChannelMemory>();
  for (const saved of readSaved(path)) {
    const memory = createMemory(saved.name, saved.identity);
    memory.disabled = saved.disabled;
    memory.strikes = saved.strikes;
    memory.cooldown = saved.rest === null ? null : restoreCooldown(saved.rest);
    for (const [model, own] of saved.models) memory.models.set(model, restoreCooldown(own));
    memory.window.hour.load(saved.window, now);
    memory.window.day.load(saved.day, now);
    memory.lastAnswer = saved.last_answer;
    memory.lastFailure = saved.last_failure;
    memory.shown = saved.shown;
    memories.set(saved.name, memory);
  }
  return memories;
}

/** The file keeps the field names of version 0.1.0. */
function saveCooldown({ untilIsGiven, ...cooldown }: Cooldown): z.infer<typeof cooldownSchema> {
  const { state, brief, reason, since, begun, until, strikes } = cooldown;
  return { state, brief, reason, since, begun, until, told: untilIsGiven, strikes };
}

function restoreCooldown({ told, ...saved }: z.infer<typeof cooldownSchema>): Cooldown {
  const { begun = saved.since } = saved;
  return { ...saved, begun, untilIsGiven: told, trialUntil: 0, afterBreaks: false, failure: null };
}

function readSaved(path: string): SavedMemory[] {
  try {
    const text = readOwn(path);
    return text === null ? [] : (fileSchema.safeParse(parseJson(text)).data?.channels ?? []);
  } catch {
    return [];
  }
}
