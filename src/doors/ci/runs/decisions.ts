/** Effects of a run that only a person can judge: until then the run stands still (`needs_decision`). */
import { Effects, effectsTag } from "#effects/effects.ts";
import type { DoorPorts } from "#door/ports.ts";

/** The keys of the effects that wait for a person. */
export type Decisions = (run: TaggedRun) => Promise<readonly string[]>;

export type TaggedRun = {
  readonly tenant: string;
  readonly run: string;
  readonly tags?: readonly { readonly name: string; readonly value: string }[] | undefined;
};

/** Of a run with more effects than this, the first are looked at. */
const effectsMax = 500;

export function decisionsIn({ records, clock }: Pick<DoorPorts, "records" | "clock">): Decisions {
  const effects = new Effects({ records, clock, isLive: () => Promise.resolve(true) }); // it only reads
  return async ({ tenant, run, tags = [] }) => {
    const ledger = tags.find(({ name }) => name === effectsTag)?.value ?? run;
    const page = await effects.list({ tenant, prefix: `job/${ledger}/`, limit: effectsMax });
    return page.records.flatMap(({ name, value }) => (value.needsDecision ? [name] : []));
  };
}

/** A run that would go on but for a person's word. */
export async function withDecisions<T extends { readonly status: string }>(
  shown: T,
  run: TaggedRun,
  decisions: Decisions,
): Promise<T & { status: T["status"] | "needs_decision"; decisions?: string[] }> {
  if (shown.status !== "in_progress") return shown;
  const keys = await decisions(run);
  return keys.length === 0 ? shown : { ...shown, status: "needs_decision", decisions: [...keys] };
}
