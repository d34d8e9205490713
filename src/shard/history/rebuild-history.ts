/**
 * Rebuilds a shard's history from everything ever logged: the archived segments, then the rest of the log, from the
 * first batch on (J5). For a node that owns the shard and does not serve it.
 *
 * Everything is read and replayed once before anything is changed: a missing or corrupt segment leaves the history as
 * it was. After that the cursor says how far the rows have been written, as always; so an interrupted rebuild claims no
 * more than it wrote, and can be started again.
 */
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { BlobStore } from "#blobs/store.ts";
import { apply } from "#kernel/apply/apply.ts";
import { historyOf, noRows, type Rows } from "#kernel/read/history.ts";
import type { Limits } from "#kernel/model/limits.ts";
import { createState } from "#kernel/model/state.ts";
import type { Epoch, Journal, Seq } from "#journal/journal.ts";
import { decodeEvents } from "#shard/codec/codec.ts";
import { readLog } from "./log-reader.ts";
import { countRows, mergeRows, splitRows } from "./projector-rows.ts";

export type RebuildPorts = {
  readonly journal: Pick<Journal, "segments" | "tail" | "read" | "history">;
  readonly blobs: Pick<BlobStore, "read">;
  readonly limits: Limits;
  readonly clock: Pick<Clock, "sleep">;
};

export type RebuildProgress = {
  readonly shard: ShardId;
  readonly doing: "checking" | "writing";
  readonly seq: Seq;
  readonly tailSeq: Seq;
  /** Rows written so far. */
  readonly rows: number;
};

export type RebuildOptions = {
  readonly onProgress?: (progress: RebuildProgress) => void;
  /** How many rows go into one write. */
  readonly rowsMax?: number;
};

export type Rebuilt = { readonly shard: ShardId; readonly throughSeq: Seq; readonly rows: number };

/** The event loop gets a turn after about this many bytes. */
const sliceBytes = 64 * 1024;
const toldEvery = 500;

export async function rebuildHistory(
  ports: RebuildPorts,
  shard: ShardId,
  epoch: Epoch,
  { onProgress = () => {}, rowsMax = 2_000 }: RebuildOptions = {},
): Promise<Rebuilt> {
  const { journal } = ports;
  const { seq: tailSeq } = await journal.tail(shard);
  const soFar = { shard, tailSeq, rows: 0 };
  await replay(ports, shard, tailSeq, async (seq) => {
    if (seq % toldEvery === 0 || seq === tailSeq) onProgress({ ...soFar, doing: "checking", seq });
  });
  const writer = new Writer(journal, { shard, epoch, rowsMax });
  await writer.begin();
  await replay(ports, shard, tailSeq, async (seq, rows) => {
    if (await writer.add(seq, rows, seq === tailSeq))
      onProgress({ ...soFar, doing: "writing", seq, rows: writer.written });
  });
  return { shard, throughSeq: tailSeq, rows: writer.written };
}

/** Replays every batch from the empty state; `take` gets the rows of each. */
async function replay(
  ports: RebuildPorts,
  shard: ShardId,
  tailSeq: Seq,
  take: (seq: Seq, rows: Rows) => Promise<void>,
): Promise<void> {
  const state = createState(shard, ports.limits);
  let bytes = 0;
  for await (const { seq, payload } of readLog(ports, shard, { from: 1, tailSeq })) {
    const rows = noRows();
    try {
      for (const event of decodeEvents(payload)) {
        apply(state, event);
        historyOf(state, event, rows);
      }
    } catch (cause) {
      throw new Fault(isFault(cause) ? cause.code : "corrupt", "replay log", { shard, seq }, cause);
    }
    state.woken.clear();
    await take(seq, rows);
    bytes += payload.length;
    if (bytes < sliceBytes) continue;
    bytes = 0;
    await ports.clock.sleep(0);
  }
}

type Place = { readonly shard: ShardId; readonly epoch: Epoch; readonly rowsMax: number };

/** Collects rows and writes them in slices of limited size. */
class Writer {
  readonly #journal: Pick<Journal, "history">;
  readonly #place: Place;
  #cursor: Seq = 0;
  #gathered: Rows[] = [];
  #count = 0;
  written = 0;

  constructor(journal: Pick<Journal, "history">, place: Place) {
    this.#journal = journal;
    this.#place = place;
  }

  begin(): Promise<void> {
    return this.#journal.history.reset(this.#place.shard, this.#place.epoch);
  }

  /** True when something was written. */
  async add(seq: Seq, rows: Rows, isLast: boolean): Promise<boolean> {
    const count = countRows(rows);
    if (count > 0) this.#gathered.push(rows);
    this.#count += count;
    if (this.#count < this.#place.rowsMax && !isLast) return false;
    await this.#write(seq);
    return true;
  }

  async #write(throughSeq: Seq): Promise<void> {
    const slices = splitRows(mergeRows(this.#gathered), this.#place.rowsMax);
    this.#gathered = [];
    this.#count = 0;
    // The cursor moves only when the last slice of a batch is written.
    for (const slice of slices.slice(0, -1)) await this.#record(this.#cursor, slice);
    await this.#record(throughSeq, slices.at(-1) ?? noRows());
  }

  async #record(throughSeq: Seq, rows: Rows): Promise<void> {
    const { shard, epoch } = this.#place;
    const { history } = this.#journal;
    // A late write of an earlier owner may arrive after the reset; it would move the cursor past rows that are not
    // written.
    const found = await history.cursor(shard);
    if (found !== this.#cursor)
      throw new Fault("stale", "rebuild history", {
        shard,
        why: "another node wrote history at the same time",
        cursor: this.#cursor,
        found,
      });
    await history.record(shard, { epoch, throughSeq }, rows);
    this.#cursor = throughSeq;
    this.written += countRows(rows);
  }
}
