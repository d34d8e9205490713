/**
 * The part of a door that says which work is the door's.
 *
 * DK1 Work of a door's kinds is in jobs of that door only. Whoever asks for it, by a submission, a recorded plan or a
 *     signal, is judged by the door itself: nobody gets around a door's limits by naming another door.
 * DK2 Kinds and doors with the name of no door, present or to come, are free for workers in any language; all other
 *     kinds that no door has are refused.
 */
import type { PlanSpec, Signal, StageSpec, TaskSet } from "#kernel/model/model.ts";

/** Who asks, as the node authenticated it. */
export type Submitter = { readonly name: string; readonly isOperator: boolean };

/** Tasks to run, or a stage to plan. */
export type AskedWork = { readonly tasks: TaskSet } | { readonly plan: PlanSpec };

/** Why it is refused, for people; undefined: it is not. */
export type Refusal = string | undefined;

export type DoorKinds = {
  /** As jobs name it. */
  readonly door: string;
  /** Labels that only nodes offer: work that asks for them runs with the node's own rights, or is believed like it. */
  readonly nodeLabels: readonly string[];
  /** Checks whoever submits a job of the door's or joins one, whatever is in it. */
  readonly job: (by: Submitter) => Refusal;
  /** Each kind of task and of plan, with the check of whoever asks for one. */
  readonly kinds: Readonly<Record<string, (work: AskedWork, by: Submitter) => Refusal>>;
  readonly signal: (signal: Signal, by: Submitter) => Refusal;
};

/** `family.name`: the family is the first word. */
const shape = /^([a-z][a-z0-9_-]*)(\.[A-Za-z0-9_-]+)+$/;

export class KindTable {
  readonly #doors: ReadonlyMap<string, DoorKinds>;
  readonly #doorOf: ReadonlyMap<string, DoorKinds>;
  readonly #reserved: ReadonlySet<string>;
  readonly #nodeLabels: ReadonlySet<string>;

  /** `reserved` are names of doors to come: neither they nor kinds that begin with them are free. */
  constructor(doors: readonly DoorKinds[], reserved: readonly string[]) {
    this.#doors = new Map(doors.map((one) => [one.door, one]));
    this.#doorOf = new Map(doors.flatMap((one) => Object.keys(one.kinds).map((kind) => [kind, one])));
    this.#reserved = new Set([...this.#doors.keys(), ...reserved, ...this.#doorOf.keys().map(familyOf)]);
    this.#nodeLabels = new Set(doors.flatMap(({ nodeLabels }) => nodeLabels));
  }

  doorOf(kind: string): string | undefined {
    return this.#doorOf.get(kind)?.door;
  }

  /** Whether a name is for whoever writes workers to use, as a door or as the first word of a kind. */
  isFree(name: string): boolean {
    return !this.#reserved.has(name);
  }

  isNodeLabel(label: string): boolean {
    return this.#nodeLabels.has(label);
  }

  /** A job of a door has work of that door's kinds only, and a job of no door here has work of free kinds only. */
  refuseJob(
    { door, stages }: { readonly door: string; readonly stages: readonly StageSpec[] },
    by: Submitter,
  ): Refusal {
    const own = this.#doors.get(door);
    if (!own && this.#reserved.has(door)) return `the door name ${door} is kept for later; ${free}`;
    const refusedJob = own?.job(by);
    if (refusedJob !== undefined) return refusedJob;
    for (const { tasks, plan } of stages) {
      const kind = tasks?.template.kind ?? plan?.kind;
      if (kind === undefined) continue; // for the kernel to refuse
      const owner = this.doorOf(kind);
      if (owner !== undefined && owner !== door)
        return `${kind} belongs to the door ${owner}: a job of the door ${door} cannot have it`;
      if (owner === undefined && own) return `the door ${door} has no kind ${kind}`;
      const refused = this.refuseWork(kind, tasks ? { tasks } : { plan: plan as PlanSpec }, by);
      if (refused !== undefined) return refused;
    }
    return undefined;
  }

  /** What a stage's planner says its tasks are. */
  refusePlanned(tasks: TaskSet, by: Submitter): Refusal {
    return this.refuseWork(tasks.template.kind, { tasks }, by);
  }

  refuseWork(kind: string, work: AskedWork, by: Submitter): Refusal {
    const owner = this.#doorOf.get(kind);
    if (owner) return owner.kinds[kind]?.(work, by);
    if (!shape.test(kind)) return `${JSON.stringify(kind.slice(0, 100))} is no kind of work; ${free}`;
    return this.#reserved.has(familyOf(kind)) ? `there is no kind ${kind}; ${free}` : undefined;
  }

  refuseSignal(door: string, signal: Signal, by: Submitter): Refusal {
    return this.#doors.get(door)?.signal(signal, by);
  }
}

const familyOf = (kind: string): string => kind.slice(0, Math.max(0, kind.indexOf(".")));

const free =
  'kinds of your own are written like "python.call", and begin with a word that is no door\'s ' +
  "(docs/how-to/workers-in-any-language.md)";
