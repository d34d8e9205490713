import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { Executor, Job, Stage, type StageShape, Task, Tenant } from "#kernel/model/entities.ts";
import { onlyPlans, onlyTasks, takes } from "./lanes.ts";
import { ReadyIndex } from "./ready.ts";
import { templateOf } from "#kernel/testing/parse.ts";

const shape: StageShape = {
  name: "a",
  needs: [],
  after: "success",
  plan: undefined,
  planTemplate: undefined,
  failFast: false,
  mayFail: false,
  parallelMax: 0,
  lock: undefined,
  manifest: false,
};

/** Tasks and queues without a kernel around them. */
class World {
  readonly index = new ReadyIndex();
  readonly executor = new Executor("ada");
  #tasks = 0;

  tenant(name: string, ordinal = 0): Tenant {
    return new Tenant(name, ordinal, 0, { bytes: 0, shards: 1 });
  }

  task(tenant: Tenant, priority = 0, requires: readonly string[] = [], affinity?: string, index = 0): Task {
    const facts = { door: "d", name: "n", spec: "", priority, at: 0, deadlineAtMs: 1, stages: [] as never[] };
    const stage = new Stage(new Job(1, tenant, facts), 0, shape);
    const no = ++this.#tasks;
    const template = { ...templateOf(new Map()), requires };
    return new Task(no, stage, index, { key: `t${no}`, spec: "", ...(affinity && { affinity }) }, template);
  }

  pick(offers: readonly string[] = [], prefer: readonly string[] = [], lookahead = 16): Task | undefined {
    const signature = this.index.signature(offers);
    return this.index.pick(this.executor, signature, { tenant: undefined, prefer, lookahead });
  }

  /** Takes the next task and counts it, as a grant does. */
  serve(offers: readonly string[] = []): Task | undefined {
    const task = this.pick(offers);
    if (!task) return undefined;
    this.index.dequeue(task);
    this.index.serve(task.stage.job.tenant);
    return task;
  }
}

describe("ready work", () => {
  test("labels must all be offered", () => {
    const takesTask = (offers: readonly string[], requires: readonly string[]): boolean =>
      takes(new Set(offers), { requires, planning: false });
    ok(takesTask(["a", "b"], []));
    ok(takesTask(["a", "b"], ["b"]));
    ok(!takesTask(["a"], ["a", "b"]));
  });

  test("a lane gets its own kind of work, and who names no lane gets both", () => {
    for (const [offers, task, plan] of [
      [[], true, true],
      [[onlyTasks], true, false],
      [[onlyPlans], false, true],
      [[onlyPlans, onlyTasks], false, false],
    ] as const)
      deepEqual(
        [false, true].map((planning) => takes(new Set<string>(offers), { requires: [], planning })),
        [task, plan],
      );
    const world = new World();
    const tenant = world.tenant("a");
    const [task, plan] = [world.task(tenant), world.task(tenant, 0, [], undefined, -1)];
    world.index.enqueue(task);
    world.index.enqueue(plan);
    equal(world.pick([onlyPlans]), plan);
    equal(world.pick([onlyTasks]), task);
    equal(world.pick(), task);
    ok(world.index.hasClass({ requires: [], planning: true }));
  });

  test("a task keeps its position in the queue when it comes back, also past many neighbours", () => {
    const world = new World();
    const tenant = world.tenant("a");
    const tasks = Array.from({ length: 200 }, () => world.task(tenant));
    for (const task of tasks) world.index.enqueue(task);
    for (const at of [0, 190]) {
      const task = tasks[at] as Task;
      world.index.dequeue(task);
      world.index.enqueue(task);
    }
    deepEqual(
      Array.from({ length: 200 }, () => world.serve()?.no),
      tasks.map(({ no }) => no),
    );
    equal(world.serve(), undefined);
  });

  test("a class that appears later is found by executors that asked before", () => {
    const world = new World();
    equal(world.pick(["arm", "gpu"]), undefined);
    const task = world.task(world.tenant("a"), 0, ["gpu"]);
    world.index.enqueue(task);
    equal(world.pick(["arm", "gpu"]), task);
    equal(world.pick(["arm"]), undefined);
    const hasClass = (requires: readonly string[]) => world.index.hasClass({ requires, planning: false });
    ok(hasClass(["gpu"]) && !hasClass(["arm"]));
  });

  test("executors that wait for a class are woken when it gets work, and when a tenant has free slots again", () => {
    const world = new World();
    const tenant = world.tenant("a");
    world.index.enqueue(world.task(tenant, 0, ["gpu"]));
    equal([...world.index.woken].map(({ key }) => key).join(), "gpu");
    world.index.woken.clear();
    world.index.park(tenant, true);
    equal(world.pick(["gpu"]), undefined);
    equal(world.index.woken.size, 0);
    world.index.park(tenant, false);
    equal([...world.index.woken].map(({ key }) => key).join(), "gpu");
    ok(world.pick(["gpu"]));
  });

  test("a second attempt is in no queue: it is for another executor that finds nothing else", () => {
    const world = new World();
    const tenant = world.tenant("a");
    const [running, waiting] = [world.task(tenant), world.task(tenant)];
    world.index.offerSpare(running);
    world.index.enqueue(waiting);
    equal(world.serve(), waiting);
    equal(world.pick(), running);
    ok(world.index.isSpare(running));
    world.index.dequeue(running);
    equal(world.pick(), undefined);
  });

  test("the cost of a pick does not grow with the length of the queue", () => {
    const cost = (length: number): number => {
      const world = new World();
      const tenant = world.tenant("a");
      for (let i = 0; i < length; i += 1) world.index.enqueue(world.task(tenant));
      const before = world.index.touched;
      for (let i = 0; i < 5; i += 1) world.serve();
      return world.index.touched - before;
    };
    equal(cost(10), cost(10_000));
  });

  test("K10: with any weights, priorities and classes, every tenant's share stays near its weight", () => {
    const tenants = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 2, maxLength: 6 });
    fc.assert(
      fc.property(tenants, fc.nat(1_000), (weights, salt) => {
        const world = new World();
        const all = weights.map((weight, i) => {
          const tenant = world.tenant(`t${i}`, i);
          tenant.weight = weight;
          for (let n = 0; n < 200; n += 1)
            world.index.enqueue(world.task(tenant, (n * salt) % 3, (n + salt) % 2 === 0 ? [] : ["gpu"]));
          return tenant;
        });
        const sum = weights.reduce((total, weight) => total + weight, 0);
        equal(world.index.readyWeight, sum);
        const got = new Map<Tenant, number>(all.map((tenant) => [tenant, 0]));
        for (let n = 1; n <= 150; n += 1) {
          const { tenant } = (world.serve(["gpu"]) as Task).stage.job;
          got.set(tenant, (got.get(tenant) ?? 0) + 1);
          for (const [each, count] of got) {
            const fair = (n * each.weight) / sum;
            ok(Math.abs(count - fair) <= weights.length + 1, `${each.name} has ${count} of ${n}, fair is ${fair}`);
          }
        }
      }),
      { seed: 1, numRuns: 50 },
    );
  });

  test("every task comes out once, by priority, then age", () => {
    const given = fc.array(fc.tuple(fc.integer({ min: -3, max: 3 }), fc.boolean(), fc.boolean()), { maxLength: 60 });
    fc.assert(
      fc.property(given, (list) => {
        const world = new World();
        const tenant = world.tenant("a");
        const tasks = list.map(([priority, gpu, isBack]) => {
          const task = world.task(tenant, priority, gpu ? ["gpu"] : []);
          world.index.enqueue(task);
          if (isBack) world.index.reprioritize(task);
          return task;
        });
        const wanted = tasks.toSorted((a, b) => b.stage.job.priority - a.stage.job.priority || a.no - b.no);
        deepEqual(
          list.map(() => world.serve(["gpu"])?.no),
          wanted.map(({ no }) => no),
        );
        equal(world.index.size, 0);
        equal(tenant.ready, 0);
        equal(tenant.queues.size, 0);
        equal(world.index.readyWeight, 0);
      }),
      { seed: 1, numRuns: 200 },
    );
  });
});
