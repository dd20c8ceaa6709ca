// What an operator does with commands: through the control socket of the running gateway, or while it is stopped.

import { createHash } from "node:crypto";
import { type Happening, hasBadDisk } from "./plan/plan.ts";
import type { World } from "./run.ts";
import { CONFIG, LEDGER } from "./world/config.ts";
import { Killed, SimProcess } from "./world/process.ts";

/** A channel that was disabled by a command. */
export interface Pause {
  readonly channel: string;
  readonly from: number;
  /** When it was enabled again; infinite: it was not. */
  until: number;
  /** The process that got the command. A kill may lose it. */
  readonly process: SimProcess;
}

type Command = Extract<Happening, { kind: "command" }>;
type Reprice = Extract<Happening, { kind: "reprice" }>;

export class Operator {
  readonly pauses: Pause[] = [];
  /** The ids of corrections that no gateway wrote. */
  readonly forged: string[] = [];
  readonly #world: World;
  #repricings = 0;

  constructor(world: World) {
    this.#world = world;
  }

  command({ channel, action }: Pick<Command, "channel" | "action">): void {
    const { process, scheduler } = this.#world;
    if (process === null || process.control === null || process.dead) return;
    if (process.frozenUntil > scheduler.now) return;
    process.control("POST", `/channels/${channel}/${action}`).then(
      ({ status }) => this.#note(process, channel, action, status),
      (error: unknown) => {
        if (!process.dead) this.#world.accuse("control", `The command ${action} fails: ${String(error)}`);
      },
    );
  }

  #note(process: SimProcess, channel: string, action: Command["action"], status: number): void {
    if (process.dead) return;
    const { scheduler } = this.#world;
    scheduler.note(`command: ${action} ${channel} is answered with ${status}`);
    // 409: the channel is disabled in the config.
    if (status !== 200 && status !== 409)
      this.#world.accuse("control", `The command ${action} ${channel} is answered with ${status}.`);
    if (status !== 200) return;
    if (action === "disable")
      this.pauses.push({ channel, from: scheduler.now, until: Number.POSITIVE_INFINITY, process });
    if (action === "enable" && process === this.#world.process) this.#checkOpen(channel, "was enabled");
    if (action === "enable")
      for (const pause of this.pauses)
        if (pause.channel === channel) pause.until = Math.min(pause.until, scheduler.now);
  }

  /** A new credential begins without the cooldowns of the one before. */
  checkRenewed(): void {
    const { renewed, upstreams, served } = this.#world;
    for (const channel of renewed) {
      const used = served?.running.gateway.catalog.channels.get(channel)?.credential;
      if (used !== upstreams.get(channel)?.credential) continue;
      renewed.delete(channel);
      this.#checkOpen(channel, "has a new credential");
    }
  }

  /** Every cooldown of the channel has ended, those of single models too. */
  #checkOpen(channel: string, why: string): void {
    const { gateway } = this.#world.served?.running ?? {};
    if (gateway === undefined) return;
    const view = gateway.channels.view(gateway.catalog, gateway.now()).find(({ name }) => name === channel);
    if (view?.until)
      this.#world.accuse("control", `The channel ${channel} ${why}, but is ${view.state}: ${view.reason}`);
  }

  /** Enables all channels again that commands have disabled. */
  enableAll(): void {
    const { gateway } = this.#world.served?.running ?? {};
    if (gateway === undefined) return;
    for (const { name, state } of gateway.channels.view(gateway.catalog, gateway.now()))
      if (state === "disabled") this.command({ channel: name, action: "enable" });
  }

  /** Somebody opens a spent limit again: a correction with the right hash says that a request cost nothing. */
  forge(): void {
    const inode = this.#world.disk.find(LEDGER);
    const texts = inode?.content.toString().split("\n").slice(0, -1) ?? [];
    const lines = texts.map((text): Record<string, unknown> => JSON.parse(text));
    const target = lines.findLast(
      ({ charge_usd: charge, corrects }) => Number(charge) > 0 && corrects === undefined,
    );
    if (inode === undefined || target === undefined) return;
    const id = `cor_forged${this.forged.length}`;
    const { time, key, group, platform, channel, model, multiplier, official_usd, charge_usd } = target;
    const nothing = {
      usage: {},
      prices: {},
      price_source: null,
      tier: null,
      official_usd: "0",
      multiplier,
      charge_usd: "0",
    };
    const origin = {
      id,
      time,
      corrects: target["id"],
      request_time: time,
      key,
      group,
      platform,
      channel,
      model,
    };
    const prev = createHash("sha256").update(texts.at(-1)!).digest("hex");
    const line = { v: 1, ...origin, ...nothing, was: { official_usd, charge_usd }, prev };
    inode.write(inode.size, Buffer.from(`${JSON.stringify(line)}\n`));
    this.forged.push(id);
  }

  /** Prices change: the gateway is stopped, earlier amounts are corrected, and the gateway is started again. */
  reprice({ graceMs, downMs, afterSteps }: Omit<Reprice, "atMs" | "kind">): void {
    const number = this.#repricings++;
    this.#world.stopGateway(graceMs, downMs, async () => {
      const world = this.#world;
      world.change({ dearer: true });
      const process = new SimProcess(world, `reprice${number}`, 7000 + number);
      if (afterSteps > 0) process.killAtStep = afterSteps;
      const death = new Promise<null>((resolve) => {
        process.onDeath = () => resolve(null);
      });
      try {
        const left = await Promise.race([world.load(process).reprice(CONFIG), death]);
        if (left === null) return;
        world.scheduler.note(`reprice: ${left} amounts are still to be corrected`);
        if (left > 0)
          world.accuse("reprice", `After a repricing, a second one would still correct ${left} amounts.`);
      } catch (error) {
        world.scheduler.note(`reprice: ${error instanceof Error ? error.message : String(error)}`);
        const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
        const expected = error instanceof Killed || process.dead || isOfBadDisk(world, text);
        if (!expected) world.accuse("reprice", `A repricing fails: ${text}`);
      }
      process.kill("killed");
    });
  }
}

/** What failed while the disk was bad may be reported later. */
function isOfBadDisk(world: World, text: string): boolean {
  return world.isDiskTroubled() || (hasBadDisk(world.plan) && /EIO|ENOSPC/.test(text));
}
