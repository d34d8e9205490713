/**
 * The part of a door that says which kinds of work belong to it.
 *
 * DK1 Work of a door's kinds is only in jobs of that door. Every request for it, by a submission, a recorded plan or a
 * signal, is checked by that door: a caller cannot avoid a door's limits by naming another door.
 * DK2 Kinds and doors that do not have the name of a door, present or reserved, are free for workers in any language;
 * every other kind that no door has is refused.
 */
import type { PlanSpec, Signal, StageSpec, TaskSet } from "#kernel/model/model.ts";

/** The caller, as the node authenticated it. */
export type Submitter = {
  readonly name: string;
  readonly isOperator: boolean;
  /** By name; left out: none besides. */
  readonly roles?: ReadonlySet<string> | undefined;
};

/** Tasks to run, or a stage to plan. */
export type RequestedWork = { readonly tasks: TaskSet } | { readonly plan: PlanSpec };

/** Why the request is refused, for people; undefined if it is allowed. */
export type Refusal = string | undefined;

export type DoorKinds = {
  /** The door's name in jobs. */
  readonly door: string;
  /**
   * Labels that only nodes offer: work that requires them runs with the node's own rights, or its results are trusted
   * like the node's.
   */
  readonly nodeLabels: readonly string[];
  /** Checks a caller that submits or joins a job of this door, whatever the job contains. */
  readonly job: (by: Submitter) => Refusal;
  /** For each kind of task and of plan, the check of a caller that requests it. */
  readonly kinds: Readonly<Record<string, (work: RequestedWork, by: Submitter) => Refusal>>;
  readonly signal: (signal: Signal, by: Submitter, to?: SignalTarget) => Refusal;
  /** Kinds of task whose own programs record checkpoints. */
  readonly checkpoints?: readonly string[];
};

/** The stage that a signal is for, and the specification of its job; empty where the job has left memory. */
export type SignalTarget = { readonly stage: string; readonly spec: string };

/** `family.name`: the family is the part before the first dot. */
const shape = /^([a-z][a-z0-9_-]*)(\.[A-Za-z0-9_-]+)+$/;

export class KindTable {
  readonly #doors: ReadonlyMap<string, DoorKinds>;
  readonly #doorOf: ReadonlyMap<string, DoorKinds>;
  readonly #reserved: ReadonlySet<string>;
  readonly #nodeLabels: ReadonlySet<string>;

  /** `reserved`: names of future doors. Neither they nor kinds that begin with them are free. */
  constructor(doors: readonly DoorKinds[], reserved: readonly string[]) {
    this.#doors = new Map(doors.map((one) => [one.door, one]));
    this.#doorOf = new Map(doors.flatMap((one) => Object.keys(one.kinds).map((kind) => [kind, one])));
    this.#reserved = new Set([...this.#doors.keys(), ...reserved, ...this.#doorOf.keys().map(familyOf)]);
    this.#nodeLabels = new Set(doors.flatMap(({ nodeLabels }) => nodeLabels));
  }

  doorOf(kind: string): string | undefined {
    return this.#doorOf.get(kind)?.door;
  }

  /** Whether authors of workers may use the name, as a door or as the family of a kind. */
  isFree(name: string): boolean {
    return !this.#reserved.has(name);
  }

  /** Whether what runs as such a task may record checkpoints by itself. */
  takesCheckpoints(kind: string): boolean {
    return this.#doorOf.get(kind)?.checkpoints?.includes(kind) === true;
  }

  isNodeLabel(label: string): boolean {
    return this.#nodeLabels.has(label);
  }

  /**
   * A job of a door contains only work of that door's kinds; a job without a door here contains only work of free
   * kinds.
   */
  refuseJob(
    { door, stages }: { readonly door: string; readonly stages: readonly StageSpec[] },
    by: Submitter,
  ): Refusal {
    const own = this.#doors.get(door);
    if (!own && this.#reserved.has(door)) return `the door name ${door} is reserved; ${free}`;
    const refusedJob = own?.job(by);
    if (refusedJob !== undefined) return refusedJob;
    for (const { tasks, plan } of stages) {
      const kind = tasks?.template.kind ?? plan?.kind;
      if (kind === undefined) continue; // the kernel refuses it
      const owner = this.doorOf(kind);
      if (owner !== undefined && owner !== door)
        return `${kind} belongs to the door ${owner}: a job of the door ${door} cannot have it`;
      if (owner === undefined && own) return `the door ${door} has no kind ${kind}`;
      const refused = this.refuseWork(kind, tasks ? { tasks } : { plan: plan as PlanSpec }, by);
      if (refused !== undefined) return refused;
    }
    return undefined;
  }

  /** Checks the tasks that a stage's planner recorded. */
  refusePlanned(tasks: TaskSet, by: Submitter): Refusal {
    return this.refuseWork(tasks.template.kind, { tasks }, by);
  }

  refuseWork(kind: string, work: RequestedWork, by: Submitter): Refusal {
    const owner = this.#doorOf.get(kind);
    if (owner) return owner.kinds[kind]?.(work, by);
    if (!shape.test(kind)) return `${JSON.stringify(kind.slice(0, 100))} is not a kind of work; ${free}`;
    return this.#reserved.has(familyOf(kind)) ? `there is no kind ${kind}; ${free}` : undefined;
  }

  refuseSignal(door: string, signal: Signal, by: Submitter, to?: SignalTarget): Refusal {
    return this.#doors.get(door)?.signal(signal, by, to);
  }
}

const familyOf = (kind: string): string => kind.slice(0, Math.max(0, kind.indexOf(".")));

const free =
  'kinds of your own are written like "python.call", and begin with a word that is no door\'s ' +
  "(docs/how-to/workers-in-any-language.md)";
