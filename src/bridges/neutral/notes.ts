// What a conversion leaves out, and what it refuses. Both name the client's own field. A name is shown in a header, so only
// plain words pass.

import { GatewayError } from "../../lib/errors.ts";

const MAX_NOTES = 20;
const MAX_NAME_LENGTH = 60;

export class Notes {
  readonly #noted = new Set<string>();
  /** What the client calls each option. */
  readonly #names: Map<string, string>;

  constructor(names: ReadonlyMap<string, string>) {
    this.#names = new Map(names);
  }

  /** The client has used this one, of the fields for an option. */
  use(option: string, name: string): void {
    this.#names.set(option, name);
  }

  nameOf(option: string): string {
    return this.#names.get(option) ?? option;
  }

  /** Left out or changed, and nothing that the model sees depends on it. */
  add(name: string): void {
    if (this.#noted.size >= MAX_NOTES) return;
    const plain = name.replaceAll(/[^\w.:=[\]-]/g, "_").slice(0, MAX_NAME_LENGTH);
    this.#noted.add(plain);
  }

  /** `value`: the nearest that there is. */
  addOption(option: string, value?: number): void {
    this.add(value === undefined ? this.nameOf(option) : `${this.nameOf(option)}=${value}`);
  }

  list(): readonly string[] {
    return [...this.#noted];
  }
}

/** The code of a refusal after which clients send the conversation again, and all of it. */
export const NOT_KEPT = "previous_response_not_found";

/** The answer would not be what the client asks for. */
export function refuseField(param: string, why: string, wireCode = "unsupported_parameter"): never {
  throw new GatewayError("unsupported", `${param}: ${why}`, { param, wireCode });
}

export function refuseBody(param: string, why: string, wireCode = "invalid_value"): never {
  throw new GatewayError("bad_request", `${param}: ${why}`, { param, wireCode });
}
