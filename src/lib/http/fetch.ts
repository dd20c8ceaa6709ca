// The runtime's `fetch`, for all requests but those of clients. The environment could
// send a credential to a proxy, print it, or switch off the check of certificates.
// So each option is set, and a test forbids other calls.

interface FetchOptions {
  /** Null: no proxy, whatever HTTP_PROXY says. */
  readonly proxy: URL | null;
  readonly signal: AbortSignal;
  readonly method?: "GET" | "POST";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The path of a private socket. */
  readonly unix?: string;
}

/** Redirects are not followed. Only `signal` limits the time. */
export function fetchAnswer(url: URL, { proxy, ...options }: FetchOptions): Promise<Response> {
  const init = { verbose: false, tls: { rejectUnauthorized: true }, redirect: "manual" as const };
  // The runtime's types allow neither value.
  const untyped = { proxy: proxy?.href ?? false, timeout: false };
  return fetch(url, Object.assign(init, options, untyped));
}
