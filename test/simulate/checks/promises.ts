// Lists the promises of docs/contract.md that each check tests. A check that tests none does not belong here.

export const PROMISES = {
  amounts: ["P131"],
  boot: ["P124", "P142"],
  bytes: ["P70", "P73", "P94", "P97"],
  chain: ["P123", "P142"],
  crash: ["P122"],
  delivered: ["P73", "P93"],
  "foreign bytes": ["P73", "P91"],
  hangs: ["P95", "P96"],
  ids: ["P75"],
  limits: ["P114", "P115", "P118", "P120"],
  "lost line": ["P124", "P125", "P126"],
  "one line": ["P118", "P122", "P124", "P126"],
  recovery: ["P100", "P105", "P107"],
  refused: ["P113", "P114", "P120"],
  released: ["P96", "P98", "P122"],
  resent: ["P99", "P100", "P104"],
  reservations: ["P114", "P118"],
  secrets: ["P74", "P188", "P189"],
  "sent twice unseen": ["P99", "P124"],
  stop: ["P98"],
  "torn line": ["P124", "P125"],
  verify: ["P139", "P142"],
} as const;

export type Check = keyof typeof PROMISES;
