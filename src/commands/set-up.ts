// `gateway init`, `import`, `doctor`, `service`, `schema` and `completions`.

import { call, type CommandTable } from "../cli/terminal/command.ts";
import { list } from "../cli/terminal/listing.ts";
import { JSON_FORM, LEDGER, UNREAD_CONFIG } from "./flags.ts";

const service = () => import("../cli/setup/service.ts");
const credentials = () => import("../cli/setup/credentials.ts");

export const SET_UP: CommandTable = {
  init: {
    about: "write a config file from the credentials in the environment",
    flags: [
      [
        "--login <tool>",
        "for a plan and no API key: pass on the tool's own login (claude, or codex: experimental)",
      ],
      ["--yes", "ask nothing and use the credentials in the environment"],
      ["--json", "the new keys as one JSON document on stdout"],
      ["--config <file>", "where to write the config (default: ~/.config/gateway/gateway.yaml)"],
    ],
    examples: [
      "gateway init  # choose platforms, use the credentials in the environment, create the first keys",
      "gateway init --login claude  # Claude Code with a plan (Pro, Max), measured; the plan pays",
      "ANTHROPIC_API_KEY=sk-ant-… gateway init --yes --json  # for a script: no prompts, the keys as JSON",
    ],
    run: call(() => import("../cli/setup/init.ts"), "init"),
  },
  import: {
    about: "write a config file from that of another gateway, and list what has no counterpart",
    args: [
      ["<kind>", "whose config it is", { choices: ["ccr", "litellm"] }],
      ["<file>", "their config file"],
    ],
    flags: [
      ["--json", "what was written and what has no counterpart, as one JSON document on stdout"],
      ["--config <file>", "where to write the config (default: ~/.config/gateway/gateway.yaml)"],
    ],
    examples: [
      "gateway import ccr ~/.claude-code-router/config.json  # from claude-code-router",
      "gateway import litellm config.yaml  # from the proxy of LiteLLM",
    ],
    run: call(() => import("../cli/setup/import.ts"), "importConfig"),
  },
  doctor: {
    about: "check everything the gateway needs, free of charge, and show how to fix problems",
    flags: [JSON_FORM, LEDGER],
    examples: ["gateway doctor  # exit status 1 if anything is wrong"],
    run: call(() => import("../cli/doctor/doctor.ts"), "runDoctor"),
  },
  service: {
    about:
      "run the gateway in the background: a systemd user unit, a launchd agent on macOS, or a task on Windows",
    examples: [
      "gateway service install --enable  # run it now and at every login",
      "gateway service status  # show whether it runs",
    ],
    commands: {
      install: {
        about: "write the unit; with --enable, also start it",
        flags: [
          ["--enable", "start it now and at every login"],
          ["--config <file>", "the config file of the service"],
        ],
        examples: [
          "gateway service install --enable --config ~/gateway.yaml  # run it now and at every login",
        ],
        run: call(service, "installUnit"),
      },
      uninstall: {
        about: "stop it and remove the unit; config and ledger stay",
        flags: [UNREAD_CONFIG],
        examples: ["gateway service uninstall  # run nothing in the background"],
        run: call(service, "uninstallUnit"),
      },
      status: {
        about: "show whether it is installed, enabled and running; exit status 3 if it is not running",
        flags: [UNREAD_CONFIG, JSON_FORM],
        examples: ["gateway service status --json  # for a script"],
        run: call(service, "showStatus"),
      },
    },
  },
  credentials: {
    about: "keep the credentials of channels in the system's keychain",
    examples: [
      "gateway credentials set anthropic  # asks for it; then: credential: keychain:anthropic",
      "gateway credentials list  # which ones the config needs, and which are there",
    ],
    commands: {
      set: {
        about: "store a credential: from a hidden prompt, or from stdin without a terminal",
        args: [["<name>", "the name after `keychain:` in the config"]],
        flags: [UNREAD_CONFIG],
        examples: ["gateway credentials set anthropic  # ask for it, and show nothing of it"],
        run: call(credentials, "setCredential"),
      },
      list: {
        about: "show the credentials that the config has in the keychain, and whether they are there",
        flags: [JSON_FORM],
        examples: ["gateway credentials list  # never shows a secret"],
        run: list(credentials, (found) => found.listCredentials, [
          ["NAME", "name"],
          ["CHANNELS", "channels"],
          ["IN THE KEYCHAIN", ({ stored }) => (stored === null ? "unknown" : stored ? "yes" : "no")],
        ]),
      },
      remove: {
        about: "remove a credential from the keychain",
        args: [["<name>", "the name after `keychain:` in the config"]],
        flags: [UNREAD_CONFIG],
        examples: ["gateway credentials remove anthropic  # the channels that use it stop at the next start"],
        run: call(credentials, "removeCredential"),
      },
    },
  },
  schema: {
    about: "print the JSON schema of the config file or of a ledger line",
    args: [["<document>", "the document", { choices: ["config", "ledger"] }]],
    flags: [UNREAD_CONFIG],
    examples: [
      "gateway schema config > gateway.schema.json  # for editors: begin gateway.yaml with `# yaml-language-server: $schema=gateway.schema.json`",
      "gateway schema ledger  # the fields of a ledger line",
    ],
    run: call(() => import("../cli/setup/schema.ts"), "printSchema"),
  },
  completions: {
    about: "print shell completions of commands, flags, keys, groups, channels and plans",
    args: [["<shell>", "the shell", { choices: ["bash", "zsh", "fish"] }]],
    flags: [UNREAD_CONFIG],
    examples: [
      "echo 'eval \"$(gateway completions bash)\"' >> ~/.bashrc  # bash",
      "echo 'eval \"$(gateway completions zsh)\"' >> ~/.zshrc  # zsh, after compinit",
      "gateway completions fish > ~/.config/fish/completions/gateway.fish  # fish",
    ],
    run: call(() => import("../cli/completions/complete.ts"), "printScript"),
  },
};
