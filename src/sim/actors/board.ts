/** The system outside the cluster to which results are published: sometimes slow, failing and forgetful. */
import { Fault } from "#base/fault.ts";
import type { Random } from "#base/random.ts";
import type { Publication, Publisher } from "#shard/outbox/outbox.ts";
import type { Life } from "#sim/world/machine.ts";
import { refusedMsOf } from "./script.ts";
import type { World } from "#sim/world/world.ts";

export type BoardConditions = {
  /** Nothing is done: half of the time it answers so, half of the time it throws. */
  refuseChance: number;
  /** It is done, and the answer is lost. */
  loseChance: number;
  /** How much longer than usual it may take, each way. */
  slowMs: number;
};

export const calmBoard: BoardConditions = { refuseChance: 0, loseChance: 0, slowMs: 0 };

export class Board {
  readonly conditions: BoardConditions = { ...calmBoard };
  readonly #world: World;
  readonly #random: Random;
  readonly #known = new Set<string>();
  readonly #firstAskedMs = new Map<string, number>();
  readonly #observe: (publication: Publication, by: Life) => void;

  constructor(world: World, random: Random, observe: (publication: Publication, by: Life) => void) {
    this.#world = world;
    this.#random = random;
    this.#observe = observe;
  }

  knows(shard: number, task: number, generation: number): boolean {
    return this.#known.has(`${shard}/${task}/${generation}`);
  }

  /** One node's connection to it, with its latency. */
  connect(life: Life, latencyMs: number): Publisher {
    const { conditions } = this;
    const random = this.#random.fork(life.name);
    const travel = () => life.clock.sleep(latencyMs + random.fraction() * conditions.slowMs);
    return async (publication) => {
      await travel();
      if (this.#isTooEarly(publication)) return "later";
      if (random.chance(conditions.refuseChance)) {
        if (random.chance(0.5)) return "later";
        throw new Fault("unavailable", "publish", { why: "the board refuses" });
      }
      const { shard, task, generation, publish } = publication;
      this.#world.say(`${life.name} publishes ${publish}`);
      this.#observe(publication, life);
      this.#known.add(`${shard}/${task}/${generation}`);
      if (random.chance(conditions.loseChance)) throw new Fault("unknown-outcome", "publish", { why: "lost" });
      await travel();
      return "done";
    };
  }

  /** Some publications are refused for a while, even when there are no faults. */
  #isTooEarly({ publish }: Publication): boolean {
    const refusedMs = refusedMsOf(publish);
    if (refusedMs === 0) return false;
    const { nowMs } = this.#world;
    const firstMs = this.#firstAskedMs.get(publish) ?? nowMs;
    this.#firstAskedMs.set(publish, firstMs);
    return nowMs < firstMs + refusedMs;
  }
}
