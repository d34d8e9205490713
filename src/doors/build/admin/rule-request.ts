/** Parses which results are to be revoked: pure. */
import { parseDurationMs } from "#base/units.ts";
import { HttpRefusal } from "#doors/build/http/refusal.ts";
import type { TrustRule } from "#doors/build/cache/trust.ts";

/**
 * `principal`, or `space` and `name`, or `space` alone, or `all`; written within `last`, or between the instants `from`
 * and `until`. Left out: everything up to now.
 */
export function parseRule(query: URLSearchParams, nowMs: number): TrustRule {
  const text = (key: string): string | undefined => query.get(key) || undefined;
  const [principal, space, name] = [text("principal"), text("space"), text("name")];
  const span = spanOf(text("last"), text("from"), text("until"), nowMs);
  const rule = { ...span, why: text("why") ?? "no reason given" };
  if (principal !== undefined && space === undefined && name === undefined)
    return { kind: "principal", principal, ...rule };
  if (principal === undefined && space !== undefined)
    return name === undefined ? { kind: "time", space, ...rule } : { kind: "key", space, name, ...rule };
  if (principal === undefined && name === undefined && text("all") === "yes") return { kind: "time", ...rule };
  throw new HttpRefusal(400, "say what to revoke: principal=, or space= (and name=), or all=yes");
}

function spanOf(last: string | undefined, from: string | undefined, until: string | undefined, nowMs: number) {
  if (last === undefined)
    return {
      untilMs: until === undefined ? nowMs : instant("until", until),
      ...(from !== undefined && { fromMs: instant("from", from) }),
    };
  const ms = parseDurationMs(last);
  if (ms === undefined || from !== undefined || until !== undefined)
    throw new HttpRefusal(400, "last: write a duration such as 2h, and neither from nor until beside it");
  return { fromMs: nowMs - ms, untilMs: nowMs };
}

function instant(name: string, text: string): number {
  const ms = Date.parse(text);
  if (Number.isFinite(ms)) return ms;
  throw new HttpRefusal(400, `${name}: write an instant such as 2026-01-31T12:00:00Z`);
}
