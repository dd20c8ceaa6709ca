// Promises without a test yet, each with the reason. The list shrinks.

export const UNTESTED: Readonly<Record<number, string>> = {
  125: "only the simulator cuts the power: its check of the books",
  197: "`.ci/run` starts the executables of other systems where an emulator is installed",
  198: "the key that signs is the owner's alone; `.ci/release.ts` prints the command",
};
