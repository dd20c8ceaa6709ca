// The memory of a response that is read whole. If it is large, the response waits for it: until then, its upstream is paused.

import type { Reservation } from "../../lib/memory/memory-budget.ts";
import { MAX_CONVERTED_BYTES } from "../upstream/answer.ts";
import type { Delivery } from "./delivery.ts";

/** While a body is joined and searched for secrets, and while it is parsed and converted. */
const COPIES = 2;
const COPIES_CONVERTED = 6;

export class LargeResponse {
  readonly #delivery: Delivery;
  #reservation: Reservation | null = null;

  constructor(delivery: Delivery) {
    this.#delivery = delivery;
  }

  /** The response is larger than those that are not counted. */
  readonly admit = async (): Promise<void> => {
    const { from, job, gateway } = this.#delivery;
    const bytes = Math.min(from.response.length ?? MAX_CONVERTED_BYTES, MAX_CONVERTED_BYTES);
    this.#reservation = await gateway.memory.reserve(
      bytes * (job.bridge === null ? COPIES : COPIES_CONVERTED),
    );
  };

  /** Only this much is left of it. */
  shrink(bytes: number): void {
    this.#reservation?.shrink(bytes);
  }

  /** Resolves when the client has taken it, or has left. */
  async sent(): Promise<void> {
    if (this.#reservation !== null) await this.#delivery.job.call.exchange.drained();
  }

  free(): void {
    this.#reservation?.free();
  }
}
