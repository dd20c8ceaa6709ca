// What a conversion leaves out or refuses, by the client's own field. A header shows the names, so
// only plain words pass.

import { GatewayError } from "../../lib/errors.ts";

const MAX_NOTES = 20;
const MAX_NAME_LENGTH = 60;

export class Notes {
  readonly #noted = new Set<string>();
  /** The client's name of each option. */
  readonly #names: Map<string, string>;

  constructor(names: ReadonlyMap<string, string>) {
    this.#names = new Map(names);
  }

  /** Of several fields for an option, the client used this one. */
  use(option: string, name: string): void {
    this.#names.set(option, name);
  }

  nameOf(option: string): string {
    return this.#names.get(option) ?? option;
  }

  /** Notes a field that was left out or changed without effect on what the model sees. */
  add(name: string): void {
    if (this.#noted.size >= MAX_NOTES) return;
    const plain = name.replaceAll(/[^\w.:=[\]-]/g, "_").slice(0, MAX_NAME_LENGTH);
    this.#noted.add(plain);
  }

  /** `value`: the nearest possible value. */
  addOption(option: string, value?: number): void {
    this.add(value === undefined ? this.nameOf(option) : `${this.nameOf(option)}=${value}`);
  }

  list(): readonly string[] {
    return [...this.#noted];
  }
}

/** After this code, clients send the complete conversation again. */
export const NOT_KEPT = "previous_response_not_found";

/** For a field whose loss would change the answer. */
export function refuseField(param: string, why: string, wireCode = "unsupported_parameter"): never {
  throw new GatewayError("unsupported", `${param}: ${why}`, { param, wireCode });
}

export function refuseBody(param: string, why: string, wireCode = "invalid_value"): never {
  throw new GatewayError("bad_request", `${param}: ${why}`, { param, wireCode });
}
