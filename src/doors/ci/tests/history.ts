/**
 * What is known of the tests of a repository, over many runs: their last outcomes, how long they take, and which of
 * them are flaky: passed and failed for the same commit, in the same job. Pure.
 */
import { z } from "zod";
import type { Outcome, TestCase } from "./junit.ts";

const letters = { passed: "p", failed: "f", skipped: "s" } as const satisfies Record<Outcome, string>;

/** Commit (cut), outcome, milliseconds, run, when. */
const Seen = z.tuple([z.string(), z.enum(["p", "f", "s"]), z.number(), z.string(), z.number()]);
const Test = z.object({
  /** The cell of the matrix: the same test elsewhere is another one. */
  job: z.string(),
  suite: z.string(),
  name: z.string(),
  file: z.string().optional(),
  /** The newest last. */
  seen: z.array(Seen),
  /** How often, and for which commit last, it was seen to pass and fail. */
  flaky: z.int(),
  flakyAtMs: z.number().optional(),
  flakySha: z.string().optional(),
});
export const History = z.object({ tests: z.array(Test) });
export type History = z.output<typeof History>;
export type TestHistory = z.output<typeof Test>;

export type ReportAbout = {
  readonly job: string;
  readonly sha: string;
  readonly run: string;
  readonly atMs: number;
};

export const testsMax = 20_000;
const seenMax = 12;
const shaLength = 12;

const keyOf = ({ job, suite, name }: Pick<TestHistory, "job" | "suite" | "name">): string =>
  JSON.stringify([job, suite, name]);

/** Of more tests than fit, those that were not seen for longest go. */
export function merged(history: History, cases: readonly TestCase[], about: ReportAbout): History {
  const tests = new Map(history.tests.map((test) => [keyOf(test), test]));
  for (const one of cases) {
    const key = keyOf({ job: about.job, ...one });
    const before = tests.get(key);
    tests.delete(key); // goes to the end: seen last
    tests.set(key, seenAgain(before, one, about));
  }
  const all = [...tests.values()];
  return { tests: all.slice(Math.max(0, all.length - testsMax)) };
}

function seenAgain(before: TestHistory | undefined, one: TestCase, { job, sha, run, atMs }: ReportAbout): TestHistory {
  const { suite, name, outcome, ms, file } = one;
  const commit = sha.slice(0, shaLength);
  const seen: TestHistory["seen"] = [...(before?.seen ?? [])];
  // The commit was flaky already: it is counted once.
  const isKnown = before?.flakySha === commit;
  const other = outcome === "passed" ? "f" : "p";
  const differs = outcome !== "skipped" && seen.some(([of, letter]) => of === commit && letter === other);
  seen.push([commit, letters[outcome], ms, run, atMs]);
  const isFlaky = !isKnown && (differs || one.isFlaky === true);
  const flaky = (before?.flaky ?? 0) + (isFlaky ? 1 : 0);
  const flakyAtMs = isFlaky ? atMs : before?.flakyAtMs;
  const flakySha = isFlaky ? commit : before?.flakySha;
  return {
    job,
    suite,
    name,
    ...(file !== undefined && { file }),
    seen: seen.slice(-seenMax),
    flaky,
    ...(flakyAtMs !== undefined && { flakyAtMs }),
    ...(flakySha !== undefined && { flakySha }),
  };
}

export type Shown = {
  readonly job: string;
  readonly suite: string;
  readonly name: string;
  readonly file?: string;
  readonly runs: number;
  readonly failures: number;
  readonly flaky: number;
  readonly flakyAt?: string;
  readonly flakySha?: string;
  readonly msMedian: number;
  readonly msLast: number;
  readonly last: { readonly outcome: Outcome; readonly sha: string; readonly run: string; readonly at: string }[];
};

export type Asked = {
  readonly sort: "flaky" | "slow" | "failing";
  readonly text?: string | undefined;
  readonly limit: number;
};

const words = { p: "passed", f: "failed", s: "skipped" } as const;

/** The worst first, by what is asked for; those that nothing is wrong with are left out, but for the slow ones. */
export function shownTests({ tests }: History, { sort, text, limit }: Asked): readonly Shown[] {
  const wanted = text?.toLowerCase();
  const all = tests
    .filter(({ suite, name }) => wanted === undefined || `${suite} ${name}`.toLowerCase().includes(wanted))
    .map((test) => shownTest(test));
  const by: Readonly<Record<Asked["sort"], (one: Shown) => number>> = {
    flaky: (one) => one.flaky,
    slow: (one) => one.msMedian,
    failing: (one) => (one.last.at(-1)?.outcome === "failed" ? one.failures : 0),
  };
  return all
    .filter((one) => by[sort](one) > 0)
    .toSorted((a, b) => by[sort](b) - by[sort](a) || (a.name < b.name ? -1 : 1))
    .slice(0, limit);
}

function shownTest({ job, suite, name, file, seen, flaky, flakyAtMs, flakySha }: TestHistory): Shown {
  const times = seen.map(([, , ms]) => ms).toSorted((a, b) => a - b);
  return {
    job,
    suite,
    name,
    ...(file !== undefined && { file }),
    runs: seen.length,
    failures: seen.filter(([, letter]) => letter === "f").length,
    flaky,
    ...(flakyAtMs !== undefined && { flakyAt: new Date(flakyAtMs).toISOString() }),
    ...(flakySha !== undefined && { flakySha }),
    msMedian: times[Math.floor(times.length / 2)] ?? 0,
    msLast: seen.at(-1)?.[2] ?? 0,
    last: seen.map(([sha, letter, , run, atMs]) => ({
      outcome: words[letter],
      sha,
      run,
      at: new Date(atMs).toISOString(),
    })),
  };
}
