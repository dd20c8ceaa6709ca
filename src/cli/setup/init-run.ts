// The action of `gateway init`: finds or asks for credentials, writes the config,
// and creates a key for each group. The file's text comes from init-text.ts.

import { existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { checkConfigText } from "../../config/file.ts";
import { hasLocalConfig, placeConfig } from "../../config/find.ts";
import { readBaseUrl, readSecretText } from "../../config/scalars.ts";
import { type Platform, PLATFORMS } from "../../config/schema.ts";
import { codeOf } from "../../lib/errors.ts";
import { createFile } from "../../lib/own-file.ts";
import { newSecret, sha256Hex } from "../../lib/secret.ts";
import { quoteWord } from "../../lib/shell-word.ts";
import { type Start, writeConfig } from "./init-text.ts";
import { type ConfigFlags, describe, formatMoment } from "../config-access.ts";
import { printSecrets } from "../keys/print-secrets.ts";
import { askOne, askSecret, askSome, askText, canAsk, fail, tell } from "../terminal.ts";
import { alignText, measure } from "../text.ts";

export interface InitFlags extends ConfigFlags {
  readonly yes?: true;
  readonly json?: true;
}

interface Preset {
  readonly platform: Platform;
  readonly title: string;
  readonly variable: string;
  readonly channel: string;
  readonly baseUrl: string;
  /** The base URL is only an example: the user has to name it. */
  readonly ownAddress?: true;
  readonly group: string;
  readonly description: string;
  /** One that the group's keys suit. */
  readonly tool: string;
}

/** For each platform the provider that most of its users have. The relay's address is the user's own. */
const PRESET_OF: Readonly<Record<Platform, Omit<Preset, "platform">>> = {
  messages: {
    title: "Anthropic (Claude Code, Anthropic SDKs)",
    variable: "ANTHROPIC_API_KEY",
    channel: "anthropic-main",
    baseUrl: "https://api.anthropic.com",
    group: "claude",
    description: "Anthropic at cost",
    tool: "claude",
  },
  responses: {
    title: "OpenAI (Codex, OpenAI SDKs)",
    variable: "OPENAI_API_KEY",
    channel: "openai-main",
    baseUrl: "https://api.openai.com",
    group: "codex",
    description: "OpenAI at cost",
    tool: "codex",
  },
  content: {
    title: "Google Gemini (Gemini CLI, Google SDKs)",
    variable: "GEMINI_API_KEY",
    channel: "google-main",
    baseUrl: "https://generativelanguage.googleapis.com",
    group: "gemini",
    description: "Gemini at cost",
    tool: "gemini",
  },
  relay: {
    title: "A relay that serves both Claude and Gemini models",
    variable: "RELAY_API_KEY",
    channel: "relay-main",
    baseUrl: "https://relay.example.com",
    ownAddress: true,
    group: "relay",
    description: "the relay at cost",
    tool: "claude",
  },
};

const PRESETS: readonly Preset[] = PLATFORMS.map((platform) => ({ platform, ...PRESET_OF[platform] }));

export async function init(flags: InitFlags): Promise<void> {
  const path = placeConfig(flags.config, process.env);
  if (existsSync(path)) refuseOverwrite(path);
  const presets = flags.yes !== true && canAsk() ? await askPresets() : findPresets();
  const created = formatMoment(new Date());
  const opened = presets.map((preset) => ({ preset, secret: newSecret() }));
  const starts = opened.map(({ preset, secret }) => openStart(preset, sha256Hex(secret), created));
  const offers = PRESETS.filter(({ platform }) => !presets.some((preset) => preset.platform === platform));
  const text = writeConfig(
    starts,
    offers.map((preset) => openStart(preset, "", "")),
  );
  checkConfigText(text, path, process.env, { missing: "keep" });
  writeNew(path, text);
  const keys = opened.map(({ preset, secret }) => ({
    name: preset.group,
    group: preset.group,
    platform: preset.platform,
    secret,
  }));
  const names = keys.map(({ name }) => name);
  await printSecrets({
    lines:
      flags.json === true
        ? [JSON.stringify({ config: path, keys })]
        : keys.map(({ name, secret }) => `${name.padEnd(8)}${secret}`),
    names,
    done: `${path} was written with ${names.length === 1 ? "the key" : "the keys"} ${names.join(", ")}`,
  });
  for (const line of describeNext(path, presets)) tell(line);
}

interface Chosen extends Preset {
  /** As it will stand in the file. */
  readonly credential: string;
}

function findPresets(): Chosen[] {
  return PRESETS.filter(({ ownAddress, variable }) => ownAddress !== true && isSet(variable)).map(byVariable);
}

async function askPresets(): Promise<Chosen[]> {
  const found = findPresets().map(({ platform }) => platform);
  const choices = PRESETS.map(({ platform, title, variable }) => ({
    value: platform,
    label: isSet(variable) ? `${title} · ${variable} is set` : title,
  }));
  const wanted = await askSome("Which platforms do you use? (space marks, enter goes on)", choices, found);
  const chosen: Chosen[] = [];
  for (const preset of PRESETS.filter(({ platform }) => wanted.includes(platform)))
    chosen.push(await askPreset(preset));
  return chosen;
}

async function askPreset(preset: Preset): Promise<Chosen> {
  const place =
    preset.ownAddress !== true
      ? preset
      : {
          ...preset,
          baseUrl: await askText({ message: "The relay's base URL", check: complain(readBaseUrl) }),
        };
  if (isSet(place.variable)) return byVariable(place);
  const way = await askOne(`${place.title}: where is the credential?`, [
    { value: "paste", label: "I paste it now (it is kept in the config file, readable by you alone)" },
    { value: "variable", label: `I will set ${place.variable} before I start the gateway` },
  ]);
  if (way === "variable") return byVariable(place);
  const credential = await askSecret({ message: "The credential", check: complain(readSecretText) });
  return { ...place, credential: credential.replaceAll("${", "$${") };
}

function complain(read: (text: string) => unknown): (text: string) => string | undefined {
  return (text) => {
    try {
      read(text);
      return undefined;
    } catch (error) {
      return describe(error);
    }
  };
}

function byVariable(preset: Preset): Chosen {
  return { ...preset, credential: `\${${preset.variable}}` };
}

function isSet(variable: string): boolean {
  return (process.env[variable] ?? "") !== "";
}

function openStart(preset: Preset | Chosen, sha256: string, created: string): Start {
  const credential = "credential" in preset ? preset.credential : byVariable(preset).credential;
  return { ...preset, credential, key: { name: preset.group, sha256, created } };
}

/** In a folder that is the user's alone, if there is none yet. */
export function writeNew(path: string, text: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    createFile(path, text);
  } catch (error) {
    if (codeOf(error) === "EEXIST") refuseOverwrite(path);
    fail(`${path} cannot be written: ${describe(error)}.`);
  }
}

export function refuseOverwrite(path: string): never {
  return fail(
    `${path} exists already and stays as it is: edit it, remove it, or name another with --config.`,
  );
}

function describeNext(path: string, presets: readonly Chosen[]): string[] {
  const [first] = presets;
  if (first === undefined) {
    return [
      ...warnOfLocal(path),
      `Wrote ${path}, without channels: none of ${PRESETS.filter(({ ownAddress }) => ownAddress !== true)
        .map(({ variable }) => variable)
        .join(", ")} is set.`,
      "Next: take the # off the channel and group that you need, set its variable, then `gateway keys add` and `gateway serve`.",
      "Or set a variable, remove the file and run `gateway init` again; `gateway serve --demo` needs neither.",
    ];
  }
  const unset = presets.filter(({ credential, variable }) => credential.startsWith("${") && !isSet(variable));
  const isFound = path === placeConfig(undefined, process.env);
  const config = isFound ? "" : ` --config ${quoteWord(path)}`;
  const rows = [
    [`gateway serve${config}`, "run it"],
    [`gateway env SECRET ${first.tool}${config}`, "how claude, codex, gemini or an SDK uses it with a key"],
    [`gateway keys add${config}`, "more keys"],
  ] as const;
  const width = Math.max(...rows.map(([command]) => measure(command)));
  return [
    `Wrote ${path}. The keys above are shown only this once.`,
    ...unset.map(({ variable }) => `Set ${variable} before you start the gateway.`),
    ...warnOfLocal(path),
    "Next:",
    ...rows.map(([command, meaning]) => `  ${alignText(command, width)}   ${meaning}`),
  ];
}

/** For those who expect it to be read, as by gateway 0.1.0. */
function warnOfLocal(path: string): string[] {
  if (!hasLocalConfig(path)) return [];
  return [
    "The gateway.yaml in this folder is another file, which is read only with `--config gateway.yaml`.",
  ];
}
