// `gateway serve`: its flags. What it does is serve-run.ts, loaded only when asked for.

import { Command, InvalidArgumentError, Option } from "commander";
import { readListenHost } from "../../config/scalars.ts";
import { addExamples } from "../examples.ts";
import type { LogForm } from "../live/request-log.ts";

export interface ServeFlags {
  readonly config?: string;
  readonly port?: number;
  readonly host?: string;
  readonly demo?: true;
  readonly log: LogForm;
}

export function serveCommand(): Command {
  const command = new Command("serve")
    .description("run the gateway")
    .option("--config <file>", "the config file")
    .option("--port <n>", "listen on this port instead of the config's (0: any free one)", readPort)
    .option("--host <host>", "listen on this address instead of the config's", readHost)
    .option("--demo", "run with simulated upstreams: no config, no account, no network")
    .addOption(
      new Option("--log <form>", "a line for each request").choices(["text", "json", "off"]).default("text"),
    )
    .action(async (flags: ServeFlags) => {
      const { serve } = await import("./serve-run.ts");
      await serve(flags);
    });
  return addExamples(command, [
    ["gateway serve --demo", "try it: no config, no account, no network"],
    ["gateway serve", "with the config that is found"],
    ["gateway serve --config ~/gateway.yaml --log json > requests.jsonl", "a JSON document for each request"],
  ]);
}

function readPort(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535)
    throw new InvalidArgumentError("A port is a number from 0 to 65535.");
  return port;
}

function readHost(text: string): string {
  try {
    return readListenHost(text);
  } catch {
    throw new InvalidArgumentError("A host is a name or an address, without scheme and port.");
  }
}
