// The only definition of the config file (zod, strict). Types by z.infer.

export const PLATFORMS = ["messages", "responses", "content", "relay"] as const;
export type Platform = (typeof PLATFORMS)[number];
