// The flags of `gateway serve`. run.ts does the work, and is loaded only when needed.

import { Command, InvalidArgumentError, Option } from "commander";
import { readListenHost } from "../../config/yaml/scalars.ts";
import { addExamples } from "../terminal/help-text.ts";
import type { ServeFlags } from "./run.ts";

export function serveCommand(): Command {
  const command = new Command("serve")
    .description("run the gateway")
    .option("--config <file>", "the config file")
    .option("--port <n>", "listen on this port instead of the config's (0: any free one)", readPort)
    .option("--host <host>", "listen on this address instead of the config's", readHost)
    .option("--demo", "use simulated upstreams: no config, account or network needed")
    .option("--curl", "with --demo: print every key, and a curl line for each endpoint")
    .addOption(
      new Option("--log <form>", "print a line for each request")
        .choices(["text", "json", "off"])
        .default("text"),
    )
    .action(async (flags: ServeFlags) => {
      const { serve } = await import("./run.ts");
      await serve(flags);
    });
  return addExamples(command, [
    ["gateway serve --demo", "try it without config, account or network"],
    ["gateway serve --demo --curl", "with a request to paste for each endpoint"],
    ["gateway serve", "use the default config"],
    [
      "gateway serve --config ~/gateway.yaml --log json > requests.jsonl",
      "log one JSON document per request",
    ],
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
    throw new InvalidArgumentError("A host is a name or an address without scheme and port.");
  }
}
