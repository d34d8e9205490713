/** Shards that this node is about to own, with their logs read as far as they exist by now. */
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { Journal, Seq } from "#journal/journal.ts";
import type { Replay } from "./replay.ts";
import type { QueuePosition } from "./turns.ts";

export type ReadAheadPorts = {
  readonly clock: Clock;
  readonly journal: Pick<Journal, "tail">;
  readonly replay: (shard: ShardId) => Promise<Replay>;
  readonly keepMs: number;
};

const preparedMax = 4;
/** Logs read at once: with more of them, all would be ready later. */
const readingMax = 2;

/**
 * "announced": another node says that it will hand the shard over. "taking": it is free, and this node is about to
 * acquire it. "guessed": its owner is late; gives way to the other two.
 */
export type ReadAheadReason = "announced" | "taking" | "guessed";

type Prepared = {
  readonly replay: Promise<Replay>;
  readonly reason: ReadAheadReason;
  /** A finished read is dropped after this time; one still in progress is kept. */
  untilMono: number;
};

export class ReadAhead {
  readonly #ports: ReadAheadPorts;
  readonly #prepared = new Map<ShardId, Prepared>();
  readonly #waiting: (() => void)[] = [];
  #reading = 0;

  constructor(ports: ReadAheadPorts) {
    this.#ports = ports;
  }

  /** Whether another node has announced the shard. */
  isAnnounced(shard: ShardId): boolean {
    return this.#prepared.get(shard)?.reason === "announced";
  }

  /** For shards whose owners are late: as many as the limit allows, and drops the others. */
  guess(shards: ReadonlySet<ShardId>, failed: (shard: ShardId, error: unknown) => void): void {
    for (const [shard, { reason }] of this.#prepared)
      if (reason === "guessed" && !shards.has(shard)) this.#prepared.delete(shard);
    this.#tidy();
    for (const shard of shards)
      if (!this.#prepared.has(shard) && this.#hasRoom)
        this.prepare(shard, "guessed").catch((error: unknown) => failed(shard, error));
  }

  /** Reads the shard's log to its end, or continues an earlier read. */
  async prepare(shard: ShardId, reason: ReadAheadReason, place: QueuePosition = "in line"): Promise<void> {
    this.#tidy();
    const before = this.#prepared.get(shard);
    if (!before && reason !== "taking") this.#makeRoom(shard);
    const replay = this.#readToTail(shard, before?.replay, place);
    const entry: Prepared = { replay, reason, untilMono: Number.POSITIVE_INFINITY };
    this.#prepared.set(shard, entry);
    try {
      await replay;
      entry.untilMono = this.#ports.clock.monotonicMs() + this.#ports.keepMs;
    } catch (error) {
      this.forget(shard, entry);
      throw error;
    }
  }

  /** The prepared state, read on to the batch; undefined when there is none or reading on is no longer possible. */
  async readOn(shard: ShardId, seq: Seq): Promise<Replay | undefined> {
    const entry = this.#prepared.get(shard);
    // Before anything is awaited: no other reader may continue in a state that is about to be served.
    this.#prepared.delete(shard);
    // Wait for a read in progress: starting again would take longer.
    const replay = await entry?.replay.catch(() => undefined);
    return replay && (await isReadTo(replay, seq, "first")) ? replay : undefined;
  }

  forget(shard: ShardId, entry = this.#prepared.get(shard)): void {
    if (this.#prepared.get(shard) === entry) this.#prepared.delete(shard);
  }

  get #hasRoom(): boolean {
    return [...this.#prepared.values()].filter(({ reason }) => reason !== "taking").length < preparedMax;
  }

  /** Drops finished reads that were not used. */
  #tidy(): void {
    const mono = this.#ports.clock.monotonicMs();
    for (const [shard, { untilMono }] of this.#prepared) if (untilMono < mono) this.#prepared.delete(shard);
  }

  #makeRoom(shard: ShardId): void {
    if (this.#hasRoom) return;
    const [guessed] = [...this.#prepared].find(([, { reason }]) => reason === "guessed") ?? [];
    if (guessed === undefined) throw new Fault("exhausted", "prepare shard", { shard });
    this.#prepared.delete(guessed);
  }

  async #readToTail(shard: ShardId, before: Promise<Replay> | undefined, place: QueuePosition): Promise<Replay> {
    const known = await before?.catch(() => undefined);
    // The other readers may be paused for this very one, which goes first.
    while (place === "in line" && this.#reading >= readingMax)
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#reading += 1;
    try {
      const { seq } = await this.#ports.journal.tail(shard);
      if (known && (await isReadTo(known, seq, place))) return known;
      const replay = await this.#ports.replay(shard);
      await replay.readTo(seq, place);
      return replay;
    } finally {
      this.#reading -= 1;
      this.#waiting.shift()?.();
    }
  }
}

/** False if the log was trimmed in the meantime: start again from a newer snapshot. */
async function isReadTo(replay: Replay, seq: Seq, place: QueuePosition): Promise<boolean> {
  try {
    await replay.readTo(seq, place);
    return true;
  } catch (error) {
    if (isFault(error, "not-found")) return false;
    throw error;
  }
}
