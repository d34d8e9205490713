/** Shards that this node is about to own, their logs read as far as they go by now. */
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { Journal, Seq } from "#journal/journal.ts";
import type { Replay } from "./replay.ts";
import type { Place } from "./turns.ts";

export type ReadAheadPorts = {
  readonly clock: Clock;
  readonly journal: Pick<Journal, "tail">;
  readonly replay: (shard: ShardId) => Promise<Replay>;
  readonly keepMs: number;
};

const preparedMax = 4;
/** Logs read at once: more of them would only all be ready later. */
const readingMax = 2;

/**
 * "announced": another node says that the shard will come. "taking": it is free, and this node is about to acquire it.
 * "guessed": its owner is late; gives way to what is sure to come.
 */
export type Reason = "announced" | "taking" | "guessed";

type Prepared = {
  readonly replay: Promise<Replay>;
  readonly reason: Reason;
  /** Nobody waits longer for what has been read; what is still being read is kept. */
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

  /** Whether another node has said that the shard will come. */
  isAnnounced(shard: ShardId): boolean {
    return this.#prepared.get(shard)?.reason === "announced";
  }

  /** For shards whose owners are late: as many as there is room for, and no others. */
  guess(shards: ReadonlySet<ShardId>, failed: (shard: ShardId, error: unknown) => void): void {
    for (const [shard, { reason }] of this.#prepared)
      if (reason === "guessed" && !shards.has(shard)) this.#prepared.delete(shard);
    this.#tidy();
    for (const shard of shards)
      if (!this.#prepared.has(shard) && this.#hasRoom)
        this.prepare(shard, "guessed").catch((error: unknown) => failed(shard, error));
  }

  /** Reads the shard's log to its end, or on from where it was read before. */
  async prepare(shard: ShardId, reason: Reason, place: Place = "in line"): Promise<void> {
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

  /** The prepared state, read on to the batch; undefined when there is none or it can no longer be read on. */
  async readOn(shard: ShardId, seq: Seq): Promise<Replay | undefined> {
    const entry = this.#prepared.get(shard);
    // Before anything is waited for: nobody else may read on in a state that is about to be served.
    this.#prepared.delete(shard);
    // What is still being read is waited for: to begin anew would take longer.
    const replay = await entry?.replay.catch(() => undefined);
    return replay && (await isReadTo(replay, seq, "first")) ? replay : undefined;
  }

  forget(shard: ShardId, entry = this.#prepared.get(shard)): void {
    if (this.#prepared.get(shard) === entry) this.#prepared.delete(shard);
  }

  get #hasRoom(): boolean {
    return [...this.#prepared.values()].filter(({ reason }) => reason !== "taking").length < preparedMax;
  }

  /** Lets go of what nobody came back for. */
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

  async #readToTail(shard: ShardId, before: Promise<Replay> | undefined, place: Place): Promise<Replay> {
    const known = await before?.catch(() => undefined);
    // Those who are reading may stand still for the very one that comes first.
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

/** False where the log was trimmed meanwhile: there is a newer snapshot to begin from. */
async function isReadTo(replay: Replay, seq: Seq, place: Place): Promise<boolean> {
  try {
    await replay.readTo(seq, place);
    return true;
  } catch (error) {
    if (isFault(error, "not-found")) return false;
    throw error;
  }
}
