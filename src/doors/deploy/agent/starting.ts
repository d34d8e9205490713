/** Whether a process that was just started answers. */
import { setTimeout as pause } from "node:timers/promises";
import type { Clock } from "#base/clock.ts";
import type { RunSpec } from "#doors/deploy/manifest/run-spec.ts";
import { probe } from "./probe.ts";

/** Good answers in a row, this far apart at least, that make a new process healthy. */
const answersMin = 2;
const settleMs = 250;

export type Started = {
  readonly run: RunSpec;
  readonly folder: string;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly isAlive: () => boolean;
};

/** Answers with what is wrong; undefined: it is healthy. */
export async function answersInTime({ run, folder, clock, isAlive }: Started): Promise<string | undefined> {
  const deadlineMs = clock.monotonicMs() + run.withinMs;
  let said = "";
  let answers = 0;
  for (;;) {
    if (!isAlive()) return `it ended by itself${said === "" ? "" : `; last probe: ${said}`}`;
    if (run.probe !== null) {
      const answer = await probe(run.probe, folder);
      // Twice in a row, and alive in between: a process that answers once and ends is not healthy. The old process
      // cannot answer for the new one, since it was ended before.
      answers = answer.ok && isAlive() ? answers + 1 : 0;
      if (answers >= answersMin) return undefined;
      ({ said } = answer);
    }
    if (clock.monotonicMs() >= deadlineMs)
      return run.probe === null ? undefined : `no healthy answer within ${run.withinMs} ms; last: ${said}`;
    await pause(Math.max(run.everyMs, answers > 0 ? settleMs : 0));
  }
}
