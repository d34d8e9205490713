/** Who is told when a job has ended. */
import type { CommandOf } from "#kernel/model/command.ts";
import type { Limits } from "#kernel/model/limits.ts";
import type { Rejection } from "#kernel/model/rejection.ts";
import type { State } from "#kernel/model/state.ts";
import { accept, type Decision, reject } from "./decision.ts";
import { within, wrongChoice, wrongList, wrongText, wrongWhole } from "./validate.ts";

const outcomes = ["delivered", "refused", "given-up"];

export function wrongNotices(path: string, notices: unknown, limits: Limits): Rejection | undefined {
  const wrong = wrongList(path, notices, limits.noticesMax);
  if (wrong) return wrong;
  for (const [i, notice] of (notices as readonly unknown[]).entries()) {
    const { shard, job, stage, name } = (notice ?? {}) as Readonly<Record<string, unknown>>;
    const wrongOne =
      wrongWhole("shard", shard, 0, 65_535) ??
      wrongWhole("job", job, 1, Number.MAX_SAFE_INTEGER) ??
      wrongWhole("stage", stage, 0, limits.stagesMax) ??
      wrongText("name", name, limits.noticeNameLengthMax, 1);
    if (wrongOne) return within(`${path}[${i}]`, wrongOne);
  }
  return undefined;
}

export function decideNotified(state: State, command: CommandOf<"notified">, nowMs: number): Decision {
  const { job: no, notice, outcome } = command;
  const wrong =
    wrongWhole("job", no, 1, Number.MAX_SAFE_INTEGER) ??
    wrongWhole("notice", notice, 0, Number.MAX_SAFE_INTEGER) ??
    wrongChoice("outcome", outcome, outcomes);
  if (wrong) return reject(wrong);
  const job = state.jobs.get(no);
  // A repeated command: there is nothing left to do.
  if (!job || !state.telling.has(job) || !job.extras?.owed.includes(notice)) return accept({ notified: false });
  return accept({ notified: true }, [{ kind: "notified", job: no, notice, outcome, at: nowMs }]);
}
