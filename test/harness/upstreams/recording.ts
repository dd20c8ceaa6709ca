// Runs `gateway serve --replay` as a child process.

import { makeTempFolder } from "../temp.ts";
import { PROGRAM } from "../program.ts";

export interface Replaying {
  readonly url: string;
  /** Ends the replay, and returns its exit status and what it has printed. */
  stop(): Promise<{ readonly status: number; readonly printed: string }>;
}

/** Starts a replay without a config, and with an empty home. `args`: more flags of `serve`. */
export async function startReplay(folder: string, ...args: string[]): Promise<Replaying> {
  const home = makeTempFolder();
  const child = Bun.spawn([...PROGRAM, "serve", "--replay", folder, "--port", "0", ...args], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    env: { ...process.env, GATEWAY_CONFIG: undefined, HOME: home.path, XDG_CONFIG_HOME: home.join("none") },
  });
  const errors = new Response(child.stderr).text();
  const ready = Promise.withResolvers<string>();
  let printed = "";
  const reading = (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of child.stdout) {
      printed += decoder.decode(chunk, { stream: true });
      const [, url] = /ready on (http:\S+)/.exec(printed) ?? [];
      if (url !== undefined) ready.resolve(url);
    }
    ready.reject(new Error(`${printed}${await errors}`));
  })();
  const stop = async () => {
    child.kill("SIGTERM");
    const status = await child.exited;
    await reading;
    home.remove();
    return { status, printed: printed + (await errors) };
  };
  return { url: await ready.promise, stop };
}
