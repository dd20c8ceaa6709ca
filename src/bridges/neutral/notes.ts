// What a conversion leaves out, and what it refuses. Both name the client's own field. A name is shown in a header, so only
// plain words pass.

import { GatewayError } from "../../lib/errors.ts";

const MAX_NOTES = 20;
const MAX_NAME_LENGTH = 60;

export class Notes {
  readonly #names = new Set<string>();

  /** Left out or changed, and nothing that the model sees depends on it. */
  add(name: string): void {
    if (this.#names.size >= MAX_NOTES) return;
    const plain = name.replaceAll(/[^\w.:=[\]-]/g, "_").slice(0, MAX_NAME_LENGTH);
    this.#names.add(plain);
  }

  list(): readonly string[] {
    return [...this.#names];
  }
}

/** The code of a refusal after which clients send the conversation again, and all of it. */
export const NOT_KEPT = "previous_response_not_found";

/** The answer would not be what the client asks for. */
export function refuseField(param: string, why: string, wireCode = "unsupported_parameter"): never {
  throw new GatewayError("unsupported", `${param}: ${why}`, { param, wireCode });
}

export function refuseBody(param: string, why: string): never {
  throw new GatewayError("bad_request", `${param}: ${why}`, { param, wireCode: "invalid_value" });
}
