// Which view is shown. Each view has an address, for links and reloads.

import { useEffect, useState } from "preact/hooks";

export interface Route {
  /** The path after /console, in decoded parts. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

const ROOT = "/console";
const listeners = new Set<() => void>();

export function hrefOf(path: readonly string[], query: Readonly<Record<string, string>> = {}): string {
  const text = new URLSearchParams(query).toString();
  return [ROOT, ...path.map(encodeURIComponent)].join("/") + (text === "" ? "" : `?${text}`);
}

export function go(href: string, how: "push" | "replace" = "push"): void {
  if (how === "push") history.pushState(null, "", href);
  else history.replaceState(null, "", href);
  for (const see of listeners) see();
}

export function useRoute(): Route {
  const [, setHref] = useState(location.href);
  useEffect(() => {
    const see = (): void => setHref(location.href);
    see();
    listeners.add(see);
    addEventListener("popstate", see);
    return () => {
      listeners.delete(see);
      removeEventListener("popstate", see);
    };
  }, []);
  return readRoute();
}

function readRoute(): Route {
  const parts = location.pathname
    .slice(ROOT.length)
    .split("/")
    .filter((part) => part !== "");
  return { path: parts.map(decode), query: new URLSearchParams(location.search) };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function followLinks(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey)
    return;
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (link === null || link.target !== "" || !isView(link) || isPlaceHere(link)) return;
  event.preventDefault();
  go(link.href);
}

function isView({ origin, pathname }: HTMLAnchorElement): boolean {
  return origin === location.origin && (pathname === ROOT || pathname.startsWith(`${ROOT}/`));
}

/** The browser itself moves the focus to a place of this page. */
function isPlaceHere({ hash, pathname, search }: HTMLAnchorElement): boolean {
  return hash !== "" && pathname === location.pathname && search === location.search;
}
