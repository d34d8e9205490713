/**
 * Where a replay of the log may begin: at the journal's snapshot, at one that was kept beside the archive, else before
 * the first batch. So what a reader from long ago costs depends on how far snapshots lie apart, not on the log's age.
 */
import type { Clock } from "#base/clock.ts";
import { isFault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { Journal, Seq } from "#journal/journal.ts";
import type { Limits } from "#kernel/model/limits.ts";
import { createState, type State } from "#kernel/model/state.ts";
import { Restorer, rowsOf } from "#kernel/snapshot/restore.ts";
import { decodeTexts } from "#shard/codec/snapshot.ts";
import { keptStates, readState } from "#shard/history/kept-states.ts";

export type BasePorts = {
  readonly clock: Clock;
  readonly journal: Pick<Journal, "loadSnapshot" | "records">;
  readonly blobs: Pick<BlobStore, "read">;
  readonly limits: () => Limits;
  /** A state that could not be read: an older one is taken. */
  readonly report: (doing: string, error: unknown) => void;
};

export type Base = { readonly seq: Seq; readonly chunks: AsyncIterable<Uint8Array> };

/** So many are tried before everything is read. */
const basesMax = 3;

/** Snapshots that contain no batch after this one, the newest first. */
export async function basesOf({ journal, blobs }: BasePorts, shard: ShardId, after: Seq): Promise<readonly Base[]> {
  const newest = await journal.loadSnapshot(shard);
  const kept = (await keptStates(journal, shard)).filter(({ seq }) => seq <= after).slice(-basesMax);
  const bases = kept.map((one): Base => ({ seq: one.seq, chunks: readState(blobs, shard, one) })).toReversed();
  return newest && newest.seq <= after ? [newest, ...bases] : bases;
}

/** The state of the first of them that can be read. */
export async function restoredFrom(
  { clock, limits, report }: BasePorts,
  shard: ShardId,
  bases: readonly Base[],
): Promise<{ readonly state: State; readonly seq: Seq }> {
  for (const { seq, chunks } of bases)
    try {
      const restorer = new Restorer(shard, limits());
      for await (const text of decodeTexts(chunks)) {
        restorer.addRows(rowsOf(text));
        await clock.sleep(0);
      }
      return { state: restorer.finish(), seq };
    } catch (error) {
      if (!isFault(error, "not-found") && !isFault(error, "corrupt")) throw error;
      report(`read the state of shard ${shard} at batch ${seq}, to replay what follows`, error);
    }
  return { state: createState(shard, limits()), seq: 0 };
}
