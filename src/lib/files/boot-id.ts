import { readFileSync } from "node:fs";

/** Of this start of the machine: another start has another one. Null where the system has none (macOS, Windows). */
export function readBootId(): string | null {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim() || null;
  } catch {
    return null;
  }
}
