import { expect, test } from "bun:test";
import { quoteForWindows, quoteWord } from "../../../src/lib/text/shell-word.ts";

test("on Windows, a plain path is not quoted, a space needs double quotes, and $ or % needs single quotes", () => {
  const words = ["C:\\Users\\me\\gateway.yaml", "C:\\Program Files\\gateway.exe", "C:\\$a b", "it's 100%"];
  expect(words.map(quoteForWindows)).toEqual([
    "C:\\Users\\me\\gateway.yaml",
    '"C:\\Program Files\\gateway.exe"',
    "'C:\\$a b'",
    "'it''s 100%'",
  ]);
});

for (const shell of ["sh", "bash", "zsh", "fish"]) {
  test.skipIf(Bun.which(shell) === null)(`${shell} reads a quoted word as it was`, () => {
    for (const word of ["a b", "it's", "$HOME", "a?b*", "~", "", "a\nb", 'say "x"', "!!"]) {
      const { stdout } = Bun.spawnSync([shell, "-c", `printf %s ${quoteWord(word)}`]);
      expect(stdout.toString()).toBe(word);
    }
  });
}
