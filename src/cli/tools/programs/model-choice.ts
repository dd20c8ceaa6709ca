// Which of a group's models a tool starts with, for tools that must name one. The user can choose another in the tool.

/** Coding models of the known families, best first. */
const MAIN = [
  /sonnet/i,
  /opus/i,
  /^gpt-[\d.]+-codex$/i,
  /^gpt-[\d.]+$/i,
  /gemini-.*pro/i,
  /gpt/i,
  /claude/i,
  /gemini/i,
];
const SMALL = [/haiku/i, /-mini/i, /-nano/i, /flash-lite/i, /flash/i];
/** Models that cannot hold a conversation with tools. */
const UNFIT =
  /embed|image|tts|audio|realtime|moderation|whisper|dall-e|imagen|veo|sora|transcribe|search|aqa/i;

/** Null when no model is known. */
export function chooseMainModel(models: readonly string[]): string | null {
  const fit = models.filter((model) => !UNFIT.test(model));
  return pick(fit, MAIN) ?? fit[0] ?? models[0] ?? null;
}

/** For titles and summaries. */
export function chooseSmallModel(models: readonly string[]): string | null {
  const fit = models.filter((model) => !UNFIT.test(model));
  return pick(fit, SMALL) ?? chooseMainModel(models);
}

/** The newest name of the first family that has one. */
function pick(models: readonly string[], families: readonly RegExp[]): string | null {
  for (const family of families) {
    const members = models.filter((model) => family.test(model));
    const newest = members.sort((a, b) => b.localeCompare(a, "en", { numeric: true }))[0];
    if (newest !== undefined) return newest;
  }
  return null;
}
