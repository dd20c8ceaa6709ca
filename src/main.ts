#!/usr/bin/env bun
// The command tree, one line a command; an error becomes a sentence and an exit status.

import { Command } from "commander";
import { serveCommand } from "./cli/serve.ts";
import { VERSION } from "./lib/version.ts";

const program = new Command("gateway").version(VERSION).description("One local gateway between your AI tools and the platforms that serve models.");
program.addCommand(serveCommand());
await program.parseAsync();
