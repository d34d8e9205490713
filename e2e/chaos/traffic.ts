/** Submitters: each submits one small job after another to random nodes and records what was acknowledged. */
import { setTimeout as pause } from "node:timers/promises";
import { isFault } from "#base/fault.ts";
import type { Random } from "#base/random.ts";
import type { WorkClient } from "#shard/client/client.ts";
import { isRejected } from "#shard/work/rejected.ts";
import { makeOrder, shapes, type OrderWishes, type Shape, type Times } from "./work.ts";
import { sizeOf } from "#kernel/model/task-set.ts";

export type TrafficPlan = Times & {
  readonly submitters: number;
  /** Each submitter pauses up to this long between two jobs. */
  readonly pauseMsMax: number;
  readonly waitMsMax: number;
};

export type TrafficPorts = { readonly client: WorkClient; readonly attemptsFolder: string };

export type Acknowledged = { readonly jobId: string; readonly key: string; readonly tasks: number };

export class Traffic {
  readonly acknowledged: Acknowledged[] = [];
  /** Tries that ended without an answer and were repeated under the same key. */
  retried = 0;
  readonly #client: WorkClient;
  readonly #attemptsFolder: string;
  readonly #plan: TrafficPlan;
  readonly #random: Random;
  readonly #stop = new AbortController();
  #loops: Promise<void>[] = [];

  constructor(cluster: TrafficPorts, plan: TrafficPlan, random: Random) {
    this.#client = cluster.client;
    this.#attemptsFolder = cluster.attemptsFolder;
    this.#plan = plan;
    this.#random = random;
  }

  start(): void {
    this.#loops = Array.from({ length: this.#plan.submitters }, (_, i) => this.#submitter(i));
  }

  /** Started submissions are still completed: a job may exist although no answer came. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#loops);
  }

  async submit(shape: Shape, wishes: Omit<OrderWishes, "attemptsFolder">, random: Random): Promise<void> {
    const order = makeOrder(shape, random, { ...wishes, attemptsFolder: this.#attemptsFolder });
    for (;;) {
      try {
        const { jobId } = await this.#client.submit(order, { deadlineMs: 5_000 });
        const tasks = order.stages.reduce((sum, { tasks: set }) => sum + (set ? sizeOf(set) : 2), 0);
        this.acknowledged.push({ jobId, key: wishes.key, tasks });
        return;
      } catch (error) {
        const full = isRejected(error, "queue-full") || isRejected(error, "shard-full");
        if (!isFault(error) && !full) throw error;
        this.retried += 1;
        await pause(100);
      }
    }
  }

  async #submitter(index: number): Promise<void> {
    const random = this.#random.fork(`submitter ${index}`);
    const { pauseMsMax, waitMsMax, leaseMs, graceMs } = this.#plan;
    for (let i = 0; !this.#stop.signal.aborted; i += 1) {
      const key = `s${index}-${i}-${random.next32().toString(36)}`;
      await this.submit(random.pick(shapes), { key, waitMsMax, leaseMs, graceMs }, random);
      await pause(random.below(pauseMsMax + 1));
    }
  }
}
