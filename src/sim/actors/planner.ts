import { isFault } from "#base/fault.ts";
import type { Grant, Plan, TaskSet } from "#kernel/model/model.ts";
import type { Granted } from "#shard/client/executor.ts";
import type { PlanInputs } from "#kernel/read/query.ts";
import type { Executor, Held } from "./executor.ts";
import { readJob, writeScript, type PlanScript, type ScriptedSet } from "./script.ts";

/** Reads the inputs page by page, as any planner must, and returns what the job's script says. */
export async function planFor(executor: Executor, held: Held): Promise<Plan | undefined> {
  const inputs = await readInputs(executor, held);
  return inputs && answerFor(inputs, held.grant, held.shard, executor.ports.waited);
}

export function answerFor(inputs: PlanInputs, grant: Grant, shard: number, waited: Set<string>): Plan {
  const script = readJob(inputs.spec).plans[grant.stageName];
  if (!script) return { kind: "fail", reason: "no script" };
  const { signal, waitMs } = script;
  if (signal !== undefined && !inputs.signals.some(({ name }) => name === signal))
    return { kind: "wait", forMs: 3_600_000, signals: [signal] };
  const gate = `${shard}/${grant.job}/${grant.stage}/${grant.generation}`;
  if (waitMs > 0 && !waited.has(gate)) {
    waited.add(gate);
    return { kind: "wait", forMs: waitMs, signals: [] };
  }
  return answerOf(script, grant.generation);
}

/** Whether the planner hangs in this attempt: each stage meets it once. */
export function isStuck({ spec }: PlanInputs, { shard, job, stage, stageName }: Granted, waited: Set<string>): boolean {
  const name = `stuck ${shard}/${job}/${stage}`;
  if (!readJob(spec).plans[stageName]?.stuck || waited.has(name)) return false;
  waited.add(name);
  return true;
}

async function readInputs(executor: Executor, { shard, grant }: Held): Promise<PlanInputs | undefined> {
  const { task, token } = grant;
  const { random, router } = executor.ports;
  const limit = random.pick([1, 2, 100]);
  let read: PlanInputs | undefined;
  try {
    do {
      const query = { kind: "plan-inputs" as const, task, token, limit, ...(read?.next ? { from: read.next } : {}) };
      const got = await router.request({ kind: "query", shard, query }, { deadlineMs: 10_000 });
      if (got.kind !== "answer") return undefined;
      const page = got.answer as PlanInputs;
      read = { ...page, results: [...(read?.results ?? []), ...page.results] };
    } while (read.next);
    return read;
  } catch (error) {
    if (isFault(error)) return undefined;
    throw error;
  }
}

function answerOf({ answer }: PlanScript, generation: number): Plan {
  if (answer.kind !== "tasks") return { kind: answer.kind, reason: "as scripted" };
  const { more, array, template, lockAgain } = answer;
  const decides = generation > 1 && lockAgain ? { ...answer.decides, lock: lockAgain } : answer.decides;
  if (array)
    return { kind: "tasks", set: { template, array: { count: array.count, spec: writeScript(array.script) } } };
  const setOf = ({ template, tasks }: ScriptedSet, set: number): TaskSet => ({
    template,
    tasks: tasks.map((script, i) => ({ key: set === 0 ? `p${i}` : `p${set}-${i}`, spec: writeScript(script) })),
  });
  if (!more && !decides) return { kind: "tasks", set: setOf(answer, 0) };
  const sets = [answer, ...(more ?? [])].map(setOf);
  return decides ? { kind: "tasks", sets, decides } : { kind: "tasks", sets };
}
