// Reads a request's target and its ids. No upstream may take an id for another path.

export const RESPONSE_ID = /^[\w\-=]{1,512}$/;
/** Upstreams parse paths differently, and some decode twice. */
const MODEL_ID = /^[\w\-./:@~+=,()[\]!* ]{1,256}$/;

export function readModelId(raw: string): string | null {
  const id = raw.includes("%") ? decode(raw) : raw;
  if (id === null || !MODEL_ID.test(id)) return null;
  return id.split("/").every((segment) => !["", ".", ".."].includes(segment)) ? id : null;
}

/** Corrects slashes at both ends, and a repeated or missing version. */
export function correctPath(path: string, relayPath: string): string {
  const start = path.replace(/^\/\/+/, "/");
  const whole = start.length > 1 && start.endsWith("/") ? start.slice(0, -1) : start;
  const prefix = whole.startsWith(`${relayPath}/`) ? relayPath : "";
  const tail = whole
    .slice(prefix.length)
    .replace(/^\/\/+/, "/")
    .replace(/^\/v1(?:beta)?(?=\/v1(?:beta)?\/)/, "");
  const lacksVersion = /^\/(?:messages|responses|chat|embeddings|models)(?:\/|$)/.test(tail);
  return prefix + (lacksVersion ? `/v1${tail}` : tail);
}

export function pathOf(target: string): string {
  const mark = target.indexOf("?");
  return mark < 0 ? target : target.slice(0, mark);
}

export function queryOf(target: string): string {
  const mark = target.indexOf("?");
  return mark < 0 ? "" : target.slice(mark);
}

/** The parameter `key`, whose letters may be escaped. */
const KEY = "(?:k|%6[bB])(?:e|%65)(?:y|%79)(=[^&]*)?";
const ANY_KEY = new RegExp(`[?&]${KEY}(?:&|$)`);
const EARLY_KEY = new RegExp(`(?<=[?&])${KEY}&`, "g");
const LAST_KEY = new RegExp(`[?&]${KEY}$`);

/** Drops `key`. Every other byte stays. */
export function dropKey(query: string): string {
  return query.replace(EARLY_KEY, "").replace(LAST_KEY, "");
}

export function readKeyParameter(query: string): string | null {
  const found = ANY_KEY.exec(query);
  return found && new URLSearchParams(`key${found[1] ?? ""}`).get("key");
}

function decode(raw: string): string | null {
  try {
    return decodeURIComponent(raw);
  } catch {
    return null;
  }
}
