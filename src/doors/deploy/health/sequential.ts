/**
 * A sequential test of failures: after every report it may say "too many" or "few enough", and being asked often does
 * not make it wrong more often (Wald's test of two rates). Pure.
 *
 * SQ1 It decides early only on machines that have reported: those that are silent or still work are not in the count.
 */
export type SequentialLimits = {
  /** The share of failures that is still good, and the one that is surely bad. */
  readonly good: number;
  readonly bad: number;
  /** How often a good version may be stopped, and a bad one passed. */
  readonly falseAlarm: number;
  readonly miss: number;
};

export type Sequential = {
  readonly says: "bad" | "good" | "undecided";
  /** Log of how much more the reports speak for the bad rate than for the good one. */
  readonly evidence: number;
  readonly badAt: number;
  readonly goodAt: number;
};

export function sequential(
  { healthy, failed }: { readonly healthy: number; readonly failed: number },
  { good, bad, falseAlarm, miss }: SequentialLimits,
): Sequential {
  const evidence = failed * Math.log(bad / good) + healthy * Math.log((1 - bad) / (1 - good));
  const badAt = Math.log((1 - miss) / falseAlarm);
  const goodAt = Math.log(miss / (1 - falseAlarm));
  return { says: evidence >= badAt ? "bad" : evidence <= goodAt ? "good" : "undecided", evidence, badAt, goodAt };
}

/** The bad rate is five times the limit, at least five in a hundred more, and below one. */
export function limitsFor(failedMax: number): SequentialLimits {
  const good = Math.max(0.001, failedMax);
  return { good, bad: Math.min(0.95, Math.max(5 * good, good + 0.05)), falseAlarm: 0.01, miss: 0.01 };
}
