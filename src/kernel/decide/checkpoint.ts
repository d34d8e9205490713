/** What an attempt has got so far: recorded while it runs, or when it gives its task back. */
import type { CommandOf, Tokened } from "#kernel/model/command.ts";
import type { Claim, Task } from "#kernel/model/entities.ts";
import type { Event } from "#kernel/model/event.ts";
import type { Checkpoint, Evidence } from "#kernel/model/model.ts";
import type { Rejection } from "#kernel/model/rejection.ts";
import type { State } from "#kernel/model/state.ts";
import { noMemoryForMore } from "#kernel/memory/free-memory.ts";
import { bytesOfCheckpoint } from "#kernel/memory/weigh.ts";
import { endedBy, findClaim, whenCancelling, wrongPhase } from "./claim.ts";
import { accept, type Decision, reject } from "./decision.ts";
import { tooNew } from "./feature.ts";
import { wrongEvidence } from "./submit.ts";
import { within, wrongCheckpoint } from "./validate.ts";

export function decideCheckpoint(state: State, command: CommandOf<"checkpoint">, nowMs: number): Decision {
  const { checkpoint, token } = command;
  const wrong = within("checkpoint", wrongCheckpoint(checkpoint, state.limits)) ?? tooNew(state, "checkpoint");
  if (wrong) return reject(wrong);
  const found = findClaim(state, command);
  if (!found.claim) return reject(found.why);
  const { task } = found.claim;
  const { checkpoint: last } = task;
  // The reply to the first one may have been lost: repeat it.
  if (last?.token === token && isSame(last, checkpoint)) return accept({ recorded: true });
  const { checkpointMsMin } = state.limits;
  const waitMs = last?.token === token ? last.atMs + checkpointMsMin - nowMs : 0;
  if (waitMs > 0) return reject({ kind: "shard-full", what: "checkpoints of the task", retryAfterMs: waitMs });
  const unfit = unfitFor(state, task, checkpoint, command.evidence);
  if (unfit) return reject(unfit);
  return accept({ recorded: true }, [checkpointed(found.claim, checkpoint, nowMs)]);
}

const isSame = (a: Checkpoint, b: Checkpoint): boolean =>
  a.payload === b.payload && a.digests.length === b.digests.length && a.digests.every((d, i) => b.digests[i] === d);

function unfitFor(
  state: State,
  task: Task,
  checkpoint: Checkpoint,
  evidence: Evidence | undefined,
): Rejection | undefined {
  const { stage } = task;
  if (task === stage.planning) return { kind: "invalid", path: "task", why: "planning has no checkpoints" };
  const bytes = bytesOfCheckpoint(checkpoint) - bytesOfCheckpoint(task.checkpoint);
  // K3: every blob must be pinned, and the pin must not have expired.
  return wrongEvidence(checkpoint.digests, evidence) ?? noMemoryForMore(state, stage.job, Math.max(0, bytes), "due");
}

const checkpointed = ({ task, token }: Claim, { payload, digests }: Checkpoint, at: number): Event => ({
  kind: "checkpointed",
  task: task.no,
  token,
  checkpoint: { payload, digests },
  at,
});

export function decideRelease(state: State, command: CommandOf<"release">, nowMs: number): Decision {
  const { checkpoint } = command;
  const wrong =
    checkpoint && (within("checkpoint", wrongCheckpoint(checkpoint, state.limits)) ?? tooNew(state, "checkpoint"));
  if (wrong) return reject(wrong);
  const found = findClaim(state, command);
  if (!found.claim) return releasedBefore(found.task, command) ?? reject(found.why);
  const { claim } = found;
  const { task } = claim;
  // Work without outside effects can be released after it started, as if it had never run; other work only if the next
  // attempt knows where this one has stopped.
  const isKnown = checkpoint !== undefined || task.checkpoint?.token === claim.token;
  if (claim.startedAtMs !== 0 && task.template.effects !== "pure" && !isKnown)
    return reject(wrongPhase(task, "unstarted or with a checkpoint, to be released"));
  if (task.phase === "CANCELLING") return accept({ released: true }, [ended(claim, nowMs)]);
  const unfit = checkpoint && unfitFor(state, task, checkpoint, command.evidence);
  if (unfit) return reject(unfit);
  const kept = checkpoint ? [checkpointed(claim, checkpoint, nowMs)] : [];
  return accept({ released: true }, [...kept, ended(claim, nowMs)]);
}

function releasedBefore(task: Task | undefined, command: Tokened): Decision | undefined {
  const { outcome } = endedBy(task, command) ?? {};
  return outcome === "released" || outcome === "cancelled" ? accept({ released: true }) : undefined;
}

function ended({ task, token, startedAtMs }: Claim, nowMs: number): Event {
  const cancelling = task.phase === "CANCELLING";
  return {
    kind: "attempt-ended",
    task: task.no,
    token,
    outcome: cancelling ? "cancelled" : "released",
    reason: cancelling ? "cancelled" : "preempted",
    message: startedAtMs === 0 ? "released before it was started" : "given back",
    next: cancelling ? whenCancelling(task) : { do: task.second ? "nothing" : "ready" },
    at: nowMs,
  };
}
