// With sync "synced": nothing is acknowledged or found before the disk has it, and one sync serves many writes.
import { deepEqual, equal, rejects } from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { isFault } from "#base/fault.ts";
import { exerciseBlobs } from "#blobs/testing/exercise.ts";
import { exerciseUploads } from "#blobs/testing/uploads.ts";
import { until } from "#testing/until.ts";
import { InlineGate } from "#blobs/disk/upload/inline-gate.ts";
import { PackedLog } from "./packed-log.ts";
import { kinds } from "./record.ts";
import { SpaceBudget } from "#blobs/disk/janitor/space-budget.ts";
import { Segments } from "./segments.ts";
import { Slabs } from "./slabs.ts";
import { Table } from "#blobs/disk/table/table.ts";
import { diskRig } from "#blobs/disk/testing/disk.ts";

const synced = { sync: "synced" } as const;

exerciseBlobs("the disk store, synced", async () => {
  const rig = await diskRig(synced);
  return { blobs: rig.store.forTenant("mill").blobs, dispose: () => rig.dispose() };
});

exerciseUploads("the disk store, synced (files)", async () => {
  const rig = await diskRig({ ...synced, packedBytesMax: 0 });
  return {
    ...rig.store.forTenant("mill"),
    reopened: async () => ({ ...(await rig.reopen()).forTenant("mill") }),
    dispose: () => rig.dispose(),
  };
});

/** A log whose syncs the test controls. */
async function logRig() {
  const folder = await mkdtemp(join(tmpdir(), "millrace-log-"));
  const segments = new Segments(folder);
  const syncs: PromiseWithResolvers<void>[] = [];
  const seen: number[] = [];
  const log = new PackedLog(
    {
      segments,
      slabs: new Slabs(new Table(), 4 * 2 ** 20),
      budget: new SpaceBudget(2 ** 30, 0),
      gate: new InlineGate(() => performance.now()),
      segmentBytes: 2 ** 20,
      isSynced: true,
      onLost: () => {},
      syncs: {
        file() {
          const sync = Promise.withResolvers<void>();
          syncs.push(sync);
          return sync.promise;
        },
        folder: async () => {},
      },
      onWritten: ({ offset }) => seen.push(offset),
    },
    { sequence: 0, checkpointSegment: 0 },
  );
  const append = () =>
    log.append({ header: { kind: kinds.touches }, bodyBytes: 100, fill: (to, at) => to.fill(7, at) });
  const dispose = async () => {
    segments.close();
    await rm(folder, { recursive: true });
  };
  return { log, segments, syncs, seen, append, dispose };
}

test("one sync serves all writes that came during the one before", async () => {
  const { log, segments, syncs, seen, append, dispose } = await logRig();
  const told: string[] = [];
  const first = append().then(() => told.push("first"));
  await until("the first is being synced", () => syncs.length === 1);
  const others = Array.from({ length: 50 }, (_, i) => append().then(() => told.push(`other ${i}`)));
  await new Promise(setImmediate);
  deepEqual([told.length, seen.length, syncs.length], [0, 0, 1]);
  syncs[0]?.resolve();
  await first;
  await until("the others are being synced", () => syncs.length === 2);
  deepEqual([told, seen.length], [["first"], 1]);
  syncs[1]?.resolve();
  await Promise.all(others);
  deepEqual([told.length, seen.length, syncs.length], [51, 51, 2]);
  const [segment] = segments.all();
  equal(segment?.syncedBytes, segment?.sizeBytes); // so a pin need not wait
  await log.settled();
  await dispose();
});

test("a write whose sync failed is refused and not found, and later writes go to another segment", async () => {
  const { segments, syncs, seen, append, dispose } = await logRig();
  const refused = rejects(append(), (error) => isFault(error, "unavailable"));
  await until("it is being synced", () => syncs.length === 1);
  const late = rejects(append(), (error) => isFault(error, "unavailable"));
  syncs[0]?.reject(new Error("the disk is gone"));
  await Promise.all([refused, late]);
  deepEqual([seen, segments.numbers], [[], []]);
  const next = append();
  await until("the next is being synced", () => syncs.length === 2);
  syncs[1]?.resolve();
  await next;
  deepEqual([seen.length, segments.numbers], [1, [2]]);
  await dispose();
});
