/** Callers that wait for a shard's answer. */
import type { Load } from "./load.ts";
import type { HostedShard } from "./shard.ts";
import type { CommandOutcome, ShardResponse } from "#shard/transport/protocol.ts";

export type Requester = { settle(response: ShardResponse): void };

/** For commands of the host itself: the answer is discarded. */
export const noRequester: Requester = { settle() {} };

/** One accepted request, counted until it is answered. A single object, because there may be 100,000 a second. */
export class PendingRequest implements Requester {
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

  /** Stops counting the request here: held requests have a limit of their own. */
  uncount(): void {
    if (this.#counted) this.#load.leave(this.#shard, this.#weightBytes);
    this.#counted = false;
  }
}

/**
 * Several commands in one request: answered when each of them is, or with the first answer that is neither reply nor
 * rejection.
 */
export class PendingCommands {
  readonly #asking: Requester;
  readonly #said: (CommandOutcome | undefined)[];
  #left: number;

  constructor(asking: Requester, count: number) {
    this.#asking = asking;
    this.#said = Array.from({ length: count });
    this.#left = count;
  }

  at(index: number): Requester {
    return new OneOfMany(this, index);
  }

  settle(index: number, response: ShardResponse): void {
    if (this.#left === 0) return;
    if (response.kind !== "reply" && response.kind !== "rejected") {
      // The other commands may or may not have been done; like every command they may be repeated.
      this.#left = 0;
      return this.#asking.settle(response);
    }
    this.#said[index] = response;
    this.#left -= 1;
    if (this.#left > 0) return;
    const said = this.#said as CommandOutcome[];
    const oldest = said.reduce((least, { stamp }) => (stamp.seq < least.seq ? stamp : least), response.stamp);
    this.#asking.settle({ kind: "said", stamp: oldest, said });
  }
}

class OneOfMany implements Requester {
  readonly #many: PendingCommands;
  readonly #index: number;

  constructor(many: PendingCommands, index: number) {
    this.#many = many;
    this.#index = index;
  }

  settle(response: ShardResponse): void {
    this.#many.settle(this.#index, response);
  }
}
