import { equal, match } from "node:assert/strict";
import { describe, test } from "node:test";
import type { HealthLimits } from "#doors/deploy/service/service-file.ts";
import { judge, standingOf, type Counts, type MachineReport, type Verdict } from "./judge.ts";

type Question = {
  readonly members: readonly string[];
  readonly activatedAtMs: number;
  readonly nowMs: number;
  readonly limits: HealthLimits;
  readonly bakeMs: number;
};
type Report = Omit<MachineReport, "agoMs"> & { readonly atMs: number };

const limits = { failedMax: 10_000, silentMax: 20_000, samplesMin: 1, silentAfter: 30_000 };
const question = (more: Partial<Question> = {}): Question => ({
  members: ["a", "b"],
  activatedAtMs: 1_000,
  nowMs: 2_000,
  limits,
  bakeMs: 0,
  ...more,
});
const report = (machine: string, more: Partial<Report> = {}): [string, Report] => [
  machine,
  { machine, state: "healthy", running: "new", atMs: 1_500, ...more },
];
const reports = (...all: [string, Report][]): ReadonlyMap<string, Report> => new Map(all);

/** Counts the machines and judges the counts. */
function judged({ members, activatedAtMs, nowMs, ...rest }: Question, known: ReadonlyMap<string, Report>): Verdict {
  const activatedAgoMs = nowMs - activatedAtMs;
  const counts = { machines: members.length, healthy: 0, failed: 0, silent: 0, working: 0 };
  const activation = { manifest: "new", activatedAgoMs, silentAfterMs: rest.limits.silentAfter };
  for (const machine of members) {
    const one = known.get(machine);
    counts[standingOf(one && { ...one, agoMs: nowMs - one.atMs }, activation)] += 1;
  }
  return judge(counts satisfies Counts, { ...rest, activatedAgoMs });
}

/** What is known, and the verdict with its reason. */
const cases: readonly [name: string, Question, ReadonlyMap<string, Report>, verdict: string, why: RegExp][] = [
  ["all machines answer with the new version", question(), reports(report("a"), report("b")), "healthy", /2 of 2/],
  ["HJ1: no report is not healthy", question(), reports(), "wait", /2 of 2 are still/],
  [
    "HJ1: a report from before the activation says nothing",
    question(),
    reports(report("a"), report("b", { atMs: 999 })),
    "wait",
    /1 of 2 are still/,
  ],
  [
    "HJ1: a machine that answers with another version is not healthy",
    question(),
    reports(report("a"), report("b", { running: "old" })),
    "wait",
    /1 of 2 are still/,
  ],
  ["HJ1: a wave without machines does not pass", question({ members: [] }), reports(), "wait", /no machine/],
  [
    "a machine that went back by itself is a failure",
    question(),
    reports(report("a"), report("b", { state: "reverted", running: "old" })),
    "unhealthy",
    /1 of 2 failed, limit 1%/,
  ],
  [
    "failures below the limit do not stop a large wave",
    question({ members: Array.from({ length: 200 }, (_, i) => `m${i}`) }),
    reports(...Array.from({ length: 200 }, (_, i) => report(`m${i}`, i === 0 ? { state: "failed" } : {}))),
    "healthy",
    /199 of 200 healthy, 1 failed/,
  ],
  [
    "HJ2: a machine that never reports is silent in the end",
    question({ nowMs: 40_000 }),
    reports(report("a", { atMs: 39_000 })),
    "unhealthy",
    /1 of 2 are silent/,
  ],
  [
    "HJ2: a machine that reported healthy and then fell silent counts as silent",
    question({ nowMs: 40_000 }),
    reports(report("a", { atMs: 39_000 }), report("b", { atMs: 2_000 })),
    "unhealthy",
    /silent/,
  ],
  [
    "HJ3: a machine that still stages is waited for",
    question({ nowMs: 500_000 }),
    reports(report("a", { atMs: 499_000 }), report("b", { state: "staging", running: "old", atMs: 499_000 })),
    "wait",
    /still staging/,
  ],
  ["a healthy wave bakes first", question({ bakeMs: 5_000 }), reports(report("a"), report("b")), "wait", /4 s more/],
  [
    "HJ4: three failures among the first five stop a wave of a thousand",
    question({ members: Array.from({ length: 1_000 }, (_, i) => `m${i}`) }),
    reports(...Array.from({ length: 5 }, (_, i) => report(`m${i}`, i < 3 ? { state: "failed" } : {}))),
    "unhealthy",
    /3 of the first 5 failed: stopped early \(evidence/,
  ],
  [
    "HJ4: a few that still stage do not hold up a wave whose others have shown enough",
    question({ members: Array.from({ length: 200 }, (_, i) => `m${i}`) }),
    reports(...Array.from({ length: 195 }, (_, i) => report(`m${i}`))),
    "healthy",
    /195 of 200 healthy/,
  ],
  [
    "fewer samples than asked for decide nothing",
    question({ members: ["a", "b", "c"], limits: { ...limits, samplesMin: 3, failedMax: 500_000 } }),
    reports(report("a"), report("b"), report("c", { state: "failed" })),
    "wait",
    /2 healthy reports, 3 needed/,
  ],
];

describe("judge", () => {
  for (const [name, asked, known, verdict, why] of cases)
    test(name, () => {
      const said = judged(asked, known);
      equal(said.verdict, verdict, said.why);
      match(said.why, why);
    });
});
