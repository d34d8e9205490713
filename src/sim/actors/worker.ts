/** The real worker, with runners and planners that follow the scripts. */
import { askers } from "#shard/client/ask.ts";
import { executorClient, type Granted } from "#shard/client/executor.ts";
import { gathering } from "#shard/client/gather.ts";
import type { Plan } from "#kernel/model/model.ts";
import type { PlanInputs } from "#kernel/read/query.ts";
import { createWorker } from "#worker/create-worker.ts";
import type { Planner, RunContext, Runner } from "#worker/runner.ts";
import type { ExecutorHabits, ExecutorPorts } from "./executor.ts";
import { digestOf } from "./outputs.ts";
import { answerFor, isStuck } from "./planner.ts";
import { publishOf, readTask } from "./script.ts";

export function startWorker(ports: ExecutorPorts, habits: ExecutorHabits): void {
  const { life, router, sources, blobs, random } = ports;
  const { command, query } = askers(router);
  const worker = createWorker({
    client: executorClient(command, query, random, gathering(router, 1)),
    blobs,
    clock: life.clock,
    random,
    executor: habits.name,
    offers: habits.offers,
    shards: habits.shards,
    sources,
    runners: { sim: runner(ports) },
    planners: { sim: planner(ports) },
    options: { slots: habits.slots, heldShardsMax: habits.heldShardsMax, pollMs: Math.max(habits.waitMs, 500) },
    log: (line) => life.machine.world.say(`${life.name} logs: ${line}`),
  });
  // It never stops by itself: only its machine crashes.
  void worker.run(new AbortController().signal);
}

const runner = ({ life, runs }: ExecutorPorts): Runner =>
  async function run({ task, signal, clock, report, checkpoint }: RunContext) {
    const script = readTask(task.spec);
    const over = runs.begin({
      shard: task.shard,
      grant: task,
      life,
      sinceMs: life.machine.world.nowMs,
      rogue: false,
      isStopped: () => signal.aborted,
    });
    try {
      for (let i = 0; i < script.checkpoints; i += 1)
        void checkpoint?.({ payload: `got by ${task.token}, ${i}`, outputs: i === 0 ? [outputOf(task, 1)] : [] }).catch(
          () => {},
        );
      for (let step = 0; step < script.steps; step += 1) {
        report({ step, name: `step ${step}`, status: "started" });
        await clock.sleep(script.runMs / script.steps, signal);
        report({ step, name: `step ${step}`, status: "succeeded" });
      }
      if (script.steps === 0) await clock.sleep(script.runMs, signal);
    } finally {
      over();
    }
    if (task.attempt <= script.failures) {
      const left = { payload: `left by ${task.token}`, outputs: script.leaves > 0 ? [outputOf(task, 0)] : [] };
      return { kind: "failed", reason: script.reason, message: "as scripted", left };
    }
    const outputs = Array.from({ length: script.outputs }, (_, i) => outputOf(task, i));
    const done = { kind: "done", payload: `ran as ${task.token}`, outputs } as const;
    return script.publish ? { ...done, publish: publishOf(task.shard, task) } : done;
  };

function outputOf({ shard, task, generation }: Granted, index: number) {
  const bytes = Buffer.from(`output ${index} of ${shard}/${task}/${generation}`);
  return { digest: digestOf(bytes), bytes };
}

const planner = ({ waited }: ExecutorPorts): Planner =>
  async function plan(inputs: PlanInputs, { task }): Promise<Plan> {
    if (isStuck(inputs, task, waited)) await new Promise(() => {});
    return answerFor(inputs, task, task.shard, waited);
  };
