/** Shards that this node is about to be handed, their logs read as far as they go by now. */
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
  readonly #prepared = new Map<ShardId, { readonly replay: Replay | undefined; readonly untilMono: number }>();

  constructor(ports: ReadAheadPorts) {
    this.#ports = ports;
  }

  async prepare(shard: ShardId): Promise<void> {
    const { clock, journal, keepMs } = this.#ports;
    const mono = clock.monotonicMs();
    for (const [other, { untilMono }] of this.#prepared) if (untilMono < mono) this.#prepared.delete(other);
    if (this.#prepared.size >= preparedMax) throw new Fault("exhausted", "prepare shard", { shard });
    this.#prepared.set(shard, { replay: undefined, untilMono: mono + keepMs });
    const replay = await this.#ports.replay(shard);
    await replay.readTo((await journal.tail(shard)).seq);
    this.#prepared.set(shard, { replay, untilMono: clock.monotonicMs() + keepMs });
  }

  /** The prepared state, read on to the batch; undefined when there is none or it can no longer be read on. */
  async readOn(shard: ShardId, seq: Seq): Promise<Replay | undefined> {
    const replay = this.#prepared.get(shard)?.replay;
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
}
