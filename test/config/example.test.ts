import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkConfigText } from "../../src/config/file/load.ts";
import { listSettings } from "../../src/config/yaml/problems.ts";
import { makeTempFolder } from "../harness/temp.ts";

const EXAMPLE = join(import.meta.dir, "../../config.example.yaml");
const text = readFileSync(EXAMPLE, "utf8");
/** The example with all settings switched on. A setting that is off is a comment `# name: value`. */
const uncommented = text.replaceAll(/^( +)# ([a-z_]+: \S+)$/gm, "$1$2");

test("the example config loads, without any environment", () => {
  const { catalog } = checkConfigText(text, EXAMPLE, {});
  expect([...catalog.groups.keys()]).toEqual(
    "claude codex local claude-local gemini relay claude-plan claude-max".split(" "),
  );
  expect(catalog.channels.get("openai-main")?.baseUrl.href).toBe("https://api.openai.com/");
  expect(catalog.groups.get("codex")?.multiplier).toBe("0.8");
});

test("the example config also loads when all settings that are commented out are switched on", () => {
  using folder = makeTempFolder();
  writeFileSync(folder.join("company-ca.pem"), "-----BEGIN CERTIFICATE-----\n");
  const { catalog } = checkConfigText(uncommented, folder.join("gateway.yaml"), {});
  const channel = catalog.channels.get("anthropic-main");
  expect(channel).toMatchObject({ probeMs: 60_000, ca: "-----BEGIN CERTIFICATE-----\n" });
  expect(channel).toMatchObject({ priceProvider: "anthropic", free: false });
  expect(channel?.proxy?.href).toBe("http://proxy.example:3128/");
  expect(catalog.groups.get("claude")?.limits.concurrentRequests).toBe(100);
});

test("every setting that the schema knows is in the example config", () => {
  const places = [
    [],
    ["listen"],
    ["on_disconnect"],
    ["failover"],
    ["ledger"],
    ["ledger", "rotate"],
    ["channels", "any"],
    ["channels", "any", "timeouts"],
    ["groups", "any"],
    ["groups", "any", "limits"],
    ["plans", "any"],
    ["keys", 0],
    ["keys", 0, "limits"],
    ["prices", "any"],
  ];
  for (const place of places) {
    const settings = listSettings(place);
    expect(settings, place.join(".")).not.toBeEmpty();
    for (const setting of settings)
      expect(uncommented).toMatch(new RegExp(`(^ *(- )?|[{,] )${setting}:`, "m"));
  }
});
