// `bun .ci/emulate.ts [windows-x64|linux-arm64|…]`: builds the executables for other systems, and starts those that this
// machine can: the smoke test, and tests of what depends on the system. docs/ci.md says what has to be installed.

import { copyFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";

interface Emulation {
  /** Why this machine cannot; null: it can. */
  readonly lack: () => string | null;
  /** Makes it ready, and returns the words before a program, and variables. */
  readonly prepare: (folder: string) => { words: readonly string[]; env: Readonly<Record<string, string>> };
  readonly tests: readonly string[];
}

const FILES = ["own-file", "file-lock", "links"].map((name) => `test/lib/files/${name}.test.ts`);
const BYTES = ["test/lib/money.test.ts", "test/lib/json", "test/lib/memory", "test/lib/sse"];
/** What Windows does in its own way. The smoke test starts the commands, the config, the keys and the ledger. */
const OWN_WAYS = ["test/gateway/control/pipe.test.ts", "test/config/yaml", "test/cli/setup/service.test.ts"];

const WINE: Emulation = {
  lack: () => (has("wine") && has("x86_64-w64-mingw32-gcc") ? null : "needs wine64 and gcc-mingw-w64-x86-64"),
  prepare: (folder) => {
    const env = { WINEPREFIX: join(folder, "wine"), WINEDEBUG: "-all" };
    run(["wineboot", "-i"], env);
    const source = join(folder, "stub.c");
    // Wine 8 has no bcryptprimitives.dll, which the runtime takes its random numbers from.
    const code = `#include <windows.h>
#include <ntsecapi.h>
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) { return RtlGenRandom(data, (ULONG)size); }
`;
    writeFileSync(source, code);
    const library = join(env.WINEPREFIX, "drive_c/windows/system32/bcryptprimitives.dll");
    run(["x86_64-w64-mingw32-gcc", "-shared", "-o", library, source, "-ladvapi32"]);
    return { words: ["wine"], env };
  },
  tests: [...FILES, ...BYTES, ...OWN_WAYS],
};

/** `root`: the variable that names a folder with the C library of that system. */
function inFolder(root: string, emulator: string | null, loader: string): Emulation {
  const place = process.env[root] ?? "";
  return {
    lack: () => {
      if (emulator !== null && !has(emulator)) return `needs ${emulator}`;
      return existsSync(join(place, loader)) && place !== ""
        ? null
        : `${root} names no folder with ${loader}`;
    },
    prepare: () => ({
      words:
        emulator === null
          ? [join(place, loader), "--library-path", `${join(place, "lib")}:${join(place, "usr/lib")}`]
          : [emulator, "-L", place],
      env: {},
    }),
    tests: [...FILES, ...BYTES],
  };
}

const QEMU = "qemu-aarch64-static";
const EMULATIONS: Readonly<Record<string, Emulation>> = {
  "windows-x64": WINE,
  "linux-arm64": inFolder("ARM64_ROOT", QEMU, "lib/ld-linux-aarch64.so.1"),
  "linux-x64-musl": inFolder("MUSL_ROOT", null, "lib/ld-musl-x86_64.so.1"),
  "linux-arm64-musl": inFolder("ARM64_MUSL_ROOT", QEMU, "lib/ld-musl-aarch64.so.1"),
};

function has(program: string): boolean {
  return Bun.which(program) !== null;
}

function run(words: readonly string[], env: Readonly<Record<string, string>> = {}): void {
  const { exitCode } = Bun.spawnSync([...words], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "inherit", "inherit"],
  });
  if (exitCode !== 0) throw new Error(`${words.join(" ")} failed with status ${exitCode}`);
}

/** The runtime itself, which a build for another system has fetched. */
function findRuntime(target: string, folder: string): string {
  const cache = process.env["BUN_INSTALL_CACHE_DIR"] ?? join(homedir(), ".bun/install/cache");
  const path = join(folder, target.startsWith("windows") ? "bun.exe" : "bun");
  copyFileSync(join(cache, `bun-${target}-v${Bun.version}`), path);
  return path;
}

function emulate(target: string, emulation: Emulation): string {
  const lack = emulation.lack();
  if (lack !== null) return `SKIPPED, it ${lack}`;
  const folder = mkdtempSync(join(tmpdir(), "gateway-emulate-"));
  try {
    const executable = join(folder, target.startsWith("windows") ? "gateway.exe" : "gateway");
    run([process.execPath, ".ci/build.ts", "--target", target, executable]);
    const { words, env } = emulation.prepare(folder);
    run(["node", ".ci/smoke.mjs", executable, ...words], env);
    const runtime = findRuntime(target, folder);
    run([...words, runtime, "test", "--timeout=300000", ...emulation.tests], {
      ...env,
      GATEWAY_TEST_EXECUTABLE: "",
    });
    return "works";
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const wanted = process.argv.slice(2);
const lines: string[] = [];
for (const [target, emulation] of Object.entries(EMULATIONS))
  if (wanted.length === 0 || wanted.includes(target)) lines.push(`${target}: ${emulate(target, emulation)}`);
console.log(lines.join("\n"));
