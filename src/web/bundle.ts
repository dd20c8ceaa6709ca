// Bundles the browser's side. A macro: it runs when this program is built, or started from its source, and its result
// becomes part of the code. So one way serves both, and the executable needs nothing next to it.

import { gzipSync } from "node:zlib";
import { createHash } from "node:crypto";

export interface BundledFile {
  /** Of the content: a changed file has another address. */
  readonly hash: string;
  /** Compressed with gzip, in base64. */
  readonly gzip: string;
}

export interface BundledPage {
  readonly script: BundledFile;
  readonly style: BundledFile;
}

export function bundlePage(): BundledPage {
  return { script: bundle("main.tsx"), style: bundle("style.css") };
}

/** Bun cannot bundle inside a macro, so its command does. */
function bundle(entry: string): BundledFile {
  const folder = `${import.meta.dir}/page`;
  const flags = ["--minify", "--target=browser", "--production"];
  const { exitCode, stdout, stderr } = Bun.spawnSync(
    // The folder of the user may have a .env and a bunfig.toml of a stranger.
    [process.execPath, "--no-env-file", "--config=/dev/null", "build", `${folder}/${entry}`, ...flags],
    { cwd: folder },
  );
  if (exitCode !== 0) throw new Error(`the page cannot be bundled: ${stderr.toString()}`);
  const hash = createHash("sha256").update(stdout).digest("hex").slice(0, 16);
  return { hash, gzip: gzipSync(stdout, { level: 9 }).toString("base64") };
}
