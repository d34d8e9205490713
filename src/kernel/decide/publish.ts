/** Commands about results that are to be published. */
import type { CommandOf } from "#kernel/model/command.ts";
import { accept, type Decision, reject } from "./decision.ts";
import type { State } from "#kernel/model/state.ts";
import { wrongWhole } from "./validate.ts";
import { wrongEvidence } from "./submit.ts";
import { isDigest } from "#base/digest.ts";

export function decidePublished(state: State, command: CommandOf<"published">, nowMs: number): Decision {
  const wrong =
    wrongWhole("task", command.task, 1, Number.MAX_SAFE_INTEGER) ??
    wrongWhole("generation", command.generation, 1, Number.MAX_SAFE_INTEGER);
  if (wrong) return reject(wrong);
  const waiting = state.outbox.get(command.task);
  // A repeated command, or the result was invalidated in the meantime: there is nothing left to do.
  if (waiting?.generation !== command.generation) return accept({ published: false });
  const { job, task, generation } = waiting;
  return accept({ published: true }, [{ kind: "published", job: job.no, task, generation, at: nowMs }]);
}

export function decideRecordManifest(state: State, command: CommandOf<"record-manifest">, nowMs: number): Decision {
  const { no, digest, evidence } = command;
  const stage = state.manifests.get(no);
  if (!stage) return accept({ recorded: false });
  if (typeof digest !== "string" || !isDigest(digest))
    return reject({ kind: "invalid", path: "digest", why: "must be a digest" });
  // K3: consumers are planned on it, so it must be as durable as a result.
  const unproven = wrongEvidence([digest], evidence);
  if (unproven) return reject(unproven);
  return accept({ recorded: true }, [
    { kind: "manifest-written", job: stage.job.no, stage: stage.index, no, digest, at: nowMs },
  ]);
}
