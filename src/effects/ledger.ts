/**
 * The ledger of effects: what work does to the world outside (a payment, a published package, a deployment), by a key
 * that stays the same however often the work is attempted. Pure: entry and command in, next entry and answer out.
 *
 * EF1 "go" is answered only while it is known that the effect was not done: to the first who begins, or after the
 *     holder said that nothing was done, or after a person decided so. It is never answered to two at once.
 * EF2 Only the last who began an effect can say how it ended. Who began it earlier is stale, and is refused.
 *     A person who has seen an earlier begin is stale, too.
 * EF3 An effect that was begun and never ended is "unknown" to the next, however long ago: a second try needs a look at
 *     the target, a target that knows the key, or a person.
 */
export type Holder = {
  readonly job: string;
  readonly task: string;
  /** The token of the claim: of two holders that are the same task, the higher one is the later attempt. */
  readonly token: number;
};

export type Entry = {
  readonly phase: "begun" | "done" | "free";
  readonly holder: Holder;
  readonly atMs: number;
  /** How often it was begun, over all attempts. */
  readonly begins: number;
  /** An earlier attempt began it and never said how it ended. */
  readonly isUnknown: boolean;
  /** Its holder can find out by no means of its own and waits for a person. */
  readonly needsDecision: boolean;
  /** What the holder, or the person who decided, says that it came to. */
  readonly result?: string | undefined;
  /** Who decided, where a person did. */
  readonly decidedBy?: string | undefined;
};

export type Command =
  /** `isHolderLive`: whether the claim of the entry's holder still stands. */
  | { readonly kind: "begin"; readonly holder: Holder; readonly isHolderLive: boolean }
  | { readonly kind: "commit"; readonly holder: Holder; readonly result: string }
  /** The holder knows that nothing was done. */
  | { readonly kind: "undo"; readonly holder: Holder }
  /** The holder cannot know, and asks a person. */
  | { readonly kind: "ask"; readonly holder: Holder }
  | Decide;

/** By a person, about the entry as it was seen: `begins` says how often it was begun then. Left out: as it is now. */
type Decide = {
  readonly kind: "decide";
  readonly as: "done" | "not-done";
  readonly by: string;
  readonly result: string;
  readonly begins?: number | undefined;
};

export type Answer =
  | { readonly kind: "go" }
  | { readonly kind: "done"; readonly result: string }
  /** Begun before, by an attempt that is gone; the caller is the holder now. */
  | { readonly kind: "unknown"; readonly before: Holder; readonly sinceMs: number }
  /** Another task is at it. */
  | { readonly kind: "busy"; readonly holder: Holder }
  | { readonly kind: "accepted" }
  | { readonly kind: "stale"; readonly holder: Holder }
  | { readonly kind: "not-begun" };

/** `entry` is left out where nothing is to be written. */
export type Step = { readonly entry?: Entry; readonly answer: Answer };

export function step(entry: Entry | undefined, command: Command, nowMs: number): Step {
  switch (command.kind) {
    case "begin":
      return begin(entry, command, nowMs);
    case "commit":
      return commit(entry, command, nowMs);
    case "undo":
      return ofHolder(entry, command.holder, (own) => ended(own, "free", nowMs));
    case "ask":
      return ofHolder(entry, command.holder, (own) => ({ ...own, needsDecision: true }));
    case "decide":
      return decide(entry, command, nowMs);
  }
}

function begin(
  entry: Entry | undefined,
  { holder, isHolderLive }: Extract<Command, { kind: "begin" }>,
  nowMs: number,
): Step {
  const taken = { holder, atMs: nowMs, begins: (entry?.begins ?? 0) + 1, needsDecision: false };
  if (entry === undefined || entry.phase === "free")
    return { entry: { ...taken, phase: "begun", isUnknown: false }, answer: { kind: "go" } };
  if (entry.phase === "done") return { answer: { kind: "done", result: entry.result ?? "" } };
  if (isLater(entry.holder, holder)) return { answer: { kind: "stale", holder: entry.holder } };
  if (isHolderLive && !isSame(entry.holder, holder)) return { answer: { kind: "busy", holder: entry.holder } };
  // also within one attempt: a step that began, crashed and began again does not know what its first try did
  return {
    entry: { ...taken, phase: "begun", isUnknown: true },
    answer: { kind: "unknown", before: entry.holder, sinceMs: entry.atMs },
  };
}

function commit(
  entry: Entry | undefined,
  { holder, result }: Extract<Command, { kind: "commit" }>,
  nowMs: number,
): Step {
  if (entry?.phase === "done")
    return isSame(entry.holder, holder) && entry.result === result
      ? { answer: { kind: "accepted" } } // the answer to the first one was lost
      : { answer: { kind: "done", result: entry.result ?? "" } };
  return ofHolder(entry, holder, (own) => ({ ...ended(own, "done", nowMs), result }));
}

function decide(entry: Entry | undefined, { as, by, result, begins }: Decide, nowMs: number): Step {
  if (entry === undefined || entry.phase === "free") return { answer: { kind: "not-begun" } };
  if (entry.phase === "done") return { answer: { kind: "done", result: entry.result ?? "" } };
  // it was begun again since the person looked
  if (begins !== undefined && begins !== entry.begins) return { answer: { kind: "stale", holder: entry.holder } };
  const decided = { ...ended(entry, as === "done" ? "done" : "free", nowMs), decidedBy: by };
  return { entry: as === "done" ? { ...decided, result } : decided, answer: { kind: "accepted" } };
}

function ofHolder(entry: Entry | undefined, holder: Holder, change: (own: Entry) => Entry): Step {
  if (entry === undefined || entry.phase === "free") return { answer: { kind: "not-begun" } };
  if (entry.phase === "done") return { answer: { kind: "done", result: entry.result ?? "" } };
  if (!isSame(entry.holder, holder)) return { answer: { kind: "stale", holder: entry.holder } };
  return { entry: change(entry), answer: { kind: "accepted" } };
}

const ended = (entry: Entry, phase: "done" | "free", nowMs: number): Entry => ({
  ...entry,
  phase,
  atMs: nowMs,
  isUnknown: false,
  needsDecision: false,
});

const isSame = (a: Holder, b: Holder): boolean => a.job === b.job && a.task === b.task && a.token === b.token;

/** Whether `a` is a later attempt at the same task than `b`. */
const isLater = (a: Holder, b: Holder): boolean => a.job === b.job && a.task === b.task && a.token > b.token;
