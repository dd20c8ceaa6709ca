// The one place where the version stands for the program; package.json bears the same (a test compares them).
export const VERSION = "0.1.1";
