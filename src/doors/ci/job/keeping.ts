/** Whether a job keeps what its steps leave, and what an earlier attempt at it has kept. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { isFault } from "#base/fault.ts";
import { restoredFolder } from "#doors/ci/resume/step-keeper.ts";
import { triesOf } from "#doors/ci/attempts.ts";
import type { RunContext } from "#worker/runner.ts";
import type { JobBox } from "./box.ts";
import { bringKept, type Kept, KeptSteps, readKept } from "./kept-steps.ts";
import type { JobKnown } from "./known.ts";
import type { LogSender } from "./log/log-sender.ts";
import type { JobRequest } from "./request.ts";
import { StepReader } from "./step-reader.ts";

export type Keeping = {
  readonly request?: NonNullable<JobRequest["keep"]>;
  readonly kept?: Kept;
  /** Something was kept, and not all of it can be had. */
  readonly isDamaged?: boolean;
};

/**
 * How this job keeps what its steps leave, and what an earlier attempt, or the run that it goes on from, has kept.
 * Without `usesOwn` what an earlier attempt kept is damaged.
 */
export async function keeping(
  box: JobBox,
  { task, blobs, checkpoint }: RunContext,
  { keptKey: key, from }: Pick<JobKnown, "keptKey" | "from">,
  usesOwn: boolean,
): Promise<Keeping> {
  if (key === undefined || !checkpoint) return {};
  const before = usesOwn ? task.checkpoint && readKept(task.checkpoint.payload) : undefined;
  const kept = before?.tries === triesOf(task.failures) ? before : from?.kept;
  if (!kept || !(await box.seeAs(kept.seenAs))) return { request: { key } };
  try {
    box.own(await bringKept(kept, box.folder, blobs));
    return { request: { key, deltas: kept.deltas.length }, kept };
  } catch (error) {
    if (!isFault(error, "not-found") && !isFault(error, "corrupt")) throw error;
    await rm(join(box.folder, restoredFolder), { recursive: true, force: true }); // a piece is gone: start again
    return { request: { key }, isDamaged: true };
  }
}

export function readerOf(
  request: JobRequest,
  { kept, actions = {} }: { readonly kept: Kept | undefined; readonly actions: JobRequest["actions"] },
  { box, context, log }: { readonly box: JobBox; readonly context: RunContext; readonly log: LogSender | undefined },
): StepReader {
  const { checkpoint, report, blobs, task } = context;
  if (!request.keep || !checkpoint) return new StepReader(report);
  const keeper = new KeptSteps(
    {
      folder: box.folder,
      seenAs: box.seenAs,
      blobs,
      token: task.token,
      checkpoint,
      logged: async (bytes) => log?.reached(bytes),
      steps: () => steps.lines,
      actions: commitsOf(actions),
      tries: triesOf(task.failures),
      isHeld: () => !context.signal.aborted && (context.leftMs?.() ?? 1) > 0,
    },
    kept,
  );
  const steps = new StepReader(report, { before: kept?.steps ?? [], keeper });
  return steps;
}

const commitsOf = (actions: NonNullable<JobRequest["actions"]>): Kept["actions"] =>
  Object.fromEntries(Object.entries(actions).flatMap(([uses, { sha }]) => (sha === undefined ? [] : [[uses, sha]])));
