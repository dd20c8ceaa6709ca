// Bundles the page in a macro, which runs when this program is built or started
// from source, and whose result becomes code.

import { gzipSync } from "node:zlib";
import { createHash } from "node:crypto";

export interface BundledFile {
  readonly hash: string;
  readonly gzip: string;
}

export function bundlePage() {
  return { script: bundle("main.tsx"), style: bundle("style.css") };
}

/** A macro cannot call `Bun.build`, but it can start `bun build`. */
function bundle(entry: string): BundledFile {
  const folder = `${import.meta.dir}/page`;
  const flags = ["--minify", "--target=browser", "--production"];
  const { exitCode, stdout, stderr } = Bun.spawnSync(
    // The user's folder may have a stranger's .env and bunfig.toml.
    [process.execPath, "--no-env-file", "--config=/dev/null", "build", `${folder}/${entry}`, ...flags],
    { cwd: folder },
  );
  if (exitCode !== 0) throw new Error(`the page cannot be bundled: ${stderr.toString()}`);
  const hash = createHash("sha256").update(stdout).digest("hex").slice(0, 16);
  return { hash, gzip: gzipSync(stdout, { level: 9 }).toString("base64") };
}
