// `npm install` on the stated version of Node prints no warning: every package supports that version, and every
// install script is allowed or denied by name.

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");

interface LockedPackage {
  readonly engines?: { readonly node?: string };
  readonly hasInstallScript?: boolean;
  readonly resolved?: string;
}

const manifest: { engines: { node: string }; allowScripts: Record<string, boolean> } = JSON.parse(
  readFileSync(join(ROOT, "package.json"), "utf8"),
);
const lock: { packages: Record<string, LockedPackage> } = JSON.parse(
  readFileSync(join(ROOT, "package-lock.json"), "utf8"),
);
const packages = Object.entries(lock.packages).filter(([path]) => path !== "");

/** The newest release of the stated major version, because its first one is too old for some packages. */
const NODE = manifest.engines.node.replace(/^>=(\d+)$/, "$1.999.999");

test("every package supports the stated version of Node", () => {
  expect(packages.length).toBeGreaterThan(50);
  expect(NODE).toMatch(/^\d+\.999\.999$/);
  const refusing = packages.filter(([, { engines }]) => !Bun.semver.satisfies(NODE, engines?.node ?? "*"));
  expect(refusing.map(([path, { engines }]) => `${path} needs Node ${engines?.node}`)).toEqual([]);
});

test("every install script is allowed or denied in package.json", () => {
  const scripted = packages.filter(([, { hasInstallScript }]) => hasInstallScript === true);
  const names = scripted.map(([path]) => path.slice(path.lastIndexOf("node_modules/") + 13));
  expect(new Set(names)).toEqual(new Set(Object.keys(manifest.allowScripts)));
});

test("the lock file names no registry", () => {
  expect(packages.filter(([, { resolved }]) => resolved !== undefined)).toEqual([]);
});
