/**
 * Keeps one pool as `step` says, on the node that owns it: looks at the queues and at the machines, acts, and writes
 * down how the pool stands. A node that loses the pool just stops; the next one begins with what there is.
 */
import { randomBytes } from "node:crypto";
import type { Clock } from "#base/clock.ts";
import type { Demand } from "./demand.ts";
import type { Machine, MachineMaker, NewMachine, Problem, SeenMachine } from "./machine.ts";
import type { PoolSettings, TemplateSettings } from "./pool-config.ts";
import { workerName, type HeldTask, type PoolWorker, type Queue } from "./queue.ts";
import { desiredOf, step, type Action, type StartFailures } from "./step.ts";

export type Registration = { readonly id: string; readonly token: string };

export type KeeperPorts = {
  readonly pool: PoolSettings;
  readonly maker: MachineMaker;
  readonly clock: Clock;
  /** A token that registers one worker for one task. */
  readonly register: (pool: PoolSettings, template: TemplateSettings, name: string) => Promise<Registration>;
  /** Takes the token back, and the worker that it registered. */
  readonly unregister: (pool: PoolSettings, registration: string) => Promise<void>;
  /** The machine is gone for certain, and its worker held this: the task goes on elsewhere at once. */
  readonly lost: (worker: string, held: HeldTask, problem: Problem) => Promise<void>;
  readonly log: (line: string) => void;
};

export type MachineStanding = {
  readonly name: string;
  readonly template: string;
  readonly phase: SeenMachine["phase"];
  readonly work: Machine["work"];
  readonly ageMs: number;
  readonly task?: string | undefined;
  readonly problem?: Problem | undefined;
  readonly events?: readonly string[] | undefined;
};

export type Standing = {
  readonly desired: number;
  readonly desiredBy: Readonly<Record<string, number>>;
  readonly waiting: number;
  readonly running: number;
  readonly oldestForMs: number;
  readonly machines: readonly MachineStanding[];
};

const atOnceMax = 16;
const noEvents: readonly string[] = [];
/** So many problems are asked about in one look. */
const asksMax = 10;

type Watched = { readonly work: Machine["work"]; readonly phase: string; readonly sinceMs: number };

export const poolStanding = (
  desired: ReadonlyMap<string, number>,
  { waiting, running, oldestForMs }: Demand,
  machines: Standing["machines"],
): Standing => ({
  desired: desired.values().reduce((sum, count) => sum + count, 0),
  desiredBy: Object.fromEntries(desired),
  waiting,
  running,
  oldestForMs,
  machines,
});

export class PoolKeeper {
  readonly #ports: KeeperPorts;
  #watched = new Map<string, Watched>();
  readonly #failures = new Map<string, { count: number; lastMs: number }>();
  /** By machine: what the events say of its problem. */
  #events = new Map<string, { readonly problem: string; readonly events: readonly string[] }>();
  readonly #reported = new Set<string>();

  constructor(ports: KeeperPorts) {
    this.#ports = ports;
  }

  /** One look. Undefined: the machines are not known yet. */
  async look(demand: Demand, queue: Queue): Promise<Standing | undefined> {
    const { pool, maker } = this.#ports;
    const seen = maker.seen();
    if (!seen) return undefined;
    const workers = byMachine(seen, queue.workers);
    const machines = this.#watch(seen, workers);
    await this.#explain(machines);
    const input = { pool, demand, machines, failures: this.#backOffs() };
    const actions = step(input);
    await this.#act(actions, workers);
    const shown = machines.map((machine) => this.#standing(machine, workers.get(machine.id)));
    return poolStanding(desiredOf(input), demand, shown);
  }

  #watch(seen: readonly SeenMachine[], workers: ReadonlyMap<string, PoolWorker>): readonly Machine[] {
    const nowMs = this.#ports.clock.monotonicMs();
    const before = this.#watched;
    this.#watched = new Map();
    return seen.map((one) => {
      const worker = workers.get(one.id);
      const work: Machine["work"] = worker === undefined ? "none" : worker.holds.length > 0 ? "busy" : "idle";
      const was = before.get(one.id);
      const isSame = was?.work === work && was.phase === one.phase;
      const watched: Watched = isSame ? was : { work, phase: one.phase, sinceMs: nowMs };
      this.#watched.set(one.id, watched);
      if (work !== "none") this.#failures.delete(one.template);
      return { ...one, work, forMs: nowMs - watched.sinceMs };
    });
  }

  #backOffs(): ReadonlyMap<string, StartFailures> {
    const nowMs = this.#ports.clock.monotonicMs();
    return new Map([...this.#failures].map(([name, { count, lastMs }]) => [name, { count, agoMs: nowMs - lastMs }]));
  }

  /** Asks for the events of problems that are new. */
  async #explain(machines: readonly Machine[]): Promise<void> {
    const { maker, log } = this.#ports;
    const known = this.#events;
    this.#events = new Map();
    let asked = 0;
    for (const machine of machines) {
      if (!machine.problem) continue;
      const problem = `${machine.problem.reason} ${machine.problem.message}`;
      const before = known.get(machine.id);
      if (before?.problem === problem || asked >= asksMax) {
        if (before) this.#events.set(machine.id, before);
        continue;
      }
      asked += 1;
      const events = await maker.events(machine).catch((error: unknown) => {
        log(`${machine.name}: ${String(error)}`);
        return noEvents;
      });
      this.#events.set(machine.id, { problem, events });
    }
  }

  async #act(actions: readonly Action[], workers: ReadonlyMap<string, PoolWorker>): Promise<void> {
    const { log } = this.#ports;
    const left = [...actions];
    const one = async (): Promise<void> => {
      for (let action = left.shift(); action; action = left.shift())
        try {
          await this.#do(action, workers);
        } catch (error) {
          log(`${action.kind}: ${error instanceof Error ? error.message : String(error)}`);
          if (action.kind === "create") return void left.splice(0); // the next look tries again
        }
    };
    await Promise.all(Array.from({ length: Math.min(atOnceMax, left.length) }, () => one()));
  }

  async #do(action: Action, workers: ReadonlyMap<string, PoolWorker>): Promise<void> {
    if (action.kind === "create") return await this.#create(action);
    if (action.kind === "give-token") return await this.#giveToken(action.machine);
    return await this.#remove(action, workers.get(action.machine.id));
  }

  async #create({ slot, template: name, task }: Extract<Action, { kind: "create" }>): Promise<void> {
    const { pool, maker, register, unregister } = this.#ports;
    const template = pool.templates.find((one) => one.name === name);
    if (!template) return;
    const worker = workerName(pool.name, slot, randomBytes(4).toString("hex"));
    const { id, token } = await register(pool, template, worker);
    const wanted: NewMachine = { slot, template: name, worker, registration: id, token, task };
    let isMade = false;
    try {
      isMade = await maker.create(wanted);
    } catch (error) {
      this.#failed(name);
      throw error; // it may have been made: the token stays until its time is over
    }
    if (!isMade) await unregister(pool, id);
  }

  async #giveToken(machine: SeenMachine): Promise<void> {
    const { pool, maker, register, unregister } = this.#ports;
    const template = pool.templates.find(({ name }) => name === machine.template);
    if (!template) return;
    const { id, token } = await register(pool, template, machine.worker);
    if (!(await maker.giveToken(machine, token, id))) await unregister(pool, id);
  }

  /** First what it held goes on elsewhere, then its rights end, and at last it is gone: a crash in between repeats. */
  async #remove({ machine, why }: Extract<Action, { kind: "remove" }>, worker: PoolWorker | undefined): Promise<void> {
    const { pool, maker, unregister, lost, log } = this.#ports;
    const { problem, phase, name, template } = machine;
    if (phase === "ended")
      for (const held of worker?.holds ?? [])
        await lost(
          worker?.name ?? "",
          held,
          this.#toldOf(machine) ?? { reason: "failed", message: "its runner ended" },
        );
    if (phase === "ended" || machine.work === "none") await unregister(pool, machine.registration);
    const neverWorked =
      machine.work === "none" && (why === "never-registered" || (why === "ended" && problem !== undefined));
    if (neverWorked && !this.#reported.has(machine.id)) this.#failed(template);
    if (!this.#reported.has(machine.id)) {
      const said = problem ? `, ${problem.reason}: ${problem.message}` : "";
      log(`pool ${pool.name}: removes ${name} (${why}${said})`);
      if (this.#reported.size > 10_000) this.#reported.clear();
      this.#reported.add(machine.id);
    }
    await maker.remove(machine);
  }

  #failed(template: string): void {
    const known = this.#failures.get(template);
    this.#failures.set(template, { count: (known?.count ?? 0) + 1, lastMs: this.#ports.clock.monotonicMs() });
  }

  /** The problem, with the machine's name and its events, the newest first: long messages are cut. */
  #toldOf({ id, name, problem }: SeenMachine): Problem | undefined {
    if (!problem) return undefined;
    const events = this.#events.get(id)?.events ?? noEvents;
    const said = events
      .map((event) => `; ${event}`)
      .toReversed()
      .join("");
    return { reason: problem.reason, message: `${name}: ${problem.message}${said}`.slice(0, 1_500) };
  }

  #standing(machine: Machine, worker: PoolWorker | undefined): MachineStanding {
    const { id, name, template, phase, work, ageMs, problem } = machine;
    const events = this.#events.get(id)?.events;
    const task = worker?.holds[0]?.task;
    return { name, template, phase, work, ageMs, task, problem, events };
  }
}

/** Workers by the machine that they run on: their names begin with what the machine was given. */
function byMachine(seen: readonly SeenMachine[], workers: readonly PoolWorker[]): ReadonlyMap<string, PoolWorker> {
  const ids = new Map(seen.map(({ worker, id }) => [worker, id]));
  return new Map(
    workers.flatMap((worker) => {
      const id = ids.get(worker.name.slice(0, worker.name.lastIndexOf("-")));
      return id === undefined ? [] : [[id, worker] as const];
    }),
  );
}
