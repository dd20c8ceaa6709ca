#!/usr/bin/env node
// Starts the executable of this machine's platform. npm has installed it as an optional dependency.
"use strict";

const { spawn } = require("node:child_process");
const { existsSync, readdirSync } = require("node:fs");
const { dirname, join } = require("node:path");

/** Alpine and some others have musl as their C library. */
function isMusl() {
  const { header } = process.report?.getReport() ?? {};
  if (header !== undefined) return header.glibcVersionRuntime === undefined;
  return existsSync("/lib") && readdirSync("/lib").some((name) => name.startsWith("ld-musl-"));
}

/** Beside this package, or in it. Node would search every folder above, and NODE_PATH: those may belong to anybody. */
function listPlaces(own, name) {
  if (process.versions.pnp) return [dirname(require.resolve(`${name}/package.json`))];
  const root = dirname(__dirname);
  return [join(root, "node_modules", name), join(root, ...own.split("/").map(() => ".."), name)];
}

function findExecutable() {
  const { platform, arch } = process;
  const system = platform === "win32" ? "windows" : platform;
  const libc = platform === "linux" && isMusl() ? "-musl" : "";
  const own = require("../package.json");
  const name = `${own.name}-${system}-${arch}${libc}`;
  const hasOwnVersion = (folder) =>
    existsSync(join(folder, "package.json")) && require(join(folder, "package.json")).version === own.version;
  const found = listPlaces(own.name, name).find(hasOwnVersion);
  if (found !== undefined) return join(found, platform === "win32" ? "gateway.exe" : "gateway");
  console.error(
    `gateway: there is no executable for ${system}-${arch}${libc}: the package ${name} ${own.version} is not installed.\n` +
      "npm installs it as an optional dependency. Install again without --omit=optional, on the machine that runs it.",
  );
  process.exit(1);
}

const path = findExecutable();
const args = process.argv.slice(2);
// Hints name the command that the user knows.
process.env.GATEWAY_LAUNCHER = process.argv[1];

// Newer versions of Node can become the executable.
if (typeof process.execve === "function" && process.platform !== "win32") {
  try {
    process.execve(path, [path, ...args], process.env);
  } catch {
    // Then it is a child.
  }
}

let child;
// Before the child starts: a signal that comes in between would end this process alone.
// At Ctrl-C, the terminal sends the signal to both. To send it on would make it the second one.
process.on("SIGINT", () => process.stdin.isTTY || child.kill("SIGINT"));
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child = spawn(path, args, { stdio: "inherit" });
child.once("error", (error) => {
  console.error(`gateway: ${path} cannot be started: ${error.message}`);
  process.exit(1);
});
child.once("exit", (status, signal) => {
  if (signal === null) process.exit(status);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
