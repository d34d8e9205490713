/** One stage of a million tasks in the kernel alone: what its plan costs, what it holds in memory, how fast it ends. */
import { encodeEvents } from "#shard/codec/codec.ts";
import { defaultLimits } from "#kernel/model/limits.ts";
import type { Grant } from "#kernel/model/model.ts";
import type { Replies } from "#kernel/model/reply.ts";
import { createState, type State } from "#kernel/model/state.ts";
import { step } from "#kernel/step.ts";
import type { Command } from "#kernel/model/command.ts";
import { must } from "#base/assert.ts";
import type { Report } from "#bench/report.ts";

const template = {
  kind: "bench.array",
  requires: [],
  leaseMs: 60_000,
  attemptsMax: 3,
  retryOn: "any",
  backoffMs: 1_000,
  backoffMsMax: 60_000,
  queueMs: 86_400_000,
  attemptMs: 3_600_000,
  effects: "pure",
  speculate: false,
  graceMs: 0,
} as const;

const digest = `${"ab".repeat(32)}/123`;
const reserved = 1_000;
const heldAtOnce = 20_000;

type Held = Pick<Grant, "task" | "token">;
const shortOf = ({ task, token }: Grant): Held => ({ task, token });

export function arrayStage(report: Report, count: number): void {
  const state = createState(0, defaultLimits);
  const run = new Run(state);
  const before = heapBytes();
  run.act(submitOf(count));
  const planBytes = run.logBytes;
  const startedMs = performance.now();
  // The first are all held at once, to see what a live task costs.
  const held: Held[] = [];
  for (let done = 0; done < Math.min(heldAtOnce, count); done += reserved) held.push(...run.reserve(done).map(shortOf));
  const live = state.tasks.size;
  const liveBytes = heapBytes() - before;
  for (const grant of held) run.commit(grant);
  for (let done = held.length; done < count; done += reserved) for (const grant of run.reserve(done)) run.commit(grant);
  const resultBytes = heapBytes() - before;
  const [no] = state.manifests.keys();
  const evidence = { digests: [digest], pinnedForMs: 1_000 };
  run.act({ kind: "record-manifest", no: must(no, "manifest"), digest, evidence });
  const seconds = (performance.now() - startedMs) / 1_000;
  const phase = state.jobs.get(1)?.phase ?? "gone";
  const keptBytes = heapBytes() - before;
  report.say(
    `an array stage of ${count} tasks: ${phase} in ${seconds.toFixed(1)} s, ${Math.round(count / seconds)} tasks/s ` +
      `(claimed ${reserved} at a time, committed one by one); submit ${planBytes} bytes of log, all of it ` +
      `${(run.logBytes / count).toFixed(0)} bytes a task`,
  );
  report.say(
    `  memory: ${Math.round(liveBytes / live)} bytes a live task (${live} of them), ` +
      `${Math.round(resultBytes / count)} bytes a task with its result, ` +
      `${Math.round(keptBytes / count)} once the manifest has it`,
  );
  report.figure("array_plan_bytes", planBytes);
  report.figure("array_live_task_bytes", Math.round(liveBytes / live));
  report.figure("array_seconds", seconds);
  report.figure("array_tasks_per_s", Math.round(count / seconds));
  report.target({ what: "bytes of memory a live task of an array", atMost: 1_024, got: liveBytes / live });
}

class Run {
  readonly #state: State;
  #nowMs = 1_700_000_000_000;
  logBytes = 0;

  constructor(state: State) {
    this.#state = state;
  }

  act<T>(command: Command): T {
    this.#nowMs += 1;
    const outcome = step(this.#state, command, this.#nowMs);
    if (!outcome.ok) throw new Error(`${command.kind}: ${JSON.stringify(outcome.rejection)}`);
    if (outcome.events.length > 0) this.logBytes += encodeEvents(outcome.events).length;
    return outcome.reply as T;
  }

  reserve(nonce: number): readonly Grant[] {
    const given = { kind: "reserve", executor: "e", offers: [], prefer: [], count: reserved, start: true } as const;
    return this.act<Replies["reserve"]>({ ...given, nonce: `n${nonce}` }).grants;
  }

  commit({ task, token }: Held): void {
    const result = { payload: `part ${task}`, digests: [] };
    const evidence = { digests: [], pinnedForMs: 0 };
    this.act({ kind: "commit", executor: "e", task, token, result, evidence });
  }
}

const submitOf = (count: number): Command => ({
  kind: "submit",
  tenant: "t",
  door: "bench",
  name: "array",
  payloadHash: "h",
  priority: 0,
  spec: "",
  deadlineMs: 86_400_000,
  stages: [
    {
      name: "parts",
      needs: [],
      after: "success",
      tasks: { template, array: { count, spec: JSON.stringify({ run: ["convert", "--part"] }) } },
      failFast: false,
      mayFail: false,
      parallelMax: 0,
    },
  ],
});

/** Exact only with --expose-gc; without it, garbage is counted too. */
function heapBytes(): number {
  globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
