/**
 * Which work an executor takes. Planning is short and everything waits for it, so executors give it a lane of its own:
 * one that offers `only=plans` gets no other work, and one that offers `only=tasks` gets no planning. An executor that
 * offers neither takes both.
 */
export const onlyPlans = "only=plans";
export const onlyTasks = "only=tasks";

/** What executors must fulfil for a class of work. */
export type Wanted = { readonly requires: readonly string[]; readonly planning: boolean };

export const isOfLane = (offers: ReadonlySet<string>, { planning }: Wanted): boolean =>
  !offers.has(planning ? onlyTasks : onlyPlans);

export const takes = (offers: ReadonlySet<string>, wanted: Wanted): boolean =>
  isOfLane(offers, wanted) && wanted.requires.every((label) => offers.has(label));
