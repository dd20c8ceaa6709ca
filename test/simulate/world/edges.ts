// Finds the source's runtime calls: functions that read or change something outside the process, or wait for it. A test
// fails if one of them is not replaced.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { NOT_REPLACED } from "./files.ts";
import type { Edges } from "./process.ts";

const SRC = join(import.meta.dir, "../../../src");

export interface Touch {
  readonly file: string;
  /** `node:fs.openSync`, `Bun.listen`, `fetch` */
  readonly edge: string;
}

/** In the files of the bundle, which is what a simulated process runs. */
export function listTouches(bundle: string): Touch[] {
  const files = [...bundle.matchAll(/^\/\/ (?:.*\/)?src\/(\S+\.ts)$/gm)].map(([, file = ""]) => file);
  return files.sort().flatMap((file) => {
    const text = readFileSync(join(SRC, file), "utf8");
    return [...new Set([...listImports(text), ...listGlobals(text)])].map((edge) => ({ file, edge }));
  });
}

function listImports(text: string): string[] {
  const imports = text.matchAll(
    /^import (type )?(?:\{([^}]*)\}|(\* as \w+|\w+)) from "((?:node|bun):[^"]+)"/gm,
  );
  return [...imports].flatMap(([, type, names, all, module = ""]) => {
    if (type !== undefined) return [];
    if (all !== undefined) return [module];
    const wanted = (names ?? "")
      .split(",")
      .map((name) => name.trim())
      .filter((name) => name !== "" && !name.startsWith("type "));
    return wanted.map((name) => `${module}.${name.replace(/ as .*/, "")}`);
  });
}

const MEMBER = /(?<![.\w"'`$])(Bun|process|crypto|performance|AbortSignal)\.([A-Za-z]\w*)/g;
const WHOLE =
  /(?<![.\w"'`$#])(fetch|WebSocket|Worker|MessageChannel|BroadcastChannel|EventSource|alert|prompt|console)(?=[.(])/g;

function listGlobals(text: string): string[] {
  const code = text.replaceAll(/^\s*(?:\/\/|\/?\*).*$/gm, "").replaceAll(/import\.meta\.\w+/g, "");
  const members = [...code.matchAll(MEMBER)].map(([, name, member]) => `${name}.${member}`);
  const wholes = [...code.matchAll(WHOLE)].map(([, name = ""]) => name);
  // A method may have the same name. Only a call of the global counts.
  return [
    ...members,
    ...wholes.filter((name) => new RegExp(`(?<![.\\w])(?:await |= |return |new |\\()${name}[.(]`).test(code)),
  ];
}

export function isReplaced(edge: string, { require, globals }: Edges): boolean {
  const module = /^((?:node|bun):[^.]+)(?:\.(\w+))?$/.exec(edge);
  try {
    if (module?.[1] !== undefined) return hasMember(require(module[1]), module[2]);
    const [name = "", member] = edge.split(".");
    if (name === "AbortSignal" && member === "timeout") return false;
    return name in globals && hasMember(globals[name], member);
  } catch {
    return false;
  }
}

function hasMember(owner: unknown, name: string | undefined): boolean {
  if (name === undefined) return true;
  const member: unknown = Reflect.get(Object(owner), name);
  return member !== undefined && !(typeof member === "function" && NOT_REPLACED in member);
}
