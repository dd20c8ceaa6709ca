// Where newer prices are read from: the newest release of the price package's project, or what `--from` names.

import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { z } from "zod";
import { placeOfData, RELEASE_URL } from "../../../billing/prices/published.ts";
import { findProxy, isLoopback } from "../../../config/proxy.ts";
import { getErrorCode, getErrorMessage } from "../../../lib/errors.ts";
import { fetchAnswer } from "../../../lib/http/fetch.ts";
import { parseJson } from "../../../lib/json/json.ts";
import { sha256Hex } from "../../../lib/secret.ts";
import { fail } from "../../terminal/terminal.ts";

export interface PriceSource {
  /** As messages and the book name it. */
  readonly name: string;
  /** The day that its prices are of: 2026-11-21. */
  readonly date: string;
  /** A release can be older than the book in use. A file has no day of its own. */
  readonly isRelease: boolean;
  readonly sha256: string;
  readonly text: string;
}

export async function readSource(from: string | undefined): Promise<PriceSource> {
  if (from === undefined) return await readRelease();
  const text = await readText(from);
  const date = new Date().toISOString().slice(0, 10);
  const name = `${describePlace(from)}, read on ${date}`;
  return { name, date, isRelease: false, sha256: sha256Hex(text), text };
}

const releaseSchema = z.looseObject({
  tag_name: z.string().regex(/^(?!.*\.\.)[\w.@/-]{1,100}$/),
  published_at: z.iso.datetime(),
});

async function readRelease(): Promise<PriceSource> {
  const parsed = releaseSchema.safeParse(parseJson(await readText(RELEASE_URL)));
  if (!parsed.success) fail(`${RELEASE_URL} does not name a release. Nothing was changed.`);
  const { tag_name: tag, published_at: published } = parsed.data;
  const date = published.slice(0, 10);
  const text = await readText(placeOfData(tag));
  return { name: `genai-prices ${tag} of ${date}`, date, isRelease: true, sha256: sha256Hex(text), text };
}

/** Without what may be secret in an address. */
function describePlace(place: string): string {
  if (!isAddress(place)) return resolve(place);
  const { origin, pathname } = new URL(place);
  return `${origin}${pathname}`;
}

function isAddress(place: string): boolean {
  return /^https?:\/\//i.test(place);
}

const MAX_BYTES = 32 * 2 ** 20;
const TIMEOUT_MS = 60_000;

async function readText(place: string): Promise<string> {
  try {
    if (!isAddress(place)) {
      if (statSync(place).size > MAX_BYTES) throw new Error(`it is larger than ${MAX_BYTES} bytes`);
      return readFileSync(place, "utf8");
    }
    const answer = await fetchFromHost(new URL(place), TIMEOUT_MS);
    if (!answer.ok) throw new Error(`the answer is ${answer.status}`);
    return await readBounded(answer, MAX_BYTES);
  } catch (error) {
    return fail(
      `The price data cannot be read from ${place}: ${getErrorCode(error) || getErrorMessage(error)}.`,
    );
  }
}

const MAX_REDIRECTS = 5;

/** Over TLS, unless it is this machine, and from no other host than the one that was named. */
async function fetchFromHost(place: URL, timeoutMs: number): Promise<Response> {
  const signal = AbortSignal.timeout(timeoutMs);
  let url = place;
  for (let count = 0; count <= MAX_REDIRECTS; count += 1) {
    if (url.protocol !== "https:" && !isLoopback(url.hostname)) throw new Error("only https is accepted");
    if (url.host !== place.host) throw new Error(`it redirects to another host, ${url.host}`);
    const answer = await fetchAnswer(url, { proxy: findProxy(url, process.env), signal });
    const target = answer.status >= 300 && answer.status < 400 ? answer.headers.get("location") : null;
    if (target === null) return answer;
    url = new URL(target, url);
  }
  throw new Error("it redirects too often");
}

/** No more than `maxBytes` are read. */
async function readBounded(answer: Response, maxBytes: number): Promise<string> {
  const parts: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of answer.body ?? []) {
      size += chunk.length;
      if (size > maxBytes) break;
      parts.push(chunk);
    }
  } catch (error) {
    throw new Error(`the answer broke off: ${getErrorCode(error) || getErrorMessage(error)}`, {
      cause: error,
    });
  }
  if (size > maxBytes) throw new Error(`it is larger than ${maxBytes} bytes`);
  return Buffer.concat(parts).toString("utf8");
}
