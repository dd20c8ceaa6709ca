// Reads a request's body once, and in it the model and the stream flag.

import { LIMIT_MEMBERS } from "../../billing/limits/reserve.ts";
import { hasUsdLimit } from "../../billing/limits/limits.ts";
import type { Catalog, Key } from "../../config/catalog.ts";
import { CodingError, decodeBody } from "../../lib/codings.ts";
import { GatewayError } from "../../lib/errors.ts";
import { asBuffer } from "../../lib/memory/bytes.ts";
import { readString, type Span } from "../../lib/json/scanner.ts";
import { type Scan, scanSteps, type Wanted } from "../../lib/scan.ts";
import { LARGE_BYTES, type MemoryBudget, type Reservation } from "../../lib/memory/memory-budget.ts";
import { inStep, isLongWork, nextTurn, runAtOnce, runInTurns, type Steps } from "../../lib/time/next-turn.ts";
import { type Dialect, FOR_MODELS, type Target, WITH_PROMPTS } from "../../dialects/dialect.ts";
import type { Layout } from "../../dialects/prompt/layouts.ts";
import { PLATFORM_ROWS } from "../../dialects/platforms.ts";
import type { PartFacts } from "../../dialects/prompt/blocks.ts";
import { listWanted, type ScannedBody, SHORT_BYTES } from "../../dialects/prompt/prompt.ts";
import type { Exchange } from "../../lib/http/exchange.ts";
import { readSessionField } from "./client.ts";
import type { KnownParts } from "./known-parts.ts";

export interface RequestBody {
  readonly bytes: Uint8Array | null;
  /** The decoded body, or `bytes` itself if it has no content-encoding. */
  readonly plain: Uint8Array | null;
  readonly scan: Scan<PartFacts> | null;
  readonly model: string | null;
  /** Where `plain` has the model, with its quotes. Null: the path names it. */
  readonly modelSpan: Span | null;
  readonly stream: boolean;
  readonly encoded: boolean;
}

/** Copies in memory: received, joined, decoded;
 *  in a bridge also parsed, converted, written. */
const COPIES = 3;
const COPIES_CONVERTED = 6;

interface BodyCall {
  readonly exchange: Exchange;
  readonly target: Target;
  readonly foundKey: Key | null;
  memory: Reservation | null;
}

function copiesOf({ target, foundKey }: BodyCall): number {
  const { platform, convert = true } = foundKey?.group ?? {};
  const spoken = platform === undefined ? [] : PLATFORM_ROWS[platform].spoken;
  return !convert && spoken.includes(target.endpoint.dialect.name) ? COPIES : COPIES_CONVERTED;
}

function announceBody(exchange: Exchange, maxBodyBytes: number): number {
  if (exchange.field("content-encoding") !== undefined) return maxBodyBytes;
  const length = exchange.field("content-length");
  if (length !== undefined) return Number.parseInt(length, 10);
  return exchange.field("transfer-encoding") === undefined ? 0 : maxBodyBytes;
}

export const NO_BODY: RequestBody = {
  bytes: null,
  plain: null,
  scan: null,
  model: null,
  modelSpan: null,
  stream: false,
  encoded: false,
};

interface Reading {
  readonly catalog: Pick<Catalog, "maxBodyBytes">;
  readonly memory: MemoryBudget;
  readonly knownParts: KnownParts;
}

export async function readRequestBody(
  call: BodyCall,
  { catalog: { maxBodyBytes }, memory, knownParts }: Reading,
): Promise<RequestBody> {
  const { exchange, target } = call;
  if (exchange.method !== "POST") return NO_BODY;
  const announced = announceBody(exchange, maxBodyBytes);
  if (announced > LARGE_BYTES && announced <= maxBodyBytes)
    call.memory = await memory.reserve(copiesOf(call) * announced);
  const body = await exchange.readBody(maxBodyBytes);
  await inStep();
  const coding = exchange.field("content-encoding");
  if (target.endpoint.purpose === "other") return { ...NO_BODY, bytes: body, encoded: coding !== undefined };
  const plain = coding === undefined ? body : await decode(body, coding, maxBodyBytes);
  call.memory?.shrink(copiesOf(call) * Math.max(body.length, plain.length));
  const steps = scanBody(call, body, plain, knownParts);
  if (!isLongWork(plain.length)) return runAtOnce(steps);
  await nextTurn();
  const scanned = await runInTurns(steps);
  await nextTurn();
  return scanned;
}

export function* scanBody(
  call: BodyCall,
  bytes: Uint8Array,
  plain: Uint8Array,
  known: KnownParts,
): Steps<RequestBody> {
  const { endpoint, model, stream } = call.target;
  const { foundKey } = call;
  const encoded = plain !== bytes;
  if (model === null && !FOR_MODELS.has(endpoint.purpose)) return { ...NO_BODY, bytes, plain, encoded };
  const isStrict = foundKey !== null && dependsOnModel(foundKey);
  const session = plain.length > SHORT_BYTES ? nameParts(call) : null;
  const members = wantedOf(endpoint.dialect, WITH_PROMPTS.has(endpoint.purpose));
  const wanted = session === null ? members : { ...members, known: known.find(session), isStrict };
  const scan = yield* scanSteps<PartFacts>(plain, wanted);
  if (scan === null) throw new GatewayError("bad_request", "The body is not a JSON object.");
  if (session !== null && scan.lists.size > 0) known.keep(session, scan.lists);
  const named = model === null ? readNames(plain, scan) : { model: model.id, modelSpan: null, stream };
  if (isStrict) requireOneModel({ bytes: plain, scan }, named.model);
  const { modelSpan, stream: streams } = named;
  return { bytes, plain, encoded, scan, model: named.model, modelSpan, stream: streams === true };
}

const MAX_SESSION_LENGTH = 256;

function nameParts({ exchange, target, foundKey }: BodyCall): string {
  const session = readSessionField(exchange) ?? "";
  return `${target.endpoint.dialect.name}\n${foundKey?.name}\n${session.slice(0, MAX_SESSION_LENGTH)}`;
}

const NAMES = ["model", "stream", "metadata", "prompt_cache_key"];

const wanted = new Map<Layout, Wanted<PartFacts>>();

function wantedOf({ promptLayout }: Dialect, hasParts: boolean): Wanted<PartFacts> {
  const all = wanted.getOrInsertComputed(promptLayout, () => {
    const { names, lists } = listWanted(promptLayout);
    const all = new Set([...NAMES, ...LIMIT_MEMBERS, ...names]);
    return { names: all, others: 128, alike: new Set(["model"]), lists };
  });
  return hasParts ? all : { ...all, lists: NO_LISTS };
}

const NO_LISTS: ReadonlySet<string> = new Set();

const MAX_MODEL_LENGTH = 256;
const NAMING = ["model", "stream"] as const;

function readNames(
  plain: Uint8Array,
  scan: Scan<unknown>,
): Pick<RequestBody, "modelSpan" | "stream"> & { readonly model: string } {
  const repeated = NAMING.find((name) => scan.repeated.has(name));
  if (repeated !== undefined)
    throw new GatewayError("bad_request", `The body has two members named \`${repeated}\`.`, {
      param: repeated,
    });
  const span = scan.get("model");
  const model = span === undefined ? "" : readString(plain, span);
  if (span === undefined || model === "") {
    const text = "The body names no model: it needs a top-level `model`.";
    throw refuseModel(text, "missing_required_parameter");
  }
  if (model === null) throw refuseModel("`model` must be a string.", "invalid_type");
  if (model.length > MAX_MODEL_LENGTH) {
    const text = `\`model\` is longer than ${MAX_MODEL_LENGTH} characters.`;
    throw refuseModel(text, "string_above_max_length");
  }
  const stream = scan.get("stream");
  const streams =
    stream !== undefined && asBuffer(plain).toString("latin1", stream.start, stream.end) === "true";
  return { model, modelSpan: span, stream: streams };
}

function refuseModel(text: string, wireCode: string): GatewayError {
  return new GatewayError("bad_request", text, { param: "model", wireCode });
}

// An alias, a `models` list and a USD limit depend on the model. With these, a body
// is refused if another parser may find another model.
// Otherwise the upstream judges it.

function requireOneModel({ bytes, scan }: ScannedBody, model: string): void {
  if (scan.isForeign)
    throw refuseAmbiguous(
      "The body is not strict JSON: it has a comment or another byte that JSON does not allow.",
    );
  // Some requests with the model in the path repeat it in the body.
  const span = scan.get("model");
  const name = span === undefined ? null : readString(bytes, span);
  const expected = name === model || name === `models/${model}` ? 1 : 0;
  if (scan.spellings > expected)
    throw refuseAmbiguous("The body names the model more than once, in different spellings.");
}

function dependsOnModel({ group, limits }: Key): boolean {
  const isChosen = group.channels.some(
    ({ models, aliases, aliasGlobs }) => models !== null || aliases.size + aliasGlobs.length > 0,
  );
  return isChosen || hasUsdLimit(limits) || hasUsdLimit(group.limits);
}

function refuseAmbiguous(text: string): GatewayError {
  const why = "This key has certain models, an alias or a limit in USD, so the model must be unambiguous.";
  return new GatewayError("bad_request", `${text} ${why}`, { param: "model" });
}

async function decode(body: Uint8Array, coding: string, limit: number): Promise<Uint8Array> {
  try {
    return await decodeBody(body, coding, limit);
  } catch (error) {
    if (!(error instanceof CodingError)) throw error;
    const text = error.isKnown
      ? `The body does not match its content-encoding: ${error.message}.`
      : `The gateway cannot read the body: ${error.message}.`;
    throw new GatewayError("bad_request", text, { cause: error });
  }
}
