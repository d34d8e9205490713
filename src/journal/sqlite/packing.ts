/**
 * An append on its way to the worker thread: all encoded records in one transferred buffer, and the keys in one flat
 * list. Cloning an object per batch and key would cost the main thread more than the bytes do.
 */
import { must } from "#base/assert.ts";
import type { UnlinkedBatch } from "#journal/engine/engine-log.ts";
import { cellOf, storedNames, storedTables, type StoredName } from "#journal/history/columns.ts";
import { fold } from "#journal/history/fold.ts";
import type { HistoryRows } from "#base/history-rows.ts";
import type { Batch, RequestKey, Seq } from "#journal/journal.ts";
import { headerBytes, encodeUnlinked, recordSize } from "#journal/record.ts";

/** Keys as batch index, key, job, payload hash, retained until; five entries each. */
export type Packed = { readonly records: Uint8Array<ArrayBuffer>; readonly keys: readonly (string | number)[] };

export function packBatches(batches: readonly Batch[]): Packed {
  const records = new Uint8Array(batches.reduce((sizeBytes, { payload }) => sizeBytes + recordSize(payload), 0));
  const keys: (string | number)[] = [];
  let from = 0;
  for (const [i, batch] of batches.entries()) {
    const end = from + recordSize(batch.payload);
    encodeUnlinked(records.subarray(from, end), batch);
    from = end;
    for (const { key, job, payloadHash, retainedUntilMs } of batch.keys)
      keys.push(i, key, job, payloadHash, retainedUntilMs);
  }
  return { records, keys };
}

export function unpackBatches({ records, keys }: Packed): UnlinkedBatch[] {
  const view = new DataView(records.buffer, records.byteOffset, records.byteLength);
  const batches: { record: Uint8Array; keys: RequestKey[] }[] = [];
  for (let from = 0; from < records.length;) {
    const end = from + headerBytes + view.getUint32(from + 20, true);
    batches.push({ record: records.subarray(from, end), keys: [] });
    from = end;
  }
  for (let at = 0; at < keys.length; at += 5) {
    const [batch, key, job, payloadHash, retainedUntilMs] = keys.slice(at, at + 5);
    must(batches[Number(batch)], "batch of a key").keys.push({
      key: String(key),
      job: Number(job),
      payloadHash: String(payloadHash),
      retainedUntilMs: Number(retainedUntilMs),
    });
  }
  return batches;
}

/** The history's rows, too, are sent as one flat list of cells per table, in the order of its columns. */
export type PackedRows = Readonly<Record<StoredName, readonly (string | number)[]>>;

export function packRows(given: HistoryRows, throughSeq: Seq): PackedRows {
  const rows = fold(given, throughSeq);
  const packed = {} as Record<StoredName, (string | number)[]>;
  for (const name of storedNames) {
    const cells: (string | number)[] = (packed[name] = []);
    const { columns } = storedTables[name];
    for (const row of rows[name]) for (const column of columns) cells.push(cellOf(row, column));
  }
  return packed;
}
