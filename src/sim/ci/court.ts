/**
 * What must hold, watched from outside: the court sees what jobs do to the world and what the ledger answers, and knows
 * nothing of how the door keeps its promises.
 *
 * CS1 A step whose end is durable never begins again.
 * CS2 What a step does outside is done once, and exactly once when its job has succeeded.
 * CS3 Only the last who began an effect ends it (EF2).
 * CS4 A job that deploys begins when two people have approved it, and not before.
 * CS5 Of one concurrency group one run is at work, also while a cancelled job tidies up.
 * CS6 Every run ends, and as its file says.
 */
import type { Answer, Holder } from "#effects/ledger.ts";

export class CiViolation extends Error {
  readonly invariant: string;

  constructor(invariant: string, what: string) {
    super(`${invariant}: ${what}`);
    this.name = "CiViolation";
    this.invariant = invariant;
  }
}

type AtWork = { readonly run: string; readonly isActive: () => boolean };

export type Tally = Record<
  "steps" | "resumed" | "effects" | "unknown" | "asked" | "approvals" | "posts" | "kills" | "pauses" | "outages",
  number
>;

export class CiCourt {
  readonly tally: Tally = {
    steps: 0,
    resumed: 0,
    effects: 0,
    unknown: 0,
    asked: 0,
    approvals: 0,
    posts: 0,
    kills: 0,
    pauses: 0,
    outages: 0,
  };
  violation: CiViolation | undefined;
  readonly #durable = new Map<string, number>();
  readonly #outside = new Map<string, number>();
  readonly #holders = new Map<string, Holder>();
  readonly #approvals = new Map<string, Set<string>>();
  readonly #atWork = new Map<string, Set<AtWork>>();

  violate(invariant: string, what: string): void {
    this.violation ??= new CiViolation(invariant, what);
  }

  stepBegins(job: string, step: number, attempt: string): void {
    this.tally.steps += 1;
    const durable = this.#durable.get(job) ?? 0;
    if (step < durable) this.violate("CS1", `${attempt} began step ${step} of ${job}, of which ${durable} had ended`);
  }

  durable(job: string, next: number): void {
    this.#durable.set(job, Math.max(this.#durable.get(job) ?? 0, next));
  }

  /** The effect happens. A target that knows the key takes it once. */
  acts(key: string, isIdempotent: boolean): void {
    this.tally.effects += 1;
    const count = this.#outside.get(key) ?? 0;
    if (isIdempotent && count === 1) return;
    this.#outside.set(key, count + 1);
    if (count > 0) this.violate("CS2", `the effect ${key} was done ${count + 1} times`);
  }

  wasDone(key: string): boolean {
    return (this.#outside.get(key) ?? 0) > 0;
  }

  mustBeDone(key: string): void {
    if (!this.wasDone(key)) this.violate("CS2", `the effect ${key} was never done, and its step has succeeded`);
  }

  /** In the order in which the ledger answers. */
  answered(key: string, command: "begin" | "commit" | "ask", holder: Holder, { kind }: Answer): void {
    if (kind === "unknown") this.tally.unknown += 1;
    if (command === "begin" && (kind === "go" || kind === "unknown")) this.#holders.set(key, holder);
    if (command !== "commit" || kind !== "accepted") return;
    const last = this.#holders.get(key);
    if (last?.token !== holder.token || last.task !== holder.task)
      this.violate("CS3", `${holder.task} ${holder.token} ended ${key}, which ${last?.task} ${last?.token} began last`);
  }

  approved(run: string, person: string): void {
    this.tally.approvals += 1;
    this.#approvals.set(run, (this.#approvals.get(run) ?? new Set()).add(person));
  }

  deploys(run: string): void {
    const people = this.#approvals.get(run)?.size ?? 0;
    if (people < 2) this.violate("CS4", `${run} deploys with the approval of ${people}`);
  }

  /** Returns what ends it. One whose machine stands still, or whose lease is over, does nothing. */
  atWork(group: string, work: AtWork): () => void {
    const all = this.#atWork.get(group) ?? new Set<AtWork>();
    this.#atWork.set(group, all.add(work));
    this.looksAt(group);
    return () => void all.delete(work);
  }

  looksAt(group: string): void {
    const active = [...(this.#atWork.get(group) ?? [])].filter((one) => one.isActive()).map(({ run }) => run);
    if (new Set(active).size > 1) this.violate("CS5", `${active.join(" and ")} are at work in the group ${group}`);
  }
}
