// One request in plain words.

import { multiplyExactly, REPORTED } from "../../billing/charge.ts";
import { hashLine, type Line } from "../../billing/ledger/line.ts";
import { type FoundRequest, listPasses, type Money } from "../../billing/reports/request.ts";
import { BASES, OUTCOMES, PAYERS } from "../../billing/reports/words.ts";
import { groupDigits } from "../terminal/text.ts";

export function explainRequest({ own, corrections }: FoundRequest): string[] {
  const { line, file, number, text } = own;
  return [
    ...explainRoute(line),
    "",
    ...explainMoney(line),
    "",
    "Attempts",
    ...line.attempts.map(({ channel, status, error }, index) => {
      const how = error ?? (status === undefined ? "no answer" : `status ${status}`);
      return `  ${index + 1}. ${channel}: ${how}`;
    }),
    "",
    ...corrections.flatMap((correction) => {
      const { id, time, was } = correction.line;
      const before = was.charge_usd === null ? "not known" : `$${was.charge_usd}`;
      const place = `${id}, ${correction.file}, line ${correction.number}`;
      return [
        `Corrected at ${time}: ${place}; the charge was ${before}`,
        ...explainMoney(correction.line).map((each) => `  ${each}`),
        "",
      ];
    }),
    "Place",
    `  ${file}, line ${number}`,
    `  sha256 ${hashLine(text)}`,
    `  after  ${line.prev}`,
  ];
}

function explainRoute(line: Line): string[] {
  const { upstream_model: answered, first_byte_ms: first, duration_ms: duration, status, suspect } = line;
  const facts = [
    OUTCOMES[line.outcome],
    ...(status === null ? [] : [`status ${status}`]),
    ...(first === null ? [] : [`first byte after ${first} ms`]),
    ...(duration === null ? [] : [`finished after ${duration} ms`]),
  ];
  const as = answered === null || answered === line.model ? "" : `, answered as ${answered}`;
  return [
    `Request ${line.id}`,
    `  ${line.time}, key ${line.key}, group ${line.group} (${line.platform}), channel ${line.channel}`,
    `  ${line.endpoint}, model ${line.model}${as}${line.stream ? ", streamed" : ""}`,
    `  ${facts.join(", ")}`,
    `  ${BASES[line.basis]}`,
    ...(suspect === undefined ? [] : [`  suspect: ${suspect}`]),
  ];
}

function explainMoney(money: Money): string[] {
  const { price_source: source, priced_as: as, tier } = money;
  const passes = listPasses(money, "");
  const usage = passes.flatMap(({ pass, model, tier: own, amounts, factors }) => {
    const all = Object.entries(factors).map(([name, value]) => ` × ${value} (${name})`);
    const head = pass === null ? [] : [`  ${pass} by ${model}, tier ${own ?? "unknown"}`];
    return [...head, ...amounts.map((each) => explainUsage(each, source, all.join("")))];
  });
  const charge = explainCharge(money);
  if (source === REPORTED) return ["Usage, whose price the seller has named", ...usage, ...charge];
  const requested = as === undefined ? "" : ` for ${as}, which was requested`;
  const how = source === null ? "" : ` (prices: ${source}${requested}; tier: ${tier ?? "unknown"})`;
  return [`Usage × price${how}`, ...(usage.length > 0 ? usage : ["  nothing"]), ...charge];
}

function explainUsage(
  amount: ReturnType<typeof listPasses>[number]["amounts"][number],
  source: string | null,
  factors: string,
): string {
  const { kind, count, per, price, usd } = amount;
  const label = `  ${kind.padEnd(18)} ${groupDigits(String(count)).padStart(12)}`;
  if (kind === "reasoning") return `${label} tokens, part of the output and not charged again`;
  if (count === 0 || source === REPORTED) return label;
  if (usd === null) return `${label}, no price`;
  const [total = "", unit = ""] = per.split(" ");
  return `${label} ${unit} × $${price} / ${total}${unit === "tokens" ? factors : ""} = $${usd}`;
}

function explainCharge(money: Money): string[] {
  const { official_usd: official, multiplier, charge_usd: charge, paid_by: payer } = money;
  const { at_least_usd: least, provider_usd: named } = money;
  const own = named === undefined ? [] : [`  the seller's own amount = $${named}`];
  if (official === null || charge === null) {
    const more = least === undefined ? "" : `; at least $${least}, for all that has a price`;
    const sentence = `  charge: not known; no sum includes it${more}`;
    return ["  official amount: not known", ...own, sentence];
  }
  const exact = multiplyExactly(official, multiplier);
  const rounding = exact === charge ? "not rounded" : `rounded once, half away from zero, from $${exact}`;
  return [
    `  official amount = $${official}`,
    ...own,
    `  charge = $${official} × ${multiplier} (the group's multiplier) = $${charge}, ${rounding}`,
    ...(payer === undefined ? [] : [`  ${PAYERS[payer]}: limits in USD count the official amount`]),
  ];
}
