// `bun .ci/emulate.ts [windows-x64|linux-arm64|…]`: builds the executables for other systems. Those that this machine can
// start run the smoke test and the tests of what depends on the system. docs/ci.md says what has to be installed.

import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";

interface Emulation {
  /** Programs and files that have to be there. */
  readonly needs: readonly string[];
  readonly tests: readonly string[];
  /** Makes the programs startable. Returns the words to write before each program, and variables. */
  readonly prepare: (folder: string, programs: readonly string[]) => Prepared;
}

interface Prepared {
  readonly words?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

const BYTES = ["test/lib/money.test.ts", "test/lib/sse.test.ts", "test/lib/files"];
/** Left out are the tests of three things: drawing on a terminal, which Wine does not have; refused connections, which Wine
 *  does not report; and the logs of agents, because under Wine the runtime walks no folder within a folder. */
const WINDOWS = [
  ...["test/config", "test/billing/ledger", "test/gateway/api", "test/cli/catalog"],
  ...["cache", "usage", "sessions/sessions.test.ts"].map((name) => `test/cli/money/${name}`),
  ...["test/cli/keys/keys.test.ts", "test/cli/setup/service.test.ts"],
];

const MINGW = "x86_64-w64-mingw32-gcc";
/** Wine 8 has no bcryptprimitives.dll, which the runtime takes its random numbers from. */
const RANDOM = `#include <windows.h>
#include <ntsecapi.h>
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) { return RtlGenRandom(data, (ULONG)size); }
`;

function prepareWine(folder: string): Prepared {
  // Wine prepares neither .NET nor a browser, which would take longest.
  const without = "mscoree,mshtml,winemenubuilder.exe=";
  const env = { WINEPREFIX: join(folder, "wine"), WINEDEBUG: "-all", WINEDLLOVERRIDES: without };
  run(["wineboot", "-i"], env);
  const library = join(env.WINEPREFIX, "drive_c/windows/system32/bcryptprimitives.dll");
  run([MINGW, "-shared", "-o", library, writeSource(folder, RANDOM), "-ladvapi32"]);
  return { words: ["wine"], env };
}

const QEMU = "qemu-aarch64-static";
const ARM64_ROOT = process.env["ARM64_ROOT"] ?? "/usr/aarch64-linux-gnu";
const MUSL_ROOT = process.env["MUSL_ROOT"] ?? "/";
const LOADER = "/lib/ld-musl-x86_64.so.1";
const ARM64_MUSL_ROOT = process.env["ARM64_MUSL_ROOT"] ?? "/";
const CROSS = "aarch64-linux-gnu-";

/** Functions of glibc that GCC's C++ library needs. Two are empty: the runtime uses no exceptions and cleans up no threads. */
const FROM_GLIBC = `#include <pthread.h>
#include <sys/auxv.h>
#include <sys/random.h>
unsigned long __getauxval(unsigned long kind) { return getauxval(kind); }
void *__dso_handle __attribute__((visibility("hidden"))) = &__dso_handle;
char __libc_single_threaded;
unsigned arc4random(void) { unsigned value; getentropy(&value, sizeof value); return value; }
int _dl_find_object(void *pc, void *found) { return -1; }
int __pthread_key_create(pthread_key_t *key, void (*end)(void *)) { return pthread_key_create(key, end); }
int __cxa_thread_atexit_impl(void (*end)(void *), void *object, void *library) { return 0; }
`;

/** Debian has musl, but no C++ library for it. This links one from the parts of GCC's static library that the program uses,
 *  into the folder `place`. `tools` is the prefix of the names of GCC's programs. */
function linkLibrary(folder: string, program: string, place: string, tools = ""): void {
  const used = Bun.spawnSync([`${tools}nm`, "-D", program]).stdout.toString();
  const names = used.match(/\b(?:_ZN?K?St|_ZTVN10__cxxabi|__cxa_|__dynamic_cast)\w*$/gm) ?? [];
  const wanted = names.filter((name) => name !== "__cxa_finalize").map((name) => `-Wl,-u,${name}`);
  const parts = ["-Wl,--start-group", "-l:libstdc++.a", "-l:libgcc_eh.a", "-lgcc", "-Wl,--end-group"];
  const library = ["-shared", "-fPIC", "-nostdlib", "-o", join(place, "libstdc++.so.6")];
  run([`${tools}gcc`, ...library, ...wanted, writeSource(folder, FROM_GLIBC), ...parts]);
}

/** Writes the name of another loader over the old name, which is at least as long. That loader's libraries are next to it. */
function prepareMusl(folder: string, programs: readonly string[]): Prepared {
  const place = mkdtempSync("/tmp/m-");
  leftovers.push(place);
  mkdirSync(join(place, "l"));
  mkdirSync(join(place, "etc"));
  const loader = join(place, "l/ld");
  copyFileSync(join(MUSL_ROOT, LOADER), loader);
  writeFileSync(join(place, "etc/ld-musl-x86_64.path"), join(place, "l"));
  linkLibrary(folder, programs[0] ?? "", join(place, "l"));
  for (const file of programs) {
    const bytes = readFileSync(file);
    bytes.write(loader.padEnd(LOADER.length, "\0"), bytes.indexOf(`${LOADER}\0`), "latin1");
    writeFileSync(file, bytes);
  }
  return {};
}

/** A script takes the name of each program, because the programs start themselves and one another. */
function emulateArm(programs: readonly string[], flags: readonly string[]): Prepared {
  for (const path of programs) {
    renameSync(path, `${path}.arm64`);
    const words = ["exec", QEMU, ...flags, `${path}.arm64`, '"$@"'].join(" ");
    writeFileSync(path, `#!/bin/sh\n${words}\n`, { mode: 0o755 });
  }
  return { env: { GATEWAY_TEST_RUNTIME: programs[1] ?? "" } };
}

function prepareArmMusl(folder: string, programs: readonly string[]): Prepared {
  linkLibrary(folder, programs[0] ?? "", folder, CROSS);
  return emulateArm(programs, ["-E", `LD_LIBRARY_PATH=${folder}`, "-L", ARM64_MUSL_ROOT]);
}

const EMULATIONS: Readonly<Record<string, Emulation>> = {
  "windows-x64": { needs: ["wine", MINGW], tests: [...BYTES, ...WINDOWS], prepare: prepareWine },
  "linux-arm64": {
    needs: [QEMU, join(ARM64_ROOT, "lib/ld-linux-aarch64.so.1")],
    tests: BYTES,
    prepare: (_, programs) => emulateArm(programs, ["-L", ARM64_ROOT]),
  },
  "linux-x64-musl": {
    needs: ["gcc", "nm", join(MUSL_ROOT, LOADER)],
    tests: BYTES,
    prepare: prepareMusl,
  },
  "linux-arm64-musl": {
    needs: [QEMU, `${CROSS}gcc`, join(ARM64_MUSL_ROOT, "lib/ld-musl-aarch64.so.1")],
    tests: BYTES,
    prepare: prepareArmMusl,
  },
};

const leftovers: string[] = [];

function writeSource(folder: string, code: string): string {
  const path = join(folder, "stub.c");
  writeFileSync(path, code);
  return path;
}

function run(words: readonly string[], env: Readonly<Record<string, string>> = {}): void {
  const { exitCode } = Bun.spawnSync([...words], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "inherit", "inherit"],
  });
  if (exitCode !== 0) throw new Error(`${words.join(" ")} failed with status ${exitCode}`);
}

/** Copies the runtime, which the build for another system has fetched. */
function copyRuntime(target: string, path: string): void {
  const cache = process.env["BUN_INSTALL_CACHE_DIR"] ?? join(homedir(), ".bun/install/cache");
  copyFileSync(join(cache, `bun-${target.replace("arm64", "aarch64")}-v${Bun.version}`), path);
}

function emulate(target: string, { needs, tests, prepare }: Emulation): string {
  const missing = needs.filter((each) => Bun.which(each) === null && !existsSync(each));
  if (missing.length > 0) return `SKIPPED, there is no ${missing.join(" and no ")}`;
  const folder = mkdtempSync(join(tmpdir(), "gateway-emulate-"));
  leftovers.push(folder);
  const extension = target.startsWith("windows") ? ".exe" : "";
  const executable = join(folder, `gateway${extension}`);
  const runtime = join(folder, `bun${extension}`);
  run([process.execPath, ".ci/build.ts", "--target", target, executable]);
  copyRuntime(target, runtime);
  const { words = [], env = {} } = prepare(folder, [executable, runtime]);
  run(["node", ".ci/smoke.mjs", executable, ...words], env);
  // Wine calls the folders of this machine `Z:`.
  const own = extension === "" ? executable : `Z:${executable}`;
  run([...words, runtime, "test", "--timeout=600000", ...tests], { ...env, GATEWAY_TEST_EXECUTABLE: own });
  return "works";
}

const wanted = process.argv.slice(2);
const lines: string[] = [];
try {
  for (const [target, emulation] of Object.entries(EMULATIONS))
    if (wanted.length === 0 || wanted.includes(target))
      lines.push(`${target}: ${emulate(target, emulation)}`);
} finally {
  for (const path of leftovers) rmSync(path, { recursive: true, force: true });
}
console.log(lines.join("\n"));
