// The runtime's global names: those that the simulator replaces, those that are pure, and all others, which a simulated
// process cannot use.

const REPLACED = [
  "AbortSignal",
  "Bun",
  "Date",
  "Math",
  "clearInterval",
  "clearTimeout",
  "crypto",
  "performance",
  "process",
  "reportError",
  "setImmediate",
  "setInterval",
  "setTimeout",
];

/** These only compute. Names of the language itself are allowed too. */
const PURE = new Set([
  "AbortController",
  "Buffer",
  "DOMException",
  "Event",
  "EventTarget",
  "Headers",
  "Request",
  "Response",
  "TextDecoder",
  "TextEncoder",
  "URL",
  "URLSearchParams",
  "atob",
  "btoa",
  "queueMicrotask",
  "structuredClone",
]);

const LANGUAGE = new Set(
  `AggregateError Array ArrayBuffer Atomics BigInt BigInt64Array BigUint64Array Boolean DataView DisposableStack
  AsyncDisposableStack Error EvalError FinalizationRegistry Float16Array Float32Array Float64Array Function Infinity
  Int16Array Int32Array Int8Array Intl Iterator JSON Map NaN Number Object Promise Proxy RangeError ReferenceError
  Reflect RegExp Set SharedArrayBuffer String SuppressedError Symbol SyntaxError Temporal TypeError URIError
  Uint16Array Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakRef WeakSet WebAssembly decodeURI
  decodeURIComponent encodeURI encodeURIComponent escape eval isFinite isNaN parseFloat parseInt
  undefined unescape`.split(/\s+/),
);

function listRefused(): string[] {
  const all = new Set(Object.getOwnPropertyNames(globalThis));
  return [...all]
    .filter((name) => /^[A-Za-z_$][\w$]*$/.test(name))
    .filter((name) => !REPLACED.includes(name) && !PURE.has(name) && !LANGUAGE.has(name))
    .filter((name) => !["require", "exports", "module"].includes(name))
    .sort();
}

export const GLOBALS = { replaced: REPLACED, refused: listRefused() };
