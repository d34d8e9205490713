/**
 * Where an action's time goes. Its client knows when it asked and when it was answered, its worker when it staged, ran
 * and collected, its shard when it granted the claim, accepted the result and ended the job. Shards and wall clocks
 * count whole milliseconds, so single differences are off by up to one, but their mean over many is not.
 */
import { parseJob } from "#base/ids.ts";
import type { Journal } from "#journal/journal.ts";
import { parseOperationName } from "#doors/build/execute/operation-names.ts";
import type { Sample } from "./load.ts";

export const phases = [
  "queue",
  "claim",
  "stage",
  "confirm",
  "spawn",
  "run",
  "collect",
  "upload",
  "commit, publish",
  "answer",
] as const;
export type Phase = (typeof phases)[number];
export type Phases = Readonly<Record<Phase, number>>;

/** For people: what each phase contains. */
export const phasesExplained = [
  "queue: asked, action checked, job recorded, granted to a worker. claim: recorded, told. stage: action read, folder",
  "found, inputs laid out. confirm: what the answer to its start takes longer than that. spawn: launcher and shell,",
  "until it forks and after it has ended. run: sandbox and command. collect: outputs found and stored. upload: answer",
  "and result stored and pinned. commit, publish: recorded, written to the action index. answer: that recorded, and",
  "the client told. Milliseconds, one action at a time, means.",
];

/** Undefined if the journal has none of them. */
export async function phasesOf(samples: readonly Sample[], journal: Journal): Promise<Phases | undefined> {
  const all: Phases[] = [];
  for (const sample of samples) {
    const found = await split(sample, journal);
    if (found) all.push(found);
  }
  if (all.length === 0) return undefined;
  const mean = (phase: Phase): number => all.reduce((sum, one) => sum + one[phase], 0) / all.length;
  return Object.fromEntries(phases.map((phase) => [phase, mean(phase)])) as Phases;
}

async function split(sample: Sample, journal: Journal): Promise<Phases | undefined> {
  const { shard = 0, job: no = 0 } = parseJob(parseOperationName(sample.name).jobId) ?? {};
  const history = await journal.history.job(shard, no);
  const attempt = history?.attempts[0];
  if (!history || !attempt || history.attempts.length > 1) return undefined;
  const { sentAtMs, doneAtMs, workerStartAtMs, stageMs, confirmMs, executeMs, ranMs, collectMs, workerEndAtMs } =
    sample;
  return {
    queue: attempt.grantedAtMs - sentAtMs,
    claim: workerStartAtMs - attempt.grantedAtMs,
    stage: stageMs,
    confirm: confirmMs,
    spawn: executeMs - ranMs,
    run: ranMs,
    collect: collectMs,
    upload: attempt.endedAtMs - Math.floor(workerEndAtMs),
    "commit, publish": history.job.endedAtMs - attempt.endedAtMs,
    answer: doneAtMs - history.job.endedAtMs,
  };
}
