/**
 * Answers of keyed requests among the entries that all nodes of a cluster share: any node replays what another
 * answered. Bounded for each tenant in number and time.
 */
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { entryValueCharactersMax, type Entries } from "#base/entries.ts";
import type { Begun, KeptAnswers } from "./idempotency.ts";

export type KeptAnswersOptions = {
  readonly keptMs: number;
  /** How long a request may be handled before its key counts as abandoned. */
  readonly busyMs: number;
  /** Of one tenant: the oldest make way. */
  readonly tenantMax: number;
};

export const keptAnswersDefault: KeptAnswersOptions = { keptMs: 24 * 3_600_000, busyMs: 60_000, tenantMax: 10_000 };

const Kept = z.object({
  request: z.string(),
  answer: z.object({ status: z.int(), headers: z.record(z.string(), z.string()), body: z.string() }).optional(),
});

const space = "answer";

export function keptAnswersIn(entries: Entries, options: KeptAnswersOptions = keptAnswersDefault): KeptAnswers {
  const { keptMs, busyMs, tenantMax } = options;
  return {
    async begin({ tenant, key }, request): Promise<Begun> {
      const claim = JSON.stringify({ request, claim: randomUUID() });
      const entry = { space, key, owner: tenant, value: claim, forMs: busyMs, ownerMax: tenantMax };
      const added = await entries.add(entry);
      if (added.added) return { kind: "new", claim };
      const kept = Kept.parse(JSON.parse(added.value));
      if (kept.request !== request) return { kind: "other" };
      return kept.answer ? { kind: "answered", answer: kept.answer } : { kind: "busy" };
    },
    async finish({ key }, claim, answer) {
      const { request } = Kept.parse(JSON.parse(claim));
      const value = JSON.stringify({ request, answer });
      if (value.length > entryValueCharactersMax) await entries.remove({ space, key }, claim);
      else await entries.replace({ space, key }, claim, { value, forMs: keptMs });
    },
    async abandon({ key }, claim) {
      await entries.remove({ space, key }, claim);
    },
  };
}
