/**
 * Commands that only a shard's own host may send are refused too when they are invalid (K12). No caller can send them,
 * so they are given to a copy of the shard, as it was at the end of the run: it must refuse them, and be unchanged.
 */
import type { Command } from "#kernel/model/command.ts";
import type { State } from "#kernel/model/state.ts";
import { step } from "#kernel/step.ts";

const twisted = (value: object): Command => value as Command;

const nonsense = (state: State): readonly Command[] => [
  { kind: "take-over", epoch: state.epoch, node: "again" },
  { kind: "take-over", epoch: 0, node: "before all others" },
  { kind: "take-over", epoch: state.epoch + 1, node: "x".repeat(1_000) },
  { kind: "take-quota", tenant: "nobody", slots: 1, forMs: 1_000 },
  { kind: "take-quota", tenant: "nobody", slots: -1, forMs: 1_000 },
  { kind: "take-quota", tenant: "nobody", slots: 1, forMs: Number.NaN },
  twisted({ kind: "forget", jobs: "all" }),
  { kind: "published", task: 0, generation: 1 },
  { kind: "published", task: 1, generation: Number.NaN },
  { kind: "notified", job: 0, notice: 0, outcome: "delivered" },
  twisted({ kind: "notified", job: 1, notice: 0, outcome: "perhaps" }),
];

/** What it did with invalid host commands; undefined if it refused all of them. */
export function nonsenseTaken(copy: State, canonical: (state: State) => string): string | undefined {
  const before = canonical(copy);
  for (const command of nonsense(copy)) {
    const { ok, events } = step(copy, command, copy.nowMs);
    if (ok || events.length > 0) return `shard ${copy.shard} took ${JSON.stringify(command)}`;
  }
  if (canonical(copy) !== before) return `shard ${copy.shard} is not the same after nonsense from its host`;
  // And it still accepts a valid one.
  const { ok, events } = step(copy, { kind: "take-over", epoch: copy.epoch + 1, node: "heir" }, copy.nowMs);
  return ok && events.length > 0 ? undefined : `shard ${copy.shard} refused an heir`;
}
