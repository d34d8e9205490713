/**
 * What to do with a pool now, from what there is and what waits: pure, and the same for every node, however often it
 * looks.
 *
 * PO1 A pool never has more machines than its ceiling: each has a slot, there are so many slots, and what makes
 *     machines refuses a second one for a slot. So it holds while two nodes act at once, too.
 * PO2 Every machine goes: when its work has ended, when no work waits for it, when it does not start, when it is too
 *     old. Nothing is remembered between looks but for how long a machine has been what it is.
 * PO3 A busy machine is removed only at the end of its life.
 */
import type { Demand } from "./demand.ts";
import type { Machine } from "./machine.ts";

export type PoolShape = {
  readonly max: number;
  readonly idle: number;
  readonly startWithin: number;
  readonly life: number;
  readonly templates: readonly { readonly name: string; readonly warm: number }[];
};

/** Machines of a template that ended or were given up before they asked for work, since the last that did. */
export type StartFailures = { readonly count: number; readonly agoMs: number };

export type StepInput = {
  readonly pool: PoolShape;
  readonly demand: Pick<Demand, "templates">;
  readonly machines: readonly Machine[];
  readonly failures: ReadonlyMap<string, StartFailures>;
};

export type RemoveWhy = "ended" | "never-registered" | "too-old" | "no-template" | "surplus" | "beyond-ceiling";

export type Action =
  | { readonly kind: "create"; readonly slot: number; readonly template: string; readonly task: string | undefined }
  | { readonly kind: "give-token"; readonly machine: Machine }
  | { readonly kind: "remove"; readonly machine: Machine; readonly why: RemoveWhy };

/** So many at once: what follows is seen before more are made. */
const createsMax = 200;
/** A machine gets its token within this of its creation, or never by itself. */
const tokenWithinMs = 5_000;

export const backOffMs = (failures: number): number => (failures === 0 ? 0 : Math.min(300_000, 2_500 * 2 ** failures));

export function step(input: StepInput): readonly Action[] {
  const { pool, machines } = input;
  const removed = machines.flatMap((machine) => removal(machine, pool));
  const gone = new Set(removed.map(({ machine }) => machine));
  const staying = machines.filter((machine) => !gone.has(machine) && machine.phase !== "leaving");
  const wanted = desiredOf({ ...input, machines: staying });
  const crowded = isCrowded(wanted, staying, pool);
  const surplus = pool.templates.flatMap(({ name }) => surplusOf(name, { wanted, staying, pool, crowded }));
  const tokens = staying
    .filter(
      ({ phase, work, hasToken, ageMs }) =>
        phase === "starting" && work === "none" && !hasToken && ageMs > tokenWithinMs,
    )
    .map((machine): Action => ({ kind: "give-token", machine }));
  return [...removed, ...surplus, ...tokens, ...creations(input, wanted, staying)];
}

/** How many machines each template is to have: what works, what waits, then the spares, below the ceiling. */
export function desiredOf({ pool, demand, machines }: Omit<StepInput, "failures">): ReadonlyMap<string, number> {
  const counts = new Map(
    pool.templates.map(({ name }) => [
      name,
      machines.filter(({ template, work, phase }) => template === name && work === "busy" && phase !== "ended").length,
    ]),
  );
  let room = pool.max - counts.values().reduce((sum, count) => sum + count, 0);
  const give = (asks: readonly (readonly [string, number])[]): void => {
    const left = new Map(asks);
    // In turns, so that no template waits for the whole of another.
    for (let isGiven = true; room > 0 && isGiven;) {
      isGiven = false;
      for (const [name, count] of left) {
        if (count <= 0 || room <= 0) continue;
        left.set(name, count - 1);
        counts.set(name, (counts.get(name) ?? 0) + 1);
        room -= 1;
        isGiven = true;
      }
    }
  };
  give(pool.templates.map(({ name }) => [name, demand.templates.get(name)?.waiting ?? 0]));
  give(pool.templates.map(({ name, warm }) => [name, warm]));
  return counts;
}

/** PO2 */
function removal(machine: Machine, { max, startWithin, life, templates }: PoolShape): readonly RemoveAction[] {
  const { phase, work, ageMs, slot, template } = machine;
  const because = (why: RemoveWhy): readonly RemoveAction[] => [{ kind: "remove", machine, why }];
  if (phase === "leaving") return [];
  if (phase === "ended") return because("ended");
  if (ageMs > life) return because("too-old");
  if (work === "busy") return []; // PO3
  if (work === "none" && ageMs > startWithin) return because("never-registered");
  if (slot >= max) return because("beyond-ceiling");
  if (!templates.some(({ name }) => name === template)) return because("no-template");
  return [];
}

type RemoveAction = Extract<Action, { kind: "remove" }>;

type Standing = {
  readonly wanted: ReadonlyMap<string, number>;
  readonly staying: readonly Machine[];
  readonly pool: PoolShape;
  readonly crowded: boolean;
};

/** Work of one template waits, and machines of another have all slots. */
const isCrowded = (wanted: Standing["wanted"], staying: readonly Machine[], { max }: PoolShape): boolean =>
  staying.length >= max &&
  [...wanted].some(([name, count]) => staying.filter(({ template }) => template === name).length < count);

function surplusOf(name: string, { wanted, staying, pool, crowded }: Standing): readonly Action[] {
  const of = staying.filter(({ template }) => template === name);
  const tooMany = of.length - (wanted.get(name) ?? 0);
  if (tooMany <= 0) return [];
  return of
    .filter(({ work, forMs }) => work !== "busy" && (crowded || forMs >= pool.idle))
    .toSorted((a, b) => Number(a.work === "idle") - Number(b.work === "idle") || b.forMs - a.forMs || b.slot - a.slot)
    .slice(0, tooMany)
    .map((machine) => ({ kind: "remove", machine, why: "surplus" }) as const);
}

/** PO1: only slots that nothing is in, machines that are leaving included. */
function creations(
  { pool, demand, machines, failures }: StepInput,
  wanted: ReadonlyMap<string, number>,
  staying: readonly Machine[],
): readonly Action[] {
  const taken = new Set(machines.map(({ slot }) => slot));
  const made: Action[] = [];
  let slot = 0;
  for (const [template, count] of wanted) {
    const { count: failed = 0, agoMs = 0 } = failures.get(template) ?? {};
    if (agoMs < backOffMs(failed)) continue;
    const there = staying.filter((machine) => machine.template === template);
    const waitsFor = demand.templates.get(template)?.tasks ?? [];
    const starting = there.filter(({ work }) => work !== "busy").length;
    // One is tried after a failure, not all at once.
    const missing = Math.min(count - there.length, failed > 0 ? Math.max(0, 1 - starting) : createsMax);
    for (let at = 0; at < missing && made.length < createsMax; at += 1) {
      while (taken.has(slot)) slot += 1;
      if (slot >= pool.max) return made;
      taken.add(slot);
      made.push({ kind: "create", slot, template, task: waitsFor[starting + at] });
    }
  }
  return made;
}
