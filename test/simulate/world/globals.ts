// The runtime's global names that the simulator replaces or refuses. All other names stay, because they only
// compute. A simulated process can use only the parts of a name or a module that the simulator gives it.

export const GLOBALS = {
  replaced:
    "AbortSignal Bun Date Math clearInterval clearTimeout crypto performance process reportError setImmediate setInterval setTimeout".split(
      " ",
    ),
  refused:
    "BroadcastChannel EventSource MessageChannel SharedWorker WebSocket Worker alert confirm console fetch prompt".split(
      " ",
    ),
};

/** Returns an object with the replaced functions. All others throw when they are used. */
export function refuseOthers<T extends object>(replaced: T, name: string): T {
  return new Proxy(replaced, {
    get(target, property) {
      if (property in target || typeof property === "symbol") return Reflect.get(target, property);
      if (property === "__esModule" || property === "default") return undefined;
      throw new Error(`the simulator does not replace ${name}.${property}`);
    },
  });
}
