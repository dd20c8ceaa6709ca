// The commands that set a gateway up.

import { call, type CommandRow, type CommandTable } from "../cli/terminal/command.ts";
import { list } from "../cli/terminal/listing.ts";
import { JSON_FORM, LEDGER, UNREAD_CONFIG } from "./flags.ts";

const service = () => import("../cli/setup/service.ts");
const credentials = () => import("../cli/setup/credentials.ts");

const LIST_CREDENTIALS: CommandRow = {
  about: "show which of the config's credentials the keychain has",
  flags: [JSON_FORM],
  examples: ["gateway credentials list  # never shows a secret"],
  run: list(credentials, (found) => found.listCredentials, [
    ["NAME", "name"],
    ["CHANNELS", "channels"],
    ["IN THE KEYCHAIN", ({ stored }) => (stored === null ? "unknown" : stored ? "yes" : "no")],
  ]),
};

export const SET_UP: CommandTable = {
  init: {
    about: "write a config file from the credentials in the environment",
    flags: [
      ["--login <tool>", "pass on the tool's own login: claude, or codex (experimental)"],
      ["--yes", "ask nothing"],
      ["--json", "the new keys as one JSON document on stdout"],
      ["--config <file>", "where to write it (default: ~/.config/gateway/gateway.yaml)"],
    ],
    examples: [
      "gateway init  # with the credentials in the environment",
      "gateway init --login claude  # Claude Code with a plan (Pro, Max)",
      "ANTHROPIC_API_KEY=sk-ant-… gateway init --yes --json  # for a script",
    ],
    run: call(() => import("../cli/setup/init.ts"), "init"),
  },
  import: {
    about: "write a config file from that of another gateway",
    args: [
      ["<kind>", "the other gateway", { choices: ["ccr", "litellm"] }],
      ["<file>", "its config file"],
    ],
    flags: [
      ["--json", "what was written, as JSON on stdout"],
      ["--config <file>", "where to write it (default: ~/.config/gateway/gateway.yaml)"],
    ],
    examples: [
      "gateway import ccr ~/.claude-code-router/config.json  # from claude-code-router",
      "gateway import litellm config.yaml  # from the proxy of LiteLLM",
    ],
    run: call(() => import("../cli/setup/import.ts"), "importConfig"),
  },
  doctor: {
    about: "check everything, free of charge, and show how to fix it",
    flags: [JSON_FORM, LEDGER],
    examples: ["gateway doctor  # exit status 1 if anything is wrong"],
    run: call(() => import("../cli/doctor/doctor.ts"), "runDoctor"),
  },
  service: {
    about: "run the gateway in the background, with systemd, launchd or a Windows task",
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
        examples: ["gateway service install --enable --config ~/gateway.yaml  # at every login"],
        run: call(service, "installUnit"),
      },
      uninstall: {
        about: "stop it and remove the unit; config and ledger stay",
        flags: [UNREAD_CONFIG],
        examples: ["gateway service uninstall  # run nothing in the background"],
        run: call(service, "uninstallUnit"),
      },
      status: {
        about: "show whether it runs; exit status 3 if not",
        flags: [UNREAD_CONFIG, JSON_FORM],
        examples: ["gateway service status --json  # for a script"],
        run: call(service, "showStatus"),
      },
    },
  },
  credentials: {
    ...LIST_CREDENTIALS,
    about: "keep the credentials of channels in the system's keychain",
    examples: [
      "gateway credentials set anthropic  # for `credential: keychain:anthropic`",
      "gateway credentials list  # which are there",
    ],
    commands: {
      set: {
        about: "store a credential, from a hidden prompt or stdin",
        args: [["<name>", "the name after `keychain:` in the config"]],
        flags: [UNREAD_CONFIG],
        examples: ["gateway credentials set anthropic  # asks for it"],
        run: call(credentials, "setCredential"),
      },
      list: LIST_CREDENTIALS,
      remove: {
        about: "remove a credential from the keychain",
        args: [["<name>", "the name after `keychain:` in the config"]],
        flags: [UNREAD_CONFIG],
        examples: ["gateway credentials remove anthropic  # in force at the next start"],
        run: call(credentials, "removeCredential"),
      },
    },
  },
  schema: {
    about: "print the JSON schema of the config file or of a ledger line",
    args: [["<document>", "the document", { choices: ["config", "ledger"] }]],
    flags: [UNREAD_CONFIG],
    examples: [
      "gateway schema config > gateway.schema.json  # for editors",
      "gateway schema ledger  # the fields of a ledger line",
    ],
    run: call(() => import("../cli/setup/schema.ts"), "printSchema"),
  },
  completions: {
    about: "print shell completions",
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
