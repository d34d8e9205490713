/** Who waits for an answer of a shard's. */
import type { Load } from "./load.ts";
import type { HostedShard } from "./shard.ts";
import type { Said, ShardResponse } from "#shard/transport/protocol.ts";

export type Asker = { settle(response: ShardResponse): void };

/** For what the host does of its own accord. */
export const nobody: Asker = { settle() {} };

/** One request that was taken in, counted until it is answered. One object, for there may be 100,000 a second. */
export class Asking implements Asker {
  readonly #load: Load;
  readonly #shard: HostedShard;
  readonly #weightBytes: number;
  readonly #resolve: (response: ShardResponse) => void;
  #counted = true;

  constructor(load: Load, shard: HostedShard, weightBytes: number, resolve: (response: ShardResponse) => void) {
    this.#load = load;
    this.#shard = shard;
    this.#weightBytes = weightBytes;
    this.#resolve = resolve;
  }

  settle(response: ShardResponse): void {
    this.uncount();
    this.#resolve(response);
  }

  /** From here on it is another's to bound how many there are: one that is held. */
  uncount(): void {
    if (this.#counted) this.#load.leave(this.#shard, this.#weightBytes);
    this.#counted = false;
  }
}

/** Many commands in one request: answered when each of them is, or with the first that cannot be. */
export class AskingMany {
  readonly #asking: Asker;
  readonly #said: (Said | undefined)[];
  #left: number;

  constructor(asking: Asker, count: number) {
    this.#asking = asking;
    this.#said = Array.from({ length: count });
    this.#left = count;
  }

  at(index: number): Asker {
    return new OneOfMany(this, index);
  }

  settle(index: number, response: ShardResponse): void {
    if (this.#left === 0) return;
    if (response.kind !== "reply" && response.kind !== "rejected") {
      // The others may be done or not: like any command they may be said again.
      this.#left = 0;
      return this.#asking.settle(response);
    }
    this.#said[index] = response;
    this.#left -= 1;
    if (this.#left > 0) return;
    const said = this.#said as Said[];
    const oldest = said.reduce((least, { stamp }) => (stamp.seq < least.seq ? stamp : least), response.stamp);
    this.#asking.settle({ kind: "said", stamp: oldest, said });
  }
}

class OneOfMany implements Asker {
  readonly #many: AskingMany;
  readonly #index: number;

  constructor(many: AskingMany, index: number) {
    this.#many = many;
    this.#index = index;
  }

  settle(response: ShardResponse): void {
    this.#many.settle(this.#index, response);
  }
}
