// What a gateway answers to its user: `GET reports/NAME` and `POST actions/NAME`.

import { z } from "zod";
import { repricingSchema } from "../../billing/ledger/line.ts";
import { type LimitUse, listLimitUses, listSessionUses } from "../../billing/limits/alerts.ts";
import { didYouMean } from "../../lib/text/nearest.ts";
import { RECORDING_NAME } from "../../config/yaml/scalars.ts";
import { messageOf } from "../../lib/errors.ts";
import { fail, Refusal, refuseUsage } from "../../lib/refusal.ts";
import { probeChannel } from "../channels/upkeep.ts";
import type { ChannelView } from "../channels/view.ts";
import { reportFault } from "../observe/observer.ts";
import type { LimitRow, OverviewReply, SessionReply } from "./documents.ts";
import { addKey, changeKey, changeSchema, describeLimit, listKeys, newKeySchema, NO_FILE } from "./keys.ts";
import type { ApiParts } from "./parts.ts";
import { buildState } from "./state.ts";
import { buildStatus } from "./status.ts";

type Handler = (given: unknown, parts: ApiParts) => unknown;

function define<Input>(
  describe: () => z.ZodType<Input>,
  answer: (input: Input, parts: ApiParts) => unknown,
): Handler {
  let input: z.ZodType<Input> | null = null;
  return (given, parts) => {
    const { success, data } = (input ??= describe()).safeParse(given);
    if (success) return answer(data, parts);
    return refuseUsage("The gateway does not understand this: it has another version.");
  };
}

const names = () => z.record(z.string(), z.string());
const nothing = () => z.unknown();

function describeLimits(uses: readonly LimitUse[], { gateway }: ApiParts): LimitRow[] {
  return uses.map((use) => describeLimit(use, gateway.catalog.alerts.at));
}

const REPORTS: Readonly<Record<string, Handler>> = {
  overview: define(names, async (query, parts) => {
    const { catalog, ledger, now } = parts.gateway;
    const document = await parts.thread.ask("overview", query);
    const uses = listLimitUses(catalog.keys.values(), ledger.sums, now());
    return { ...document, limits: describeLimits(uses, parts) } satisfies OverviewReply;
  }),
  session: define(names, async (query, parts) => {
    const { catalog, ledger } = parts.gateway;
    const document = await parts.thread.ask("session", query);
    const { session, key: name } = document.found ?? {};
    const key = catalog.keys.get(name ?? "");
    const uses = key === undefined || session === undefined ? [] : listSessionUses(key, session, ledger.sums);
    return { ...document, limits: describeLimits(uses, parts) } satisfies SessionReply;
  }),
  state: define(names, (_, parts) => buildState(parts)),
  status: define(names, ({ session, key }, { gateway }) =>
    buildStatus(session ?? null, key ?? null, gateway),
  ),
  "channel-choices": define(names, async (_, { setUp }) => ({ choices: (await setUp?.list()) ?? null })),
  run: define(names, ({ id = "" }, { gateway }) => {
    gateway.finished.flush();
    return gateway.runs.find(id);
  }),
  keys: define(names, (_, parts) => listKeys(parts)),
};

const ACTIONS: Readonly<Record<string, Handler>> = {
  "add-key": define(newKeySchema, addKey),
  "change-key": define(changeSchema, changeKey),
  "add-channel": define(
    () =>
      z.strictObject({
        what: z.string(),
        platform: z.string().optional(),
        name: z.string().optional(),
        group: z.string().optional(),
        credential: z.string().optional(),
      }),
    (wish, { setUp }) => (setUp ?? fail(NO_FILE)).add(wish),
  ),
  "change-channel": define(
    () => z.strictObject({ name: z.string(), action: z.enum(["disable", "enable", "probe"]) }),
    changeChannel,
  ),
};

const PRIVATE_ACTIONS: Readonly<Record<string, Handler>> = {
  "accept-ledger": define(nothing, (_, { gateway }) => ({
    accepted: gateway.ledger.acceptMarks().map(({ mark }) => mark),
  })),
  /** Only the gateway writes its ledger. */
  "correct-ledger": define(
    () => z.array(repricingSchema),
    (drafts, { gateway: { ledger, alerts, catalog, now } }) => {
      for (const draft of drafts) {
        if (ledger.problem !== null) fail(`Not all corrections were written: ${ledger.problem}.`);
        ledger.correct({ ...draft, time: new Date(now()).toISOString() });
      }
      ledger.flush();
      alerts.check(listLimitUses(catalog.keys.values(), ledger.sums, now()));
      return { written: drafts.length };
    },
  ),
  /** Answers when the config is applied or refused. `sha256` is its text's hash. */
  "apply-config": define(
    () => z.object({ sha256: z.string() }),
    async ({ sha256 }, { configPath, follow }) => ({
      config: configPath,
      outcome: await follow.config(sha256),
    }),
  ),
  "apply-prices": define(nothing, (_, { configPath, follow }) => ({
    config: configPath,
    outcome: follow.prices(),
  })),
  /** Records a run under `name`. Null stops it, and answers when all is written. */
  "record-run": define(
    () =>
      z.object({ session: z.string().min(1).max(200), name: z.string().regex(RECORDING_NAME).nullable() }),
    async ({ session, name }, { gateway: { recorder } }) => {
      const recorded = recorder.recordRun(session, name);
      if (name === null) await recorder.close();
      return recorded;
    },
  ),
  "open-page": define(nothing, (_, { console }) => ({
    url: (console() ?? fail("This gateway has no console.")).createLink(),
  })),
};

async function changeChannel(
  { name, action }: { readonly name: string; readonly action: "disable" | "enable" | "probe" },
  { gateway }: ApiParts,
): Promise<ChannelView | null> {
  const { catalog, channels } = gateway;
  const channel = catalog.channels.get(name);
  if (channel === undefined)
    return fail(`There is no channel "${name}"${didYouMean(name, catalog.channels.keys())}.`);
  if (action === "probe") await probeChannel(channel, gateway);
  else if (channel.disabled)
    fail(
      `"${name}" is disabled in the config file. \`gateway channels set ${name} disabled=none\` enables it.`,
    );
  else channels.setDisabled(channel, action === "disable", gateway.now());
  return channels.view(catalog, gateway.now()).find((each) => each.name === name) ?? null;
}

function list(method: string, rows: Readonly<Record<string, Handler>>): [string, Handler][] {
  return Object.entries(rows).map(([name, answer]) => [`${method}/${name}`, answer]);
}

const FOR_ALL = new Map([...list("GET reports", REPORTS), ...list("POST actions", ACTIONS)]);
const FOR_COMMANDS = new Map(list("POST actions", PRIVATE_ACTIONS));

function findHandler({ method, path, isPage }: Call): Handler | null {
  const route = `${method} ${path}`;
  const own = FOR_ALL.get(route) ?? (isPage ? undefined : FOR_COMMANDS.get(route));
  const [, name] = /^GET reports\/([\w-]+)$/.exec(route) ?? [];
  if (own !== undefined || name === undefined) return own ?? null;
  return define(names, (query, { thread }) => thread.ask(name, query));
}

export interface Call {
  readonly method: string;
  readonly path: string;
  readonly given: unknown;
  readonly isPage: boolean;
}

export interface Reply {
  readonly status: number;
  readonly document: unknown;
}

export async function answerCall(call: Call, parts: ApiParts): Promise<Reply> {
  const answer = findHandler(call);
  if (answer === null) return refuse(404, "The gateway has no such address.");
  try {
    return { status: 200, document: await answer(call.given, parts) };
  } catch (error) {
    if (error instanceof Refusal) return refuse(error.exitStatus === 2 ? 400 : 409, error.message);
    reportFault(error, parts.gateway.observer);
    return refuse(500, messageOf(error));
  }
}

function refuse(status: number, error: string): Reply {
  return { status, document: { error } };
}
