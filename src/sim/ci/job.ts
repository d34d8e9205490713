/** A job as its runner sees it, with pretended steps: what they do outside, the court sees. */
import { isFault } from "#base/fault.ts";
import type { Random } from "#base/random.ts";
import type { Effects } from "#effects/effects.ts";
import type { Answer, Holder } from "#effects/ledger.ts";
import { isRejected } from "#shard/work/rejected.ts";
import type { Runner, RunContext, RunOutcome } from "#worker/runner.ts";
import { Stopped } from "#worker/holding.ts";
import { cellOf } from "#doors/ci/cell-task.ts";
import { after, type Kept, readKept } from "#doors/ci/job/kept-steps.ts";
import type { CellResult } from "#doors/ci/result.ts";
import { readCellTask } from "#doors/ci/runs/planners.ts";
import { readRun } from "#doors/ci/runs/record.ts";
import type { Step } from "#doors/ci/workflow/compile/model.ts";
import { stringOf } from "#doors/ci/workflow/yaml/node.ts";
import type { CiCourt } from "./court.ts";
import type { Machine } from "./machine.ts";

export type JobPorts = {
  readonly machine: Machine;
  readonly court: CiCourt;
  readonly effects: Effects;
  readonly random: Random;
};

/** A person looks at the world, and takes a while. */
const decideMsMax = 20_000;

export const jobRunner =
  (ports: JobPorts): Runner =>
  async (context) => {
    const { task, blobs, signal } = context;
    const cellTask = await readCellTask(task.spec, blobs);
    const { spec, cell, fails } = cellOf(cellTask, await readRun(blobs, cellTask.run));
    const { machine, court, random } = ports;
    const job = `${task.jobId} ${cellTask.job}/${cellTask.cells.join(".")}`;
    if (cell.environment) court.deploys(task.jobId);
    const isActive = (): boolean => machine.isUp && isHeld(context);
    using _work = disposing(court.atWork(cellTask.run.about.workflow, { run: task.jobId, isActive }));
    try {
      await runSteps(spec.steps, { job, group: cellTask.run.about.workflow, context, ports });
      const payload = { result: "success", outputs: {}, isFailureAllowed: false } satisfies CellResult;
      return { kind: "done", payload: JSON.stringify(payload) };
    } catch (error) {
      if (!isCancelled(signal)) throw error;
      // its post steps have their time, and no other run of the group may be at work meanwhile
      for (let step = 0; step < 3; step += 1) {
        await machine.clock.sleep(random.between(100, 3_000));
        if (isHeld(context)) court.tally.posts += 1;
        court.looksAt(cellTask.run.about.workflow);
      }
      const left = { result: "cancelled", outputs: {}, isFailureAllowed: !fails } satisfies CellResult;
      return cancelled(JSON.stringify(left));
    }
  };

const cancelled = (payload: string): RunOutcome => ({
  kind: "failed",
  reason: "cancelled",
  message: "cancelled",
  left: { payload },
});

const disposing = (end: () => void): Disposable => ({ [Symbol.dispose]: end });

const isCancelled = ({ aborted, reason }: AbortSignal): boolean =>
  aborted && reason instanceof Stopped && reason.why === "cancelled";

/** Also while it is cancelled and tidies up. */
const isHeld = ({ signal, leftMs }: RunContext): boolean =>
  (!signal.aborted || isCancelled(signal)) && (leftMs?.() ?? 1) > 0;

type InJob = {
  readonly job: string;
  readonly group: string;
  readonly context: RunContext;
  readonly ports: JobPorts;
};

async function runSteps(steps: readonly Step[], of: InJob): Promise<void> {
  const { job, group, context, ports } = of;
  const { task, signal } = context;
  const { court, machine } = ports;
  let kept = task.checkpoint && readKept(task.checkpoint.payload);
  if (kept) court.tally.resumed += 1;
  for (let next = kept?.next ?? 0; next < steps.length; next += 1) {
    signal.throwIfAborted();
    court.looksAt(group);
    court.stepBegins(job, next, `${machine.name}, token ${task.token},`);
    await perform(steps[next], `${job}/${next}`, of);
    signal.throwIfAborted();
    kept = await keep(kept, next + 1, of);
  }
}

/** As the node's half does it (KeptSteps): what could not be kept is no reason to stop, unless the claim is gone. */
async function keep(before: Kept | undefined, next: number, { job, context, ports }: InJob): Promise<Kept | undefined> {
  const { task, checkpoint } = context;
  const delta = { manifest: digestOf(job, next), parts: [] };
  const state = digestOf(job, next);
  const reached = { next, numbered: next, logBytes: 0, state, steps: [], delta };
  const now: Kept = { ...after(before, reached), seenAs: "/job", token: task.token, actions: {}, tries: 0 };
  try {
    await checkpoint?.({ payload: JSON.stringify(now), digests: [] });
    ports.court.durable(job, next);
    return now;
  } catch (error) {
    if (isRejected(error, "token-stale") || !isHeld(context)) throw error;
    return before;
  }
}

const digestOf = (job: string, next: number): Kept["state"] => `${job} ${next}`;

async function perform(step: Step | undefined, key: string, of: InJob): Promise<void> {
  const { context, ports } = of;
  const { random, machine } = ports;
  const text = (step?.kind === "run" && stringOf(step.run)) || "";
  const [what, how] = text.split(" ");
  await machine.clock.sleep(random.between(10, 2_000), context.signal);
  if (what === "effect") await effect(key, how ?? "", of);
}

/** As `millrace effect run` does it. */
async function effect(key: string, how: string, { context, ports }: InJob): Promise<void> {
  const { court, random, machine } = ports;
  const { task, signal } = context;
  const holder: Holder = { job: task.jobId, task: task.taskId, token: task.token };
  const act = async (): Promise<void> => {
    // an attempt whose lease is over is ended before it can act
    if (signal.aborted || !isHeld(context)) throw new Error("the attempt has ended");
    court.acts(key, how === "idempotent");
    await machine.clock.sleep(random.below(5_000), signal);
    await tell("commit", { key, holder, ports, signal });
  };
  for (;;) {
    const { kind } = await tell("begin", { key, holder, ports, signal });
    if (kind === "go") return await act();
    if (kind === "done") return court.mustBeDone(key);
    if (kind === "stale") throw new Error("a later attempt has taken over");
    if (kind === "unknown" && how === "idempotent") return await act();
    if (kind === "unknown" && how === "probe") {
      await machine.clock.sleep(random.below(500), signal);
      if (!court.wasDone(key)) return await act();
      return void (await tell("commit", { key, holder, ports, signal }));
    }
    if (kind === "unknown") await ask(key, { holder, ports, signal });
    await machine.clock.sleep(1_000, signal);
  }
}

type Telling = { readonly holder: Holder; readonly ports: JobPorts; readonly signal: AbortSignal };

/** A person looks, and decides; then the attempt begins it again. */
async function ask(key: string, { holder, ports, signal }: Telling): Promise<void> {
  const { court, effects, machine, random } = ports;
  court.tally.asked += 1;
  await tell("ask", { key, holder, ports, signal });
  const seen = await effects.find(tenant, key);
  await machine.clock.sleep(random.below(decideMsMax), signal);
  const as = court.wasDone(key) ? ("done" as const) : ("not-done" as const);
  await machine.call(
    "decide",
    async () =>
      await effects.change(tenant, key, { kind: "decide", as, by: "ada", result: "", begins: seen?.value.begins }),
  );
}

export const tenant = "mill";

async function tell(
  command: "begin" | "commit" | "ask",
  { key, holder, ports, signal }: Telling & { readonly key: string },
): Promise<Answer> {
  const { court, effects, machine } = ports;
  for (;;)
    try {
      return await machine.call(
        `${command} ${key}`,
        async () => {
          const answer = await effects.change(
            tenant,
            key,
            command === "commit" ? { kind: command, holder, result: "" } : { kind: command, holder },
          );
          court.answered(key, command, holder, answer);
          return answer;
        },
        signal,
      );
    } catch (error) {
      if (!isFault(error) || signal.aborted) throw error;
      await machine.clock.sleep(500, signal);
    }
}
