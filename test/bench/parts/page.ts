// The page without a browser: what it loads from the gateway, signed in as it is.

import { type Overview, type SignedIn, TOKEN_HEADER } from "../../../src/web/api.ts";

const POLL_MS = 50;
export const OVERVIEW = "overview?period=30d&by=model";
/** It reads the whole ledger each time. */
export const REPORT = "sessions?period=30d";

export interface Page {
  /** What the page would load. Throws if it is refused. */
  readonly load: (name: string, signal?: AbortSignal) => Promise<Response>;
}

/** `command` starts the program. The gateway of this config runs. */
export async function signIn(command: readonly string[], config: string): Promise<Page> {
  const opened = Bun.spawn([...command, "open", "--print", "--config", config], { stdout: "pipe" });
  const link = new URL((await opened.stdout.text()).trim());
  const api = `${link.origin}/console/api/`;
  const own = { origin: link.origin, "sec-fetch-site": "same-origin" };
  const answer = await fetch(`${api}sign-in`, {
    method: "POST",
    headers: { ...own, "content-type": "application/json" },
    body: JSON.stringify({ code: link.hash.slice("#code=".length) }),
  });
  const [cookie = ""] = (answer.headers.get("set-cookie") ?? "").split(";");
  const { token }: SignedIn = JSON.parse(await answer.text());
  const headers = { ...own, cookie, [TOKEN_HEADER]: token };
  return {
    load: async (name, signal) => {
      const loaded = await fetch(api + name, signal === undefined ? { headers } : { headers, signal });
      if (!loaded.ok) throw new Error(`${name}: ${await loaded.text()}`);
      return loaded;
    },
  };
}

/** Loads the overview until the whole ledger is in it. */
export async function readAll({ load }: Page): Promise<void> {
  for (;;) {
    const { read }: Overview = JSON.parse(await (await load(OVERVIEW)).text());
    if (read === 1) return;
    await Bun.sleep(POLL_MS);
  }
}

/** Reads the live feed until it is aborted. */
export async function followFeed({ load }: Page, signal: AbortSignal): Promise<void> {
  try {
    await (await load("live", signal)).text();
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
