/**
 * One attempt from claim to end: start, run, upload, report.
 *
 * W2 An attempt is not reported while it runs: its end is sent when its runner has returned.
 * W3 A result is committed only after its bytes are in the store.
 */
import { afterAwake, type Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { FailReason, Plan } from "#kernel/model/model.ts";
import type { ExecutorClient } from "#shard/client/executor.ts";
import { isRejected } from "#shard/work/rejected.ts";
import { Stopped, type Holding } from "./holding.ts";
import { Reports } from "./reports.ts";
import type { Output, Planners, Runner, RunOutcome, Runners } from "./runner.ts";

export type AttemptPorts = {
  readonly client: ExecutorClient;
  readonly blobs: BlobStore;
  readonly clock: Clock;
  readonly runners: Runners;
  readonly planners: Planners;
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
  try {
    const run = granted.planning ? plan(holding, ports) : runTask(holding, { runner, reports, refused }, ports);
    const ending = await orStuck(run, holding, ports);
    await reports.flush();
    // A runner that prepares may end without waiting for the confirmation.
    return (await refused) ?? (holding.stopped === undefined ? ending : stoppedEnding(holding));
  } catch (error) {
    return (await refused) ?? (holding.stopped === undefined ? thrownEnding(error) : stoppedEnding(holding));
  } finally {
    cancelTimer();
  }
}

/** Undefined once it is started. Never rejects. */
async function startOf(holding: Holding, { clock, client }: AttemptPorts): Promise<Ending | undefined> {
  const { claim, signal } = holding;
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
  readonly refused: Promise<Ending | undefined>;
};

async function runTask(
  holding: Holding,
  { runner, reports, refused }: TaskRun,
  { blobs, clock }: AttemptPorts,
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
  return await runner({ task, signal, blobs, clock, leftMs, started, report: (step) => reports.add(step), afterwards });
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

function stoppedEnding({ stopped }: Holding): Ending {
  switch (stopped) {
    case "cancelled":
      return { kind: "failed", reason: "cancelled", message: "cancelled" };
    case "timed-out":
      return { kind: "failed", reason: "timed-out", message: "the attempt exceeded its time limit" };
    case "drained":
      return { kind: "failed", reason: "preempted", message: "the worker left" };
    // The owner may be back and find the claim alive: report it, so that it need not wait for the lease to expire.
    case "lease-ran-out":
      return { kind: "failed", reason: "executor-lost", message: "the lease could not be renewed in time" };
    default:
      return { kind: "silent", why: stopped ?? "not stopped" };
  }
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
    else await client.fail(claim, ending.reason, ending.message, options);
  } catch (error) {
    if (ports.signal.aborted) return;
    if (isRejected(error, "token-stale") || isRejected(error, "task-unknown"))
      return ports.log(`${claim.taskId}: its result no longer counts`);
    if (!isFault(error) && !isRejected(error)) throw error;
    ports.log(`${claim.taskId}: ${error.message}`);
    const reason = refusalReason(error);
    if (reason !== undefined && ending.kind !== "failed")
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
  const { outputs = [], payload, publish } = done;
  const digests = [...new Set([...outputs.map(({ digest }) => digest), ...(done.digests ?? [])])];
  for (let upload = 1; ; upload += 1) {
    try {
      await uploadAll(outputs, ports.blobs);
      const result = publish === undefined ? { payload, digests } : { payload, digests, publish };
      await ports.client.commit(holding.claim, result, { deadlineMs: ports.tellMsMax, signal: ports.signal });
      return;
    } catch (error) {
      // Evicted between upload and pin: upload again, the bytes are still here.
      const again = isRejected(error, "evidence-missing") || isRejected(error, "evidence-expired");
      if (!again || upload >= uploadsMax) throw error;
    }
  }
}

async function uploadAll(outputs: readonly Output[], blobs: BlobStore): Promise<void> {
  if (outputs.length === 0) return;
  const missing = new Set(await blobs.missing(outputs.map(({ digest }) => digest)));
  for (const { digest, bytes } of outputs) {
    if (!missing.delete(digest)) continue;
    try {
      await blobs.write(digest, bytes);
    } catch (error) {
      throw isFault(error) ? error : new Fault("unavailable", "upload output", { digest }, error);
    }
  }
}
