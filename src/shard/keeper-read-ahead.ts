/** Shards that this node is about to own, their logs read as far as they go by now. */
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { Journal, Seq } from "#journal/journal.ts";
import type { Replay } from "./keeper-replay.ts";

export type ReadAheadPorts = {
  readonly clock: Clock;
  readonly journal: Pick<Journal, "tail">;
  readonly replay: (shard: ShardId) => Promise<Replay>;
  readonly keepMs: number;
};

const preparedMax = 4;

export class ReadAhead {
  readonly #ports: ReadAheadPorts;
  /** One log at a time: what is taken over meanwhile must not wait for its turn behind many. */
  #reading: Promise<unknown> = Promise.resolve();
  readonly #prepared = new Map<ShardId, { readonly replay: Promise<Replay>; readonly untilMono: number }>();

  constructor(ports: ReadAheadPorts) {
    this.#ports = ports;
  }

  has(shard: ShardId): boolean {
    return this.#prepared.has(shard);
  }

  get isFull(): boolean {
    return this.#prepared.size >= preparedMax;
  }

  async prepare(shard: ShardId): Promise<void> {
    this.tidy();
    const before = this.#prepared.get(shard)?.replay;
    if (!before && this.isFull) throw new Fault("exhausted", "prepare shard", { shard });
    const replay = this.#reading.then(() => this.#readToTail(shard, before));
    this.#reading = replay.catch(() => {});
    const entry = { replay, untilMono: this.#ports.clock.monotonicMs() + this.#ports.keepMs };
    this.#prepared.set(shard, entry);
    try {
      await replay;
    } catch (error) {
      if (this.#prepared.get(shard) === entry) this.#prepared.delete(shard);
      throw error;
    }
  }

  /** The prepared state, read on to the batch; undefined when there is none or it can no longer be read on. */
  async readOn(shard: ShardId, seq: Seq): Promise<Replay | undefined> {
    // What is still being read is waited for: to begin anew would take longer.
    const replay = await this.#prepared.get(shard)?.replay.catch(() => undefined);
    this.#prepared.delete(shard);
    if (!replay) return undefined;
    try {
      await replay.readTo(seq);
      return replay;
    } catch (error) {
      // Trimmed meanwhile: there is a newer snapshot to begin from.
      if (isFault(error, "not-found")) return undefined;
      throw error;
    }
  }

  /** Lets go of what nobody came back for. */
  tidy(): void {
    const mono = this.#ports.clock.monotonicMs();
    for (const [shard, { untilMono }] of this.#prepared) if (untilMono < mono) this.#prepared.delete(shard);
  }

  async #readToTail(shard: ShardId, before: Promise<Replay> | undefined): Promise<Replay> {
    const replay = (await before?.catch(() => undefined)) ?? (await this.#ports.replay(shard));
    await replay.readTo((await this.#ports.journal.tail(shard)).seq);
    return replay;
  }
}
