// What an operator does with commands, through the control socket of the running gateway.

import type { Happening } from "./plan/plan.ts";
import type { World } from "./run.ts";
import type { SimProcess } from "./world/process.ts";

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

export class Operator {
  readonly pauses: Pause[] = [];
  readonly #world: World;

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
}
