// A certificate for localhost, made by the openssl command.

import { join } from "node:path";
import type { Folder } from "../machine.ts";

export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** Null where there is no openssl. The certificate is its own authority. */
export function makeCertificate({ path }: Folder): Certificate | null {
  const openssl = Bun.which("openssl");
  if (openssl === null) return null;
  const [cert, key] = [join(path, "cert.pem"), join(path, "key.pem")];
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
  const names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
  const { success } = Bun.spawnSync([
    openssl,
    "req",
    "-x509",
    ...kind,
    "-keyout",
    key,
    "-out",
    cert,
    ...names,
  ]);
  return success ? { cert, key } : null;
}
