/** A journal over an engine, wherever the engine runs: in this thread (memory) or in a worker (SQLite). */
import type { Entries } from "#base/entries.ts";
import type { LogPage } from "./engine-log.ts";
import type { Engine } from "./engine.ts";
import type { History, Journal } from "#journal/journal.ts";
import type { RecordStore } from "#records/records.ts";
import { readLog } from "./reading.ts";
import { loadSnapshot, saveSnapshot, type SnapshotStore } from "./snapshots.ts";

type Arguments<F> = F extends (nowMs: number, ...rest: infer A) => unknown ? A : never;
export type Call = <K extends keyof Engine>(op: K, ...args: Arguments<Engine[K]>) => Promise<ReturnType<Engine[K]>>;

export type AssembledPorts = {
  readonly call: Call;
  readonly append: Journal["append"];
  readonly describe: Journal["describe"];
  readonly history: History;
  readonly entries: Entries;
  readonly records: RecordStore;
  readonly close: () => Promise<void>;
};

const pageBytesMax = 1 << 20;
const trimRecordsMax = 512;
const sweepChunksMax = 16;

export function assembled(ports: AssembledPorts): Journal {
  const { call, append, describe, history, entries, records, close } = ports;
  const store: SnapshotStore = {
    begin: (shard, at) => call("snapshotBegin", shard, at),
    put: (at, record) => call("snapshotPut", at, record),
    commit: (shard, pointer) => call("snapshotCommit", shard, pointer),
    sweep: (shard) => call("snapshotSweep", shard, sweepChunksMax),
    pointer: (shard) => call("snapshotPointer", shard),
    chunk: (at) => call("snapshotChunk", at),
  };
  return {
    open: (wanted) => call("open", wanted),
    cluster: () => call("cluster"),
    append,
    confirm: (owned) => call("confirm", owned),
    tail: (shard) => call("tail", shard),
    read: (shard, fromSeq) =>
      readLog(shard, fromSeq, (from): Promise<LogPage> => call("page", shard, from, pageBytesMax)),
    saveSnapshot: (shard, at, chunks) => saveSnapshot(store, shard, at, chunks),
    loadSnapshot: (shard) => loadSnapshot(store, shard),
    recordSegment: (segment, epoch) => call("recordSegment", segment, epoch),
    segments: (shard) => call("segments", shard),
    async trim(shard, epoch, throughSeq) {
      const wanted = { throughSeq, history: await history.cursor(shard), recordsMax: trimRecordsMax };
      while ((await call("trim", { shard, epoch }, wanted)) < throughSeq);
    },
    findKeys: (shard, keys, atMs) => call("findKeys", shard, keys, atMs),
    trimKeys: (shard, atMs, limit) => call("trimKeys", shard, atMs, limit),
    acquire: (shard, node, wanted) => call("acquire", shard, { node, ...wanted }),
    renew: (node, held, leaseMs) => call("renew", node, held, leaseMs),
    release: (shard, epoch, successor) => call("release", { shard, epoch }, successor),
    ownerships: () => call("ownerships"),
    announce: (row, ttlMs) => call("announce", row, ttlMs),
    nodes: () => call("nodes"),
    raiseFeatureLevel: () => call("raiseFeatureLevel"),
    describe,
    history,
    entries,
    records,
    close,
  };
}
