/** The ways in which an executor may misbehave, as a table. Each is tried on one grant. */
import type { TaskTemplate } from "#kernel/model/model.ts";
import type { Executor, Held } from "./executor.ts";
import { digestOf } from "./outputs.ts";
import { planFor } from "./planner.ts";
import { readTask } from "./script.ts";

export type Misbehaviour = keyof typeof ways;

/** True when the grant has been handled in some way. */
export async function misbehave(executor: Executor, held: Held): Promise<boolean> {
  const { random, injected } = executor.ports;
  for (const [kind, chance] of executor.habits.misbehaviour) {
    if (!random.chance(chance)) continue;
    injected(`executor-${kind}`);
    return ways[kind](executor, held);
  }
  return false;
}

const simple: TaskTemplate = {
  kind: "sim",
  requires: [],
  leaseMs: 3_000,
  attemptsMax: 2,
  retryOn: "any",
  backoffMs: 0,
  backoffMsMax: 0,
  queueMs: 3_600_000,
  attemptMs: 3_600_000,
  effects: "pure",
  speculate: false,
  graceMs: 0,
};

type MisbehaviourStep = (executor: Executor, held: Held) => Promise<boolean>;

const ways = {
  /** Is silent for far too long, then commits with its old token. */
  async stalls(executor, held) {
    held.renewed = false;
    await executor.run(held, held.grant.leaseMs * (1 + executor.ports.random.below(4)), true);
    if (held.grant.planning) return true;
    if (executor.ports.random.chance(0.5)) await executor.checkpoint(held);
    await executor.commit(held, readTask(held.grant.spec).outputs);
    return true;
  },
  /** Takes the work and is never heard of again, though its machine is alive. */
  async vanishes(_executor, held) {
    held.renewed = false;
    return true;
  },
  /** Sends every command twice, and once more later. */
  async repeats(executor, held) {
    if (held.grant.planning) return repeatsPlan(executor, held);
    const { outputs, runMs } = readTask(held.grant.spec);
    const { shard, grant } = held;
    const { task, token } = grant;
    const start = { kind: "start" as const, executor: executor.habits.name, task, token };
    await Promise.all([executor.ask(shard, start), executor.ask(shard, start)]);
    if ((await executor.run(held, runMs)) !== "done") return true;
    await Promise.all([executor.commit(held, outputs), executor.commit(held, outputs)]);
    await executor.ports.life.clock.sleep(executor.ports.random.below(5_000));
    await executor.commit(held, outputs);
    const late = { kind: "fail" as const, executor: executor.habits.name, task, token, message: "too late" };
    await executor.ask(shard, { ...late, reason: "user-failure" });
    return true;
  },
  /** Answers planning with a result and work with a plan. */
  async confuses(executor, held) {
    const { shard, grant } = held;
    const { task, token, planning } = grant;
    const result = { payload: "a plan?", digests: [] };
    const evidence = { digests: [], pinnedForMs: 0 };
    const claim = { executor: executor.habits.name, task, token };
    if (planning) {
      await executor.ask(shard, { kind: "commit", ...claim, result, evidence }, 3_000);
      await executor.ask(shard, { kind: "checkpoint", ...claim, checkpoint: result, evidence }, 3_000);
      const lock = { name: "stage-0", limit: 1, queueMax: 100, cancelInProgress: false };
      const set = { template: { ...simple, lock }, tasks: [{ key: "k", spec: "" }] };
      // Its task would wait for what its own stage holds.
      const plan = { kind: "tasks" as const, sets: [set], decides: { lock } };
      await executor.ask(shard, { kind: "record-plan", ...claim, plan }, 3_000);
    } else await executor.ask(shard, { kind: "record-plan", ...claim, plan: { kind: "skip", reason: "" } }, 3_000);
    return false;
  },
  /** Runs out of memory, whatever it is given. */
  async sickens(executor, held) {
    const { task, token } = held.grant;
    const sick = { kind: "fail" as const, executor: executor.habits.name, task, token, message: "too small" };
    await executor.ask(held.shard, { ...sick, reason: "out-of-memory" });
    return true;
  },
  /** Commits under tokens that were never its own. */
  async lies(executor, held) {
    const { shard, grant } = held;
    if (grant.planning) return false;
    const result = { payload: "lie", digests: [], publish: "lie" };
    const evidence = { digests: [], pinnedForMs: 1_000_000 };
    const { task } = grant;
    for (const token of [grant.token + 1, grant.token - 1, 0, -1])
      await executor.ask(
        shard,
        { kind: "commit", executor: executor.habits.name, task, token, result, evidence },
        3_000,
      );
    await executor.ask(
      shard,
      { kind: "commit", executor: "someone-else", task, token: grant.token, result, evidence },
      3_000,
    );
    return false;
  },
  /** Commits digests of blobs that do not exist, and claims that they are pinned. */
  async invents(executor, held) {
    const { shard, grant } = held;
    if (grant.planning) return false;
    const { task, token } = grant;
    const digests = [digestOf(Buffer.from(`never written ${shard}/${task}/${token}`))];
    const evidence = { digests, pinnedForMs: 1_000_000 };
    const result = { payload: "invented", digests };
    const claim = { executor: executor.habits.name, task, token };
    await executor.ask(shard, { kind: "commit", ...claim, result, evidence }, 3_000);
    const checkpoint = { payload: "invented", digests };
    await executor.ask(shard, { kind: "checkpoint", ...claim, checkpoint, evidence }, 3_000);
    const { random } = executor.ports;
    if (random.chance(0.3)) await executor.ask(shard, { kind: "release", ...claim, checkpoint, evidence }, 3_000);
    if (random.chance(0.3))
      await executor.ask(
        shard,
        { kind: "fail", ...claim, reason: "preempted", message: "invented", result, evidence },
        3_000,
      );
    return false;
  },
  /** Releases the claim. */
  async releases(executor, held) {
    const { task, token } = held.grant;
    const release = { kind: "release" as const, executor: executor.habits.name, task, token };
    await executor.ask(held.shard, release);
    if (executor.ports.random.chance(0.3)) await executor.ask(held.shard, release);
    return true;
  },
  /** Fails for reasons of its own. */
  async fails(executor, held) {
    const { task, token } = held.grant;
    const { random } = executor.ports;
    const reason = random.pick(["out-of-memory", "preempted", "user-failure", "timed-out"] as const);
    const message = "of its own making ".repeat(random.pick([1, 1_000]));
    await executor.run(held, 200);
    const fail = { kind: "fail" as const, executor: executor.habits.name, task, token, reason, message };
    await executor.ask(held.shard, fail);
    if (random.chance(0.5)) await executor.ask(held.shard, fail);
    // And then releases a claim that it no longer has.
    if (random.chance(0.5))
      await executor.ask(held.shard, { kind: "release", executor: executor.habits.name, task, token });
    return true;
  },
} satisfies Record<string, MisbehaviourStep>;

/** Plans twice at once, and once more when the plan has long been carried out. */
async function repeatsPlan(executor: Executor, held: Held): Promise<boolean> {
  const { shard, grant } = held;
  const plan = await planFor(executor, held);
  if (!plan) return true;
  const { task, token } = grant;
  const record = { kind: "record-plan" as const, executor: executor.habits.name, task, token, plan };
  // Sometimes long enough for the job to be cancelled in between: it goes on regardless.
  const longMs = executor.ports.random.pick([0, 3_000, 15_000]);
  await executor.ports.life.clock.sleep(executor.ports.random.fraction() * longMs);
  await Promise.all([executor.ask(shard, record), executor.ask(shard, record)]);
  await executor.ports.life.clock.sleep(executor.ports.random.below(3_000));
  await executor.ask(shard, record);
  return true;
}

export const misbehaviours = Object.keys(ways) as readonly Misbehaviour[];
