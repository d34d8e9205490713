/**
 * One attempt from claim to end: start, run, upload, report.
 *
 * W2 An attempt is not reported while it runs: its end is sent when its runner has returned.
 * W3 A result is committed only after its bytes are in the store.
 */
import { afterAwake, type Clock } from "#base/clock.ts";
import type { Digest } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { FailReason, Plan, Step } from "#kernel/model/model.ts";
import type { ExecutorClient, Granted } from "#shard/client/executor.ts";
import { isRejected } from "#shard/work/rejected.ts";
import { Checkpoints } from "./checkpoints.ts";
import { Stopped, type Holding } from "./holding.ts";
import { Reports } from "./reports.ts";
import type { Left, Planners, RunContext, Runner, RunOutcome, Runners, TaskAccess } from "./runner.ts";
import { digestsOf, uploadAll } from "./upload.ts";

export type AttemptPorts = {
  readonly client: ExecutorClient;
  readonly blobs: BlobStore;
  readonly clock: Clock;
  readonly runners: Runners;
  readonly planners: Planners;
  /** What a task may call with; left out: nothing. */
  readonly access?: ((task: Granted) => Promise<TaskAccess | undefined>) | undefined;
  readonly log: (line: string) => void;
  /** How long a runner that was asked to stop may take before it is abandoned, unless its task says otherwise. */
  readonly stopMsMax: number;
  /** How long to retry the report: the owner may be back after an outage of many leases. */
  readonly tellMsMax: number;
  /** Aborts reporting. */
  readonly signal: AbortSignal;
};

export type Ending =
  | RunOutcome
  | { readonly kind: "planned"; readonly plan: Plan }
  | { readonly kind: "silent"; readonly why: string };

/** Runs the attempt until it ends. Reports nothing yet (W2). */
export async function endingOf(holding: Holding, ports: AttemptPorts): Promise<Ending> {
  const { granted } = holding;
  const refused = startOf(holding, ports);
  const runner = runnerOf(holding, ports);
  const early = runner?.prepares ? undefined : await refused;
  if (early) return early;
  // Nothing ran while the machine slept, and the shard does not count that time either.
  const cancelTimer = afterAwake(ports.clock, granted.attemptMs, () => holding.stop("timed-out"));
  const reports = new Reports(ports.client, ports.clock, holding);
  const checkpoints = new Checkpoints(ports, holding);
  try {
    const run = granted.planning
      ? plan(holding, ports)
      : runTask(holding, { runner, reports, checkpoints, refused }, ports);
    const ending = await orStuck(run, holding, ports);
    await reports.flush();
    await checkpoints.settled();
    // A runner that prepares may end without waiting for the confirmation.
    return (
      (await refused) ??
      (holding.stopped === undefined ? ending : stoppedEnding(holding, ending, checkpoints.isRecorded))
    );
  } catch (error) {
    return (
      (await refused) ??
      (holding.stopped === undefined ? thrownEnding(error) : stoppedEnding(holding, undefined, checkpoints.isRecorded))
    );
  } finally {
    cancelTimer();
  }
}

/** Undefined once it is started. Never rejects. */
async function startOf(holding: Holding, { clock, client }: AttemptPorts): Promise<Ending | undefined> {
  const { claim, signal } = holding;
  if (holding.isSure) return holding.stopped ? stoppedEnding(holding) : undefined;
  try {
    const sentAtMs = clock.monotonicMs();
    const { leaseMs } = await client.start(claim, { deadlineMs: Math.max(1, holding.leftMs), signal });
    holding.renewed(sentAtMs, leaseMs);
    return undefined;
  } catch (error) {
    return holding.stopped ? stoppedEnding(holding) : { kind: "silent", why: `not started: ${String(error)}` };
  }
}

function runnerOf({ granted }: Holding, { runners }: AttemptPorts): Runner | undefined {
  return !granted.planning && Object.hasOwn(runners, granted.kind) ? runners[granted.kind] : undefined;
}

type TaskRun = {
  readonly runner: Runner | undefined;
  readonly reports: Reports;
  readonly checkpoints: Checkpoints;
  readonly refused: Promise<Ending | undefined>;
};

async function runTask(
  holding: Holding,
  { runner, reports, checkpoints, refused }: TaskRun,
  { blobs, clock, access: accessOf }: AttemptPorts,
): Promise<Ending> {
  const { granted: task, signal } = holding;
  if (!runner)
    return { kind: "failed", reason: "executor-lost", message: `this worker has no runner for ${task.kind}` };
  const afterwards = (done: () => void): void => holding.afterwards(done);
  const started = async (): Promise<void> => {
    if (await refused) holding.stop("lost");
    signal.throwIfAborted();
  };
  const leftMs = (): number => holding.leftMs;
  const report = (step: Step): void => reports.add(step);
  const checkpoint = (left: Left): Promise<void> => checkpoints.record(left);
  const onSignal: RunContext["onSignal"] = (listener) => holding.onSignal(listener);
  const access = async (): Promise<TaskAccess | undefined> => await accessOf?.(task);
  const more = { leftMs, started, report, checkpoint, onSignal, afterwards, access };
  return await runner({ task, signal, blobs, clock, ...more });
}

async function plan(holding: Holding, { planners, client, blobs, clock }: AttemptPorts): Promise<Ending> {
  const { granted: task, signal, claim } = holding;
  const planner = Object.hasOwn(planners, task.kind) ? planners[task.kind] : undefined;
  if (!planner)
    return { kind: "failed", reason: "executor-lost", message: `this worker has no planner for ${task.kind}` };
  const inputs = await client.planInputs(claim, { signal });
  return { kind: "planned", plan: await planner(inputs, { task, signal, blobs, clock }) };
}

/** A runner that does not stop must not hold the worker's slot forever. */
async function orStuck(run: Promise<Ending>, holding: Holding, ports: AttemptPorts): Promise<Ending> {
  const { clock, log } = ports;
  const stopMsMax = holding.granted.stopMs ?? ports.stopMsMax;
  const stuck = Promise.withResolvers<Ending>();
  let cancel = (): void => {};
  const onStop = (): void => {
    cancel = clock.after(stopMsMax, () => {
      log(`${holding.granted.taskId}: did not stop in ${stopMsMax} ms; it is abandoned`);
      stuck.reject(holding.signal.reason as Error);
    });
  };
  if (holding.signal.aborted) onStop();
  holding.signal.addEventListener("abort", onStop, { once: true });
  try {
    return await Promise.race([run, stuck.promise]);
  } finally {
    cancel();
    holding.signal.removeEventListener("abort", onStop);
  }
}

function thrownEnding(error: unknown): Ending {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof Stopped) return { kind: "failed", reason: "executor-lost", message };
  const reason: FailReason = isFault(error, "not-found") ? "input-lost" : "executor-lost";
  return { kind: "failed", reason, message };
}

/** `ending`: what the runner returned although it was stopped, if it did. */
function stoppedEnding({ stopped }: Holding, ending?: Ending, isRecorded = false): Ending {
  const left = ending && leftIn(ending);
  switch (stopped) {
    case "cancelled":
      return { kind: "failed", reason: "cancelled", message: "cancelled", ...(left && { left }) };
    case "timed-out": {
      const message = "the attempt exceeded its time limit";
      return { kind: "failed", reason: "timed-out", message, ...(left && { left }) };
    }
    case "drained":
      if (ending?.kind === "given-back" || ending?.kind === "done") return ending;
      if (isRecorded) return { kind: "given-back" };
      return { kind: "failed", reason: "preempted", message: "the worker left", ...(left && { left }) };
    // The owner may be back and find the claim alive: report it, so that it need not wait for the lease to expire.
    case "lease-ran-out":
      return { kind: "failed", reason: "executor-lost", message: "the lease could not be renewed in time" };
    default:
      return { kind: "silent", why: stopped ?? "not stopped" };
  }
}

function leftIn(ending: Ending): Left | undefined {
  if (ending.kind === "failed") return ending.left;
  if (ending.kind === "given-back") return ending.checkpoint;
  if (ending.kind !== "done") return undefined;
  const { payload, outputs = [], digests = [] } = ending;
  return { payload, outputs, digests };
}

const uploadsMax = 3;

/** Reports how the attempt ended. The claim is renewed meanwhile, so that the report still counts when it arrives. */
export async function tell(holding: Holding, ending: Ending, ports: AttemptPorts): Promise<void> {
  if (ending.kind === "silent") return ports.log(`${holding.granted.taskId}: ${ending.why}`);
  const { client } = ports;
  const { claim } = holding;
  const options = { deadlineMs: ports.tellMsMax, signal: ports.signal };
  try {
    if (ending.kind === "done") await commit(holding, ending, ports);
    else if (ending.kind === "planned") await client.recordPlan(claim, ending.plan, options);
    else if (ending.kind === "given-back") await giveBack(holding, ending.checkpoint, ports);
    else await fail(holding, ending, ports);
  } catch (error) {
    if (ports.signal.aborted) return;
    if (isRejected(error, "token-stale") || isRejected(error, "task-unknown"))
      return ports.log(`${claim.taskId}: its result no longer counts`);
    if (!isFault(error) && !isRejected(error)) throw error;
    ports.log(`${claim.taskId}: ${error.message}`);
    const reason = refusalReason(error);
    if (reason !== undefined && ending.kind !== "failed" && ending.kind !== "given-back")
      await client.fail(claim, reason, error.message, options).catch(() => {});
  }
}

/**
 * A result that is invalid or too large would be refused forever, so it is the task's own failure. Lost bytes are the
 * executor's failure. A shard without space for a plan is neither: the claim is released at once, and the stage is
 * planned again.
 */
function refusalReason(error: unknown): FailReason | undefined {
  if (isRejected(error, "shard-full") || isRejected(error, "queue-full")) return "preempted";
  if (isRejected(error, "invalid") || isRejected(error, "limit")) return "user-failure";
  if (isRejected(error, "evidence-missing") || isRejected(error, "evidence-expired")) return "executor-lost";
  return isFault(error, "exhausted") || isFault(error, "invalid") ? "executor-lost" : undefined;
}

async function commit(
  holding: Holding,
  done: Extract<RunOutcome, { kind: "done" }>,
  ports: AttemptPorts,
): Promise<void> {
  const { payload, publish } = done;
  await whilePinned(done, ports, async (digests) => {
    const result = publish === undefined ? { payload, digests } : { payload, digests, publish };
    await ports.client.commit(holding.claim, result, { deadlineMs: ports.tellMsMax, signal: ports.signal });
  });
}

/** Uploads the outputs, then reports what names them. */
async function whilePinned(
  { outputs = [], digests = [] }: Omit<Left, "payload">,
  { blobs }: AttemptPorts,
  report: (digests: readonly Digest[]) => Promise<void>,
): Promise<void> {
  const all = digestsOf({ outputs, digests });
  for (let upload = 1; ; upload += 1) {
    try {
      await uploadAll(outputs, blobs);
      return await report(all);
    } catch (error) {
      // Evicted between upload and pin: upload again, the bytes are still here.
      const again = isRejected(error, "evidence-missing") || isRejected(error, "evidence-expired");
      if (!again || upload >= uploadsMax) throw error;
    }
  }
}

/** Why it failed counts in any case; what it leaves only if it can be stored. */
async function fail(
  { claim }: Holding,
  { reason, message, left }: Extract<RunOutcome, { kind: "failed" }>,
  ports: AttemptPorts,
): Promise<void> {
  const { client, tellMsMax: deadlineMs, signal } = ports;
  if (!left) return await client.fail(claim, reason, message, { deadlineMs, signal });
  try {
    await whilePinned(left, ports, (digests) =>
      client.fail(claim, reason, message, { deadlineMs, signal, result: { payload: left.payload, digests } }),
    );
  } catch (error) {
    if (signal.aborted || isRejected(error, "token-stale") || isRejected(error, "task-unknown")) throw error;
    if (!isFault(error) && !isRejected(error)) throw error;
    ports.log(`${claim.taskId}: what it left is not kept: ${error.message}`);
    await client.fail(claim, reason, message, { deadlineMs, signal });
  }
}

async function giveBack({ claim }: Holding, checkpoint: Left | undefined, ports: AttemptPorts): Promise<void> {
  const { client, tellMsMax: deadlineMs, signal } = ports;
  try {
    if (!checkpoint) return void (await client.release(claim, { deadlineMs, signal }));
    const { payload } = checkpoint;
    await whilePinned(checkpoint, ports, async (digests) => {
      await client.release(claim, { deadlineMs, signal, checkpoint: { payload, digests } });
    });
  } catch (error) {
    if (isRejected(error, "token-stale") || !isRejected(error)) throw error;
    // Work with outside effects and without a checkpoint: that it was interrupted is all that can be said.
    await client.fail(claim, "preempted", `it could not be given back: ${error.message}`, { deadlineMs, signal });
  }
}
