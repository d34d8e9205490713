/**
 * A worker of two lanes: one runs tasks, the other plans stages, so that a long task never keeps a job from being
 * planned. To shards they are two executors: one that is drained because its tasks failed still plans.
 */
import { onlyPlans, onlyTasks } from "#kernel/ready/lanes.ts";
import { PollingWorker, type Worker } from "./worker.ts";
import { workerDefaults, type WorkerPorts } from "./worker-options.ts";

/** The name of the lane that plans. */
export const plannerName = (executor: string): string => `${executor}/plans`;

export function createWorker(ports: WorkerPorts): Worker {
  const { executor, offers, planners, options, random } = ports;
  const count = options?.planners ?? workerDefaults.planners;
  if (count === 0 || Object.keys(planners).length === 0) return new PollingWorker(ports);
  const tasks = new PollingWorker({ ...ports, offers: [...offers, onlyTasks] });
  const plans = new PollingWorker({
    ...ports,
    executor: plannerName(executor),
    offers: [...offers, onlyPlans],
    random: random.fork("plans"),
    resumes: [],
    options: { ...options, slots: count },
  });
  return new LanedWorker(tasks, plans);
}

class LanedWorker implements Worker {
  readonly #tasks: Worker;
  readonly #plans: Worker;

  constructor(tasks: Worker, plans: Worker) {
    this.#tasks = tasks;
    this.#plans = plans;
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#tasks.run(signal), this.#plans.run(signal)]);
  }

  async drain(forMs: number): Promise<void> {
    await Promise.all([this.#tasks.drain(forMs), this.#plans.drain(forMs)]);
  }

  async hold(): Promise<void> {
    await Promise.all([this.#tasks.hold(), this.#plans.hold()]);
  }

  resume(): void {
    this.#tasks.resume();
    this.#plans.resume();
  }

  giveBack(): void {
    this.#tasks.giveBack();
    this.#plans.giveBack();
  }

  status() {
    const { running: planning, telling } = this.#plans.status();
    const tasks = this.#tasks.status();
    return { ...tasks, planning, telling: tasks.telling + telling };
  }
}
