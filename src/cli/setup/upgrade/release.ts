// The newest release: its version and checksums are signed, and each of its executables has one of these checksums.

import { getErrorCode, getErrorMessage } from "../../../lib/errors.ts";
import { fetchFromHost, readBounded, readParts } from "../../access/from-host.ts";
import { verifySignature } from "./minisign.ts";

/** Of packaging/owner.json. */
export interface ReleaseSource {
  readonly releases: string;
  readonly publicKey: string;
}

export interface Release {
  readonly version: string;
  /** By the name of the executable. */
  readonly checksums: ReadonlyMap<string, string>;
}

const MAX_LIST_BYTES = 64 * 1024;
const LIST_TIMEOUT_MS = 30_000;
const MAX_EXECUTABLE_BYTES = 512 * 2 ** 20;
const EXECUTABLE_TIMEOUT_MS = 30 * 60_000;

export async function readRelease({ releases, publicKey }: ReleaseSource): Promise<Release> {
  const [list, signature] = await Promise.all(
    ["SHA256SUMS", "SHA256SUMS.minisig"].map(async (name) =>
      readBounded(await request(place(releases, name), LIST_TIMEOUT_MS), MAX_LIST_BYTES),
    ),
  );
  const comment = verifySignature(Buffer.from(list ?? ""), signature ?? "", publicKey);
  const version = /^gateway (\d+\.\d+\.\d+)$/.exec(comment)?.[1];
  if (version === undefined) throw new Error("the signature names no version");
  const lines = (list ?? "").split("\n").flatMap((line) => {
    const [, sum = "", name = ""] = /^([0-9a-f]{64}) [ *]([\w.-]+)$/.exec(line) ?? [];
    return name === "" ? [] : [[name, sum] as const];
  });
  return { version, checksums: new Map(lines) };
}

function place(releases: string, name: string): URL {
  return new URL(name, releases.endsWith("/") ? releases : `${releases}/`);
}

async function request(url: URL, timeoutMs: number): Promise<Response> {
  try {
    const answer = await fetchFromHost(url, timeoutMs);
    if (answer.ok) return answer;
    throw new Error(`the answer is ${answer.status}`);
  } catch (error) {
    throw new Error(`${url.href} cannot be read: ${getErrorCode(error) || getErrorMessage(error)}`, {
      cause: error,
    });
  }
}

/** Hands over each part, and throws unless all of them together have the checksum. */
export async function download(
  { releases }: ReleaseSource,
  name: string,
  checksum: string,
  take: (part: Uint8Array) => void,
): Promise<void> {
  const hash = new Bun.CryptoHasher("sha256");
  const url = place(releases, name);
  for await (const part of readParts(await request(url, EXECUTABLE_TIMEOUT_MS), MAX_EXECUTABLE_BYTES)) {
    hash.update(part);
    take(part);
  }
  if (hash.digest("hex") !== checksum)
    throw new Error(`${url.href} is not the file that was signed, or arrived in part`);
}
