import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import type { Machine } from "./machine.ts";
import { backOffMs, desiredOf, step, type Action, type StepInput } from "./step.ts";

const shape = {
  max: 4,
  idle: 60_000,
  startWithin: 600_000,
  life: 86_400_000,
  templates: [
    { name: "small", warm: 0 },
    { name: "big", warm: 0 },
  ],
};

const machine = (slot: number, more: Partial<Machine> = {}): Machine => ({
  slot,
  id: `uid-${slot}`,
  name: `pod-${slot}`,
  template: "small",
  worker: `pool.p.${slot}.x`,
  registration: "r",
  phase: "up",
  ageMs: 1_000,
  hasToken: true,
  work: "idle",
  forMs: 1_000,
  ...more,
});

const waits = (counts: Readonly<Record<string, number>>): StepInput["demand"] => ({
  templates: new Map(Object.entries(counts).map(([name, waiting]) => [name, { waiting, tasks: ["t1", "t2"] }])),
});

type Given = Partial<Omit<StepInput, "demand" | "pool">> & {
  readonly pool?: Partial<typeof shape>;
  readonly waiting?: Readonly<Record<string, number>>;
};

const given = ({ pool, waiting = {}, machines = [], failures = new Map() }: Given): StepInput => ({
  pool: { ...shape, ...pool },
  demand: waits(waiting),
  machines,
  failures,
});

const said = (actions: readonly Action[]): readonly string[] =>
  actions.map((action) => {
    if (action.kind === "create") return `create ${action.template} at ${action.slot}`;
    if (action.kind === "remove") return `remove ${action.machine.slot}: ${action.why}`;
    return `give ${action.machine.slot} its token`;
  });

const busy = { work: "busy" } as const;
const old = { forMs: 60_000 } as const;
const starting = { phase: "starting", work: "none", hasToken: true } as const;
const warm = (small: number) => ({
  templates: [
    { name: "small", warm: small },
    { name: "big", warm: 0 },
  ],
});

const table: readonly (readonly [string, Given, readonly string[]])[] = [
  ["nothing waits: nothing is made", {}, []],
  ["one for each that waits", { waiting: { small: 2 } }, ["create small at 0", "create small at 1"]],
  ["no more than the ceiling", { waiting: { small: 9 } }, [0, 1, 2, 3].map((at) => `create small at ${at}`)],
  [
    "templates take turns below the ceiling",
    { waiting: { small: 9, big: 1 } },
    [0, 1, 2].map((at) => `create small at ${at}`).concat("create big at 3"),
  ],
  ["what starts counts", { waiting: { small: 2 }, machines: [machine(0, starting)] }, ["create small at 1"]],
  ["what is idle counts", { waiting: { small: 1 }, machines: [machine(0)] }, []],
  [
    "what is busy does not serve what waits",
    { waiting: { small: 1 }, machines: [machine(0, busy)] },
    ["create small at 1"],
  ],
  [
    "a slot that is being left is not used",
    { waiting: { small: 1 }, machines: [machine(0, { phase: "leaving" })] },
    ["create small at 1"],
  ],
  [
    "an ended one goes, and its slot is free when it is gone",
    { waiting: { small: 1 }, machines: [machine(0, { phase: "ended" })] },
    ["remove 0: ended", "create small at 1"],
  ],
  ["an idle one stays for a while", { machines: [machine(0)] }, []],
  ["and goes then", { machines: [machine(0, old)] }, ["remove 0: surplus"]],
  ["one that starts for nothing goes, too", { machines: [machine(0, { ...starting, ...old })] }, ["remove 0: surplus"]],
  ["spares stay", { pool: warm(1), machines: [machine(0, old)] }, []],
  ["spares are made without work", { pool: warm(2) }, ["create small at 0", "create small at 1"]],
  ["spares come behind what waits", { pool: { max: 1, ...warm(1) }, waiting: { big: 1 } }, ["create big at 0"]],
  [
    "a spare makes room for another template's work at once",
    { pool: { max: 1, ...warm(1) }, waiting: { big: 1 }, machines: [machine(0)] },
    ["remove 0: surplus"],
  ],
  ["a busy one stays, however long", { machines: [machine(0, { ...busy, ...old, ageMs: 3_600_000 })] }, []],
  ["but for its life", { machines: [machine(0, { ...busy, ageMs: 86_400_001 })] }, ["remove 0: too-old"]],
  [
    "one that never registers goes, and another is made",
    { waiting: { small: 1 }, machines: [machine(0, { ...starting, ageMs: 600_001 })] },
    ["remove 0: never-registered", "create small at 1"],
  ],
  [
    "one without its token gets it",
    { waiting: { small: 1 }, machines: [machine(0, { ...starting, hasToken: false, ageMs: 6_000 })] },
    ["give 0 its token"],
  ],
  [
    "a lowered ceiling ends idle ones beyond it",
    { pool: { max: 1 }, machines: [machine(0, busy), machine(3)] },
    ["remove 3: beyond-ceiling"],
  ],
  [
    "and busy ones stay",
    { pool: { max: 1 }, waiting: { small: 1 }, machines: [machine(0, busy), machine(3, busy)] },
    [],
  ],
  ["a template that is gone", { machines: [machine(0, { template: "older" })] }, ["remove 0: no-template"]],
  [
    "after a failure nothing for a while",
    { waiting: { small: 2 }, failures: new Map([["small", { count: 1, agoMs: 4_999 }]]) },
    [],
  ],
  [
    "then one, not all",
    { waiting: { small: 2 }, failures: new Map([["small", { count: 1, agoMs: 5_000 }]]) },
    ["create small at 0"],
  ],
  [
    "other templates are not held up",
    { waiting: { small: 1, big: 1 }, failures: new Map([["small", { count: 9, agoMs: 0 }]]) },
    ["create big at 0"],
  ],
];

describe("a look at a pool", () => {
  for (const [name, input, expected] of table) test(name, () => deepEqual(said(step(given(input))), expected));

  test("a machine is made for the first task that nothing is made for yet", () => {
    const actions = step(given({ waiting: { small: 2 }, machines: [machine(0, starting)] }));
    deepEqual(actions, [{ kind: "create", slot: 1, template: "small", task: "t2" }]);
  });

  test("back-off grows to five minutes", () => deepEqual([0, 1, 2, 20].map(backOffMs), [0, 5_000, 10_000, 300_000]));
});

/** A pool's world: what a machine does by itself, and a node that crashes between any two of its actions. */
type World = { machines: Machine[]; waiting: number; nowMs: number };
const event = fc.oneof(
  fc.record({ kind: fc.constant("work" as const), count: fc.integer({ min: 0, max: 8 }) }),
  fc.record({
    kind: fc.constantFrom("register" as const, "end" as const, "fail" as const, "gone" as const),
    at: fc.nat(7),
  }),
  fc.record({ kind: fc.constant("claim" as const), at: fc.nat(7) }),
  fc.record({ kind: fc.constant("time" as const), ms: fc.integer({ min: 0, max: 120_000 }) }),
  // The node looks, and dies after so many of its actions; two nodes may act on what both saw.
  fc.record({ kind: fc.constant("look" as const), actions: fc.nat(6), nodes: fc.integer({ min: 1, max: 2 }) }),
);

const pool = { ...shape, max: 5, templates: [{ name: "small", warm: 1 }] };
const inputOf = ({ machines, waiting, nowMs: _now }: World): StepInput => ({
  pool,
  machines,
  demand: waits({ small: waiting }),
  failures: new Map(),
});

let made = 0;

function act(world: World, action: Action): void {
  if (action.kind === "create") {
    // The API server refuses a name that is taken (PO1).
    if (world.machines.some(({ slot }) => slot === action.slot)) return;
    made += 1;
    world.machines.push(machine(action.slot, { ...starting, id: `m${made}`, ageMs: 0, forMs: 0, hasToken: false }));
  } else if (action.kind === "remove") {
    const { id, phase } = action.machine;
    world.machines = world.machines.flatMap((one) =>
      one.id !== id ? [one] : phase === "ended" ? [] : [{ ...one, phase: "leaving" as const }],
    );
  }
}

type Happening = typeof event extends fc.Arbitrary<infer T> ? T : never;

function change(world: World, one: Happening): void {
  const put = (at: number, of: (m: Machine) => boolean, next: Partial<Machine>): void => {
    const found = world.machines.filter(of)[at];
    world.machines = world.machines.map((m) => (m === found ? { ...m, ...next, forMs: 0 } : m));
  };
  if (one.kind === "work") world.waiting = one.count;
  else if (one.kind === "time") pass(world, one.ms);
  else if (one.kind === "look") {
    const plans = Array.from({ length: one.nodes }, () => step(inputOf(world)));
    for (const plan of plans) for (const action of plan.slice(0, one.actions)) act(world, action);
  } else if (one.kind === "gone") world.machines = world.machines.filter(({ phase }) => phase !== "leaving");
  else if (one.kind === "register") put(one.at, ({ phase }) => phase === "starting", { phase: "up", work: "idle" });
  else if (one.kind === "end") put(one.at, ({ work }) => work === "busy", { phase: "ended" });
  else if (one.kind === "fail") put(one.at, ({ phase }) => phase === "starting", { phase: "ended" });
  else {
    if (world.waiting > 0 && world.machines.some(({ work }) => work === "idle")) world.waiting -= 1;
    put(0, ({ work }) => work === "idle", { work: "busy" });
  }
}

function pass(world: World, ms: number): void {
  world.nowMs += ms;
  world.machines = world.machines.map((m) => ({ ...m, ageMs: m.ageMs + ms, forMs: m.forMs + ms }));
}

describe("whatever happens to a pool", () => {
  test("PO1 PO2 it is never above its ceiling, and all machines but the spares go in the end", () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), (events) => {
        const world: World = { machines: [], waiting: 0, nowMs: 0 };
        for (const one of events) {
          change(world, one);
          ok(world.machines.length <= pool.max, "the ceiling");
          equal(new Set(world.machines.map(({ slot }) => slot)).size, world.machines.length, "one in a slot");
          ok(desiredOf(inputOf(world)).get("small")! <= pool.max);
        }
        // No more work comes, what runs ends, and a node is there.
        world.waiting = 0;
        for (let turn = 0; turn < 40; turn += 1) {
          for (const action of step(inputOf(world))) act(world, action);
          world.machines = world.machines.filter(({ phase }) => phase !== "leaving");
          pass(world, 100_000);
          change(world, { kind: "end", at: 0 });
          change(world, { kind: "register", at: 0 });
        }
        equal(world.machines.filter(({ phase }) => phase !== "ended").length, 1, "the spare");
      }),
      { numRuns: 300 },
    );
  });

  test("PO3 a busy machine is never removed before the end of its life", () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), (events) => {
        const world: World = { machines: [], waiting: 0, nowMs: 0 };
        for (const one of events) {
          for (const action of step(inputOf(world)))
            if (action.kind === "remove")
              ok(
                action.machine.work !== "busy" || action.machine.phase === "ended" || action.machine.ageMs > pool.life,
              );
          change(world, one);
        }
      }),
      { numRuns: 200 },
    );
  });

  test("two looks at the same world want the same", () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 40 }), (events) => {
        const world: World = { machines: [], waiting: 0, nowMs: 0 };
        for (const one of events) change(world, one);
        deepEqual(step(inputOf(world)), step(inputOf(world)));
        world.machines = world.machines.filter(({ phase }) => phase !== "ended");
        for (const action of step(inputOf(world))) act(world, action);
        const again = step(inputOf(world)).filter(({ kind }) => kind === "create");
        equal(again.length, 0, "what was made is not made again");
      }),
      { numRuns: 200 },
    );
  });
});
