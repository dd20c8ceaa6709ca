// The runtime's global names: those that the simulator replaces, and those that a simulated process cannot use. All others
// only compute.

export const GLOBALS = {
  replaced: [
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
  ],
  refused: [
    "BroadcastChannel",
    "EventSource",
    "MessageChannel",
    "SharedWorker",
    "WebSocket",
    "Worker",
    "alert",
    "confirm",
    "console",
    "fetch",
    "prompt",
  ],
};
