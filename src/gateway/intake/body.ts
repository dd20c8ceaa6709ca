// Reads a request's body once and finds the model and the stream flag in it.

import type { Catalog } from "../../config/catalog.ts";
import { decodeBody, InvalidEncoding, UnsupportedEncoding } from "../../lib/http/encoding.ts";
import { GatewayError } from "../../lib/errors.ts";
import {
  type ModelReading,
  readModel,
  readStreamFlag,
  type Scan,
  scanTopLevel,
  type Span,
} from "../../lib/json/json-spans.ts";
import { scanLongTopLevel } from "../../lib/json/json-long-scan.ts";
import { LARGE_BYTES, type MemoryBudget, type Reservation } from "../../lib/memory/memory-budget.ts";
import { isLongWork, nextTurn } from "../../lib/time/next-turn.ts";
import type { Target } from "../../dialects/dialect.ts";
import { PLATFORM_ROWS } from "../../dialects/platforms.ts";
import type { Exchange } from "../../lib/http/exchange.ts";
import type { ClientCall } from "./call.ts";

export interface RequestBody {
  /** As received; null if the method has no body. */
  readonly bytes: Uint8Array | null;
  /** The body without its content-encoding; the same bytes as `bytes` if it has none. */
  readonly plain: Uint8Array | null;
  /** The model's name as the client wrote it; null if the endpoint needs no model. */
  readonly model: string | null;
  /** The position of the name in `plain`, with its quotes; null if the path names the model. */
  readonly modelSpan: Span | null;
  readonly stream: boolean;
  /** `bytes` has a content-encoding. */
  readonly encoded: boolean;
}

/** A body can exist twice: as it arrived, and decoded. For a bridge it is parsed, converted and written again. */
const COPIES = 2;
const COPIES_CONVERTED = 6;

type BodyCall = Pick<ClientCall, "exchange" | "target" | "admitted">;

function copiesOf({ target, admitted }: BodyCall): number {
  const { platform, convert = true } = admitted?.group ?? {};
  const spoken = platform === undefined ? [] : PLATFORM_ROWS[platform].spoken;
  return !convert && spoken.includes(target.endpoint.dialect.name) ? COPIES : COPIES_CONVERTED;
}

/** Waits for the memory that a large body needs. Null if it is not large. */
export function reserveBody(
  call: BodyCall,
  { maxBodyBytes }: Catalog,
  memory: MemoryBudget,
): Promise<Reservation> | null {
  const bytes = announceBody(call.exchange, maxBodyBytes);
  return bytes <= LARGE_BYTES || bytes > maxBodyBytes ? null : memory.reserve(copiesOf(call) * bytes);
}

/** Most clients announce the length. A body in chunks, or a compressed one, may become as long as is allowed. */
function announceBody(exchange: Exchange, maxBodyBytes: number): number {
  if (exchange.field("content-encoding") !== undefined) return maxBodyBytes;
  const length = exchange.field("content-length");
  if (length !== undefined) return Number(length);
  return exchange.field("transfer-encoding") === undefined ? 0 : maxBodyBytes;
}

const NEEDS_MODEL = new Set(["generate", "embed", "count"]);

export const NO_BODY: RequestBody = {
  bytes: null,
  plain: null,
  model: null,
  modelSpan: null,
  stream: false,
  encoded: false,
};

/** Most bodies are short and have arrived with their heads. They need no promise. */
export function readRequestBody(
  call: BodyCall,
  catalog: Catalog,
  memory: Reservation | null = null,
): RequestBody | Promise<RequestBody> {
  const { exchange } = call;
  if (exchange.method !== "POST") return NO_BODY;
  const body = exchange.readBody(catalog.maxBodyBytes);
  if (call.target.endpoint.purpose === "other") return passBody(call, body);
  const isReady =
    body instanceof Uint8Array &&
    !isLongWork(body.length) &&
    exchange.field("content-encoding") === undefined;
  return isReady ? scanBody(call, body, body) : readLater(call, body, catalog, memory);
}

/** Nothing of it is read. */
async function passBody(
  { exchange }: BodyCall,
  arriving: Uint8Array | Promise<Uint8Array>,
): Promise<RequestBody> {
  const encoded = exchange.field("content-encoding") !== undefined;
  return { ...NO_BODY, bytes: await arriving, encoded };
}

async function readLater(
  call: BodyCall,
  arriving: Uint8Array | Promise<Uint8Array>,
  { maxBodyBytes }: Catalog,
  memory: Reservation | null,
): Promise<RequestBody> {
  const body = await arriving;
  const coding = call.exchange.field("content-encoding");
  const plain = coding === undefined ? body : await decode(body, coding, maxBodyBytes);
  memory?.shrink(copiesOf(call) * Math.max(body.length, plain.length));
  const names = listNames(call.target);
  if (names === null || !isLongWork(plain.length)) return scanBody(call, body, plain);
  await nextTurn();
  return scanBody(call, body, plain, await scanLongTopLevel(plain, names));
}

/** The members that say what the client wants. Null: there is no need to look at the body. */
function listNames({ endpoint, model }: Target): readonly string[] | null {
  if (model !== null) return [];
  return NEEDS_MODEL.has(endpoint.purpose) ? NAMES : null;
}

/** `known`: the members of `listNames`, if they were found already. */
function scanBody({ target }: BodyCall, body: Uint8Array, plain: Uint8Array, known?: Scan): RequestBody {
  const encoded = plain !== body;
  const names = listNames(target);
  if (names === null) return { bytes: body, plain, encoded, model: null, modelSpan: null, stream: false };
  const scan = known ?? scanTopLevel(plain, names);
  if (target.model === null) {
    const { model, modelSpan, stream } = readNames(plain, scan);
    return { bytes: body, plain, encoded, model, modelSpan, stream };
  }
  if (scan.kind !== "object") throw refuseBody(scan);
  return {
    bytes: body,
    plain,
    encoded,
    model: target.model.id,
    modelSpan: null,
    stream: target.stream ?? false,
  };
}

/** No real model name is longer, and the name is written to the ledger. */
const MAX_MODEL_LENGTH = 256;

const NAMES = ["model", "stream"];

/** The model and the stream flag of a body, in one pass over it. */
export function readNames(
  plain: Uint8Array,
  scan: Scan = scanTopLevel(plain, NAMES),
): Pick<RequestBody, "model" | "modelSpan" | "stream"> {
  const reading = readModel(plain, scan);
  if (reading.kind !== "model") throw refuseBody(reading);
  if (reading.model.length > MAX_MODEL_LENGTH) {
    const text = `\`model\` is longer than ${MAX_MODEL_LENGTH} characters.`;
    throw new GatewayError("bad_request", text, { param: "model", wireCode: "string_above_max_length" });
  }
  return { model: reading.model, modelSpan: reading.span, stream: readStreamFlag(plain, scan) };
}

function refuseBody(reading: Exclude<ModelReading, { kind: "model" }>): GatewayError {
  switch (reading.kind) {
    case "missing":
      return new GatewayError("bad_request", "The body names no model: it needs a top-level `model`.", {
        param: "model",
        wireCode: "missing_required_parameter",
      });
    case "not_string":
      return new GatewayError("bad_request", "`model` must be a string.", {
        param: "model",
        wireCode: "invalid_type",
      });
    case "duplicate":
      return new GatewayError("bad_request", `The body has two members named \`${reading.name}\`.`, {
        param: reading.name,
      });
    case "not_json":
      return new GatewayError("bad_request", "The body is not a JSON object.");
  }
}

async function decode(body: Uint8Array, coding: string, limit: number): Promise<Uint8Array> {
  try {
    return await decodeBody(body, coding, limit);
  } catch (error) {
    const refuse = (text: string) => new GatewayError("bad_request", text, { cause: error });
    if (error instanceof UnsupportedEncoding)
      throw refuse(`The gateway cannot read the body: it does not know ${error.message}.`);
    if (error instanceof InvalidEncoding)
      throw refuse(`The body does not match its content-encoding: ${error.message}.`);
    throw error;
  }
}
