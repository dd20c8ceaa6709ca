// Which requests a view shows. The address and links keep the scope.

import type { Filter } from "../../../billing/reports/sums.ts";
import { type FilterName, FILTERS } from "../../../billing/reports/words.ts";
import { DEFAULT_PERIOD } from "../../api.ts";
import { hrefOf, type Route } from "./route.ts";

export interface ViewScope {
  readonly period: string;
  readonly filters: Filter;
}

export function readScope({ query }: Route): ViewScope {
  const filters = FILTERS.flatMap((name) => (query.has(name) ? [[name, query.get(name)]] : []));
  return { period: query.get("period") ?? DEFAULT_PERIOD, filters: Object.fromEntries(filters) };
}

function writeScope({ period, filters }: ViewScope): Record<string, string> {
  const set = FILTERS.flatMap((name) => (filters[name] === undefined ? [] : [[name, filters[name]]]));
  return { period, ...Object.fromEntries(set) };
}

type Query = Readonly<Record<string, string>>;

export function askScoped(scope: ViewScope, more: Query = {}): string {
  return new URLSearchParams({ ...writeScope(scope), ...more }).toString();
}

export function hrefScoped(path: readonly string[], scope: ViewScope, more: Query = {}): string {
  return hrefOf(path, { ...writeScope(scope), ...more });
}

export function hrefFrom(route: Route, path: readonly string[]): string {
  const isScoped = ["period", ...FILTERS].some((name) => route.query.has(name));
  return isScoped ? hrefScoped(path, readScope(route)) : hrefOf(path);
}

export function narrow(scope: ViewScope, name: FilterName, value: string): ViewScope {
  return { ...scope, filters: { ...scope.filters, [name]: value } };
}

export function widen({ period, filters }: ViewScope, name: FilterName): ViewScope {
  const { [name]: _, ...others } = filters;
  return { period, filters: others };
}
