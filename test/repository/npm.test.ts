// Packs the npm packages, installs them from the tarballs into an empty folder without network, and starts
// the command. A small program stands for the executable here. `.ci/run` does the same with the real one.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  describeLauncher,
  describePlatform,
  fillIn,
  makePackages,
  readTarget,
  requireOwner,
} from "../../.ci/packages.ts";
import { makeTempFolder, type TempFolder } from "../harness/temp.ts";

const OWNER = { npm: "@somebody/gateway", repository: "somebody/gateway", public_key: "RWQsomebody" };

const PROGRAM = `#!/bin/sh
case "$1" in
  wait) trap 'echo terminated; exit 7' TERM; echo "ready $GATEWAY_LAUNCHER"; for i in $(seq 1200); do sleep 0.05; done ;;
  fail) exit 3 ;;
  killed) kill -9 $$ ;;
  *) printf '%s|' "$@"; cat ;;
esac
`;

/** A machine with glibc may have musl's loader as well. */
const GLIBC = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];
const isMusl = process.platform === "linux" && !GLIBC.some((path) => existsSync(path));
const OWN_TARGET = `${process.platform}-${process.arch}${isMusl ? "-musl" : ""}`;

let folder: TempFolder;
beforeAll(async () => {
  folder = makeTempFolder();
  mkdirSync(folder.join("dist"));
  mkdirSync(folder.join("app"));
  for (const name of [OWN_TARGET, "linux-s390x", "linux-x64-musl", "darwin-arm64", "windows-x64.exe"])
    writeFileSync(folder.join("dist", `gateway-${name}`), PROGRAM);
  const tarballs = await makePackages(OWNER, "9.8.7", folder.join("dist"), folder.join("npm"));
  const names = ["gateway", `gateway-${OWN_TARGET}`];
  const own = tarballs.filter((path) => names.some((name) => path.endsWith(`somebody-${name}-9.8.7.tgz`)));
  expect(own).toHaveLength(2);
  const install = Bun.spawnSync(["npm", "install", "--offline", "--no-audit", "--no-fund", ...own], {
    cwd: folder.join("app"),
    env: { ...process.env, npm_config_cache: folder.join("cache"), HOME: folder.path },
  });
  if (install.exitCode !== 0) throw new Error(install.stderr.toString());
});
afterAll(() => folder.remove());

const command = (): string => folder.join("app/node_modules/.bin/gateway");

describe("the installed command starts the executable of its platform", () => {
  test("the installed command passes arguments, stdin and the exit status on", () => {
    const done = Bun.spawnSync([command(), "a b", "$(x)", ""], {
      stdin: new TextEncoder().encode("from stdin"),
    });
    expect(done.stdout.toString()).toBe("a b|$(x)||from stdin");
    expect(Bun.spawnSync([command(), "fail"]).exitCode).toBe(3);
    expect(Bun.spawnSync([command(), "killed"]).signalCode).toBe("SIGKILL");
  });

  test("the installed command passes SIGTERM on and waits for the end", async () => {
    const child = Bun.spawn([command(), "wait"], { stdout: "pipe" });
    const reader = child.stdout.getReader();
    const first = await reader.read();
    expect(new TextDecoder().decode(first.value)).toBe(`ready ${command()}\n`);
    child.kill("SIGTERM");
    expect(await child.exited).toBe(7);
  });

  test("the installed command starts only its own executable, or says which package is missing", () => {
    const own = join("lone/node_modules", OWNER.npm);
    const start = (): string => {
      const env = { ...process.env, NODE_PATH: folder.join("path/node_modules") };
      const done = Bun.spawnSync(["node", folder.join(own, "bin/gateway.cjs")], { env });
      return `${done.exitCode} ${done.stdout.toString()}${done.stderr.toString()}`;
    };
    const place = (where: string, version: string): void => {
      const planted = folder.join(where, `${OWNER.npm}-${OWN_TARGET}`);
      mkdirSync(planted, { recursive: true });
      writeFileSync(join(planted, "package.json"), JSON.stringify({ version }));
      writeFileSync(join(planted, "gateway"), "#!/bin/sh\necho started\n", { mode: 0o755 });
    };
    mkdirSync(folder.join(own, "bin"), { recursive: true });
    writeFileSync(folder.join(own, "package.json"), JSON.stringify({ name: OWNER.npm, version: "9.8.7" }));
    const launcher = readFileSync(join(import.meta.dir, "../../packaging/launch.cjs"));
    writeFileSync(folder.join(own, "bin/gateway.cjs"), launcher);
    place("node_modules", "9.8.7");
    place("path/node_modules", "9.8.7");
    place("lone/node_modules", "9.8.6");
    expect(start()).toMatch(/^1 [^]* 9\.8\.7 is not installed[^]*--omit=optional/);
    place("lone/node_modules", "9.8.7");
    expect(start()).toBe("0 started\n");
    place(join(own, "node_modules"), "9.8.7");
    expect(start()).toBe("0 started\n");
  });
});

test("a platform's package is installed on that platform only", () => {
  const targets = ["gateway-linux-x64-musl", "gateway-windows-x64.exe", "SHA256SUMS"].map(readTarget);
  const all = targets.filter((target) => target !== null);
  const [musl, windows] = all.map((target) => describePlatform(OWNER, "1.2.3", target));
  expect(musl).toMatchObject({ os: ["linux"], cpu: ["x64"], libc: ["musl"], files: ["gateway"] });
  expect(windows).toMatchObject({ os: ["win32"], files: ["gateway.exe"] });
  expect(describeLauncher(OWNER, "1.2.3", all)).toMatchObject({
    name: "@somebody/gateway",
    bin: { gateway: "bin/gateway.cjs" },
    optionalDependencies: {
      "@somebody/gateway-linux-x64-musl": "1.2.3",
      "@somebody/gateway-windows-x64": "1.2.3",
    },
  });
});

test("no release is made as long as packaging/owner.json has its example names", () => {
  expect(() => requireOwner({ ...OWNER, npm: "@example/gateway" })).toThrow("packaging/owner.json");
  expect(() => requireOwner({ ...OWNER, repository: "example/gateway" })).toThrow("packaging/owner.json");
  expect(() => requireOwner(OWNER)).not.toThrow();
});

test("the Homebrew formula and the Scoop manifest need every checksum", () => {
  const files = ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64", "windows-x64.exe"];
  const values = new Map([
    ["version", "1.2.3"],
    ["repository", "somebody/gateway"],
    ...files.map((file, index) => [`sha256 gateway-${file}`, String(index).repeat(64)] as const),
  ]);
  const [formula = "", manifest = ""] = ["gateway.rb", "scoop.json"].map((name) =>
    readFileSync(join(import.meta.dir, "../../packaging", name), "utf8"),
  );
  expect(fillIn(formula, values)).toContain(`sha256 "${"3".repeat(64)}"`);
  expect(JSON.parse(fillIn(manifest, values))).toMatchObject({
    version: "1.2.3",
    architecture: { "64bit": { hash: "4".repeat(64) } },
  });
  values.delete("sha256 gateway-windows-x64.exe");
  expect(() => fillIn(manifest, values)).toThrow("{{sha256 gateway-windows-x64.exe}}");
});
