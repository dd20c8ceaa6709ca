// What a conversion leaves out or refuses. A header shows the names.

import { GatewayError } from "../../lib/errors.ts";
import { isObject } from "../../lib/json/json.ts";

export type Json = Record<string, unknown>;

const MAX_NOTES = 20;
const MAX_NAME_LENGTH = 60;

export class Notes {
  readonly #noted = new Set<string>();
  readonly #names: Map<string, string>;

  constructor(names: ReadonlyMap<string, string>) {
    this.#names = new Map(names);
  }

  /** Several fields can set one option. Notes name the field that did. */
  use(option: string, name: string): void {
    this.#names.set(option, name);
  }

  nameOf(option: string): string {
    return this.#names.get(option) ?? option;
  }

  add(name: string): void {
    if (this.#noted.size >= MAX_NOTES) return;
    const plain = name.replaceAll(/[^\w.:=[\]-]/g, "_").slice(0, MAX_NAME_LENGTH);
    this.#noted.add(plain);
  }

  /** `value` is what the upstream gets instead of the client's value. */
  addOption(option: string, value?: number): void {
    this.add(value === undefined ? this.nameOf(option) : `${this.nameOf(option)}=${value}`);
  }

  list(): readonly string[] {
    return [...this.#noted];
  }
}

/** After this code, clients send the whole conversation. */
export const NOT_KEPT = "previous_response_not_found";

export function refuseField(param: string, why: string, wireCode = "unsupported_parameter"): never {
  throw new GatewayError("unsupported", `${param}: ${why}`, { param, wireCode });
}

export function refuseBody(param: string, why: string, wireCode = "invalid_value"): never {
  throw new GatewayError("bad_request", `${param}: ${why}`, { param, wireCode });
}

export function isAbsent(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}

export function requireRecord(value: unknown, path: string): Json {
  return isObject(value) ? value : refuseBody(path, "expected an object.", codeOf(value));
}

export function requireList(value: unknown, path: string): readonly unknown[] {
  if (!Array.isArray(value)) refuseBody(path, "expected a list.", codeOf(value));
  return value.length > 0 ? value : refuseBody(path, "the list is empty.", "empty_array");
}

export function eachRecord(
  list: readonly unknown[],
  path: string,
  take: (item: Json, place: string, index: number) => void,
): void {
  for (const [index, item] of list.entries()) {
    const place = `${path}[${index}]`;
    take(requireRecord(item, place), place, index);
  }
}

export function refuseStored(path: string): never {
  refuseField(path, "this file is in another provider's store.");
}

function codeOf(value: unknown): string {
  return value === undefined ? "missing_required_parameter" : "invalid_type";
}
