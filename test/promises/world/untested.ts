// Promises without a test yet, each with the reason. The list shrinks.

export const UNTESTED: Readonly<Record<number, string>> = {};
