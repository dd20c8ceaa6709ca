// The runtime's `fetch`, for all but the requests of clients. The environment could send a credential to a proxy, also one for
// this machine's own address, print it to stderr, or switch the check of certificates off. So each option is set here,
// and a test refuses a `fetch(` anywhere else.

interface FetchOptions {
  /** Null: none, whatever HTTP_PROXY says. */
  readonly proxy: URL | null;
  readonly signal: AbortSignal;
  readonly method?: "GET" | "POST";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The path of a private socket. */
  readonly unix?: string;
}

/** A redirect is an answer like others. Nothing but `signal` limits the time. */
export function fetchAnswer(url: URL, { proxy, ...options }: FetchOptions): Promise<Response> {
  const init = { verbose: false, tls: { rejectUnauthorized: true }, redirect: "manual" as const };
  // The types of the runtime know neither value.
  const untyped = { proxy: proxy?.href ?? false, timeout: false };
  return fetch(url, Object.assign(init, options, untyped));
}
