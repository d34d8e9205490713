import { deepEqual, equal } from "node:assert/strict";
import { bytes, chunked, faults, fill, own, readAll, scene, seqs, text, type MakeStore } from "./support.ts";
import type { HistoryRows } from "#base/history-rows.ts";
import type { Epoch, Journal, Segment, Seq } from "#journal/journal.ts";

const noRows: HistoryRows = { jobs: [], stages: [], tasks: [], attempts: [], steps: [] };
const segment = (fromSeq: Seq, throughSeq: Seq): Segment => ({
  shard: 0,
  fromSeq,
  throughSeq,
  digest: `${"0".repeat(64)}/${throughSeq}`,
  sizeBytes: throughSeq,
});

async function loaded(journal: Journal, shard = 0): Promise<{ seq: Seq; epoch: Epoch; chunks: string[] } | undefined> {
  const snapshot = await journal.loadSnapshot(shard);
  if (!snapshot) return undefined;
  const chunks: string[] = [];
  for await (const chunk of snapshot.chunks) chunks.push(text(chunk));
  return { seq: snapshot.seq, epoch: snapshot.epoch, chunks };
}

export function exerciseSnapshots(makeStore: MakeStore): void {
  scene(makeStore, "a snapshot is read back chunk by chunk, and a newer one replaces it", async ({ journal, node }) => {
    const epoch = await own(journal, 0);
    equal(await loaded(journal), undefined);
    await fill(journal, { shard: 0, epoch, count: 4 });
    await journal.saveSnapshot(0, { epoch, seq: 2 }, chunked("one", "", "three", "three"));
    const other = await node();
    deepEqual(await loaded(other), { seq: 2, epoch, chunks: ["one", "", "three", "three"] });
    await journal.saveSnapshot(0, { epoch, seq: 4 }, chunked("newer"));
    deepEqual(await loaded(other), { seq: 4, epoch, chunks: ["newer"] });
    await journal.saveSnapshot(0, { epoch, seq: 4 }, chunked());
    deepEqual(await loaded(other), { seq: 4, epoch, chunks: [] });
    equal(await loaded(other, 1), undefined);
  });

  scene(makeStore, "an interrupted snapshot leaves the old one in place", async ({ journal, node }) => {
    const epoch = await own(journal, 0);
    await fill(journal, { shard: 0, epoch, count: 4 });
    await journal.saveSnapshot(0, { epoch, seq: 2 }, chunked("old"));
    const brokenOff = async function* (): AsyncGenerator<Uint8Array> {
      yield bytes("new");
      deepEqual(await loaded(journal), { seq: 2, epoch, chunks: ["old"] });
      throw new Error("the node died here");
    };
    await journal.saveSnapshot(0, { epoch, seq: 4 }, brokenOff()).catch(() => undefined);
    const other = await node();
    deepEqual(await loaded(other), { seq: 2, epoch, chunks: ["old"] });
    await other.saveSnapshot(0, { epoch, seq: 3 }, chunked("next", "one"));
    deepEqual(await loaded(journal), { seq: 3, epoch, chunks: ["next", "one"] });
  });

  scene(
    makeStore,
    "K8 a snapshot is refused under an outdated epoch, ahead of the log, or behind the newest",
    async ({ journal, node }) => {
      const epoch = await own(journal, 0);
      await fill(journal, { shard: 0, epoch, count: 4 });
      await journal.saveSnapshot(0, { epoch, seq: 3 }, chunked("stands"));
      await faults(journal.saveSnapshot(0, { epoch, seq: 5 }, chunked("ahead")), "invalid");
      await faults(journal.saveSnapshot(0, { epoch, seq: 2 }, chunked("behind")), "invalid");
      const other = await node();
      const overtaking = async function* (): AsyncGenerator<Uint8Array> {
        yield bytes("half");
        await own(other, 0, "ada");
        yield bytes("other half");
      };
      await faults(journal.saveSnapshot(0, { epoch, seq: 4 }, overtaking()), "stale");
      await faults(journal.saveSnapshot(0, { epoch, seq: 4 }, chunked("stale")), "stale");
      deepEqual(await loaded(other), { seq: 3, epoch, chunks: ["stands"] });
    },
  );

  scene(makeStore, "J3 a damaged snapshot is reported", async ({ journal, tamper }) => {
    const epoch = await own(journal, 0);
    await fill(journal, { shard: 0, epoch, count: 1 });
    await journal.saveSnapshot(0, { epoch, seq: 1 }, chunked("one", "two", "three"));
    await tamper.flipChunk(0, 1, 42 * 8);
    await faults(loaded(journal), "corrupt");
  });

  scene(makeStore, "J3 a log that ends before its snapshot is reported", async ({ journal, tamper }) => {
    const epoch = await own(journal, 0);
    await fill(journal, { shard: 0, epoch, count: 2 });
    await journal.saveSnapshot(0, { epoch, seq: 2 }, chunked("all"));
    await tamper.dropRecord(0, 2);
    await faults(journal.tail(0), "corrupt");
    await faults(readAll(journal, 0, 3), "corrupt");
  });

  scene(
    makeStore,
    "J5 the log is trimmed only up to where snapshot, archive and history have passed",
    async ({ journal, node }) => {
      const epoch = await own(journal, 0);
      await fill(journal, { shard: 0, epoch, count: 6 });
      await faults(journal.trim(0, epoch, 3), "invalid");
      await journal.saveSnapshot(0, { epoch, seq: 5 }, chunked("five"));
      await faults(journal.trim(0, epoch, 3), "invalid");
      await journal.recordSegment(segment(1, 4), epoch);
      await faults(journal.trim(0, epoch, 3), "invalid");
      await journal.history.record(0, { epoch, throughSeq: 3 }, noRows);
      await faults(journal.trim(0, epoch, 4), "invalid");
      await faults(journal.trim(0, epoch + 1, 3), "stale");
      equal((await readAll(journal, 0)).length, 6);
      await journal.trim(0, epoch, 3);
      const other = await node();
      deepEqual(seqs(await readAll(other, 0, 4)), [4, 5, 6]);
      deepEqual(seqs(await readAll(other, 0, 6)), [6]);
      await faults(readAll(other, 0, 3), "not-found");
      await journal.trim(0, epoch, 2);
      equal((await other.tail(0)).seq, 6);
    },
  );

  for (const [last, through] of Object.entries({
    snapshot: { snapshot: 2, archive: 4, history: 5 },
    archive: { snapshot: 5, archive: 2, history: 4 },
    history: { snapshot: 4, archive: 5, history: 2 },
  }))
    scene(
      makeStore,
      `J5 the log is not trimmed beyond its ${last}, however far the others are`,
      async ({ journal }) => {
        const epoch = await own(journal, 0);
        await fill(journal, { shard: 0, epoch, count: 6 });
        await journal.saveSnapshot(0, { epoch, seq: through.snapshot }, chunked("state"));
        await journal.recordSegment(segment(1, through.archive), epoch);
        await journal.history.record(0, { epoch, throughSeq: through.history }, noRows);
        await faults(journal.trim(0, epoch, 3), "invalid");
        equal((await readAll(journal, 0)).length, 6);
        await journal.trim(0, epoch, 2);
        deepEqual(seqs(await readAll(journal, 0, 3)), [3, 4, 5, 6]);
      },
    );

  scene(makeStore, "J5 a log trimmed to its end continues from there", async ({ journal, node }) => {
    const epoch = await own(journal, 0);
    await fill(journal, { shard: 0, epoch, count: 3 });
    await journal.saveSnapshot(0, { epoch, seq: 3 }, chunked("three"));
    await journal.recordSegment(segment(1, 3), epoch);
    await journal.history.record(0, { epoch, throughSeq: 3 }, noRows);
    const before = await journal.tail(0);
    await journal.trim(0, epoch, 3);
    const other = await node();
    deepEqual(await other.tail(0), before);
    deepEqual(await readAll(other, 0, 4), []);
    const next = await own(other, 0, "ada");
    await faults(other.append([{ shard: 0, epoch: next, seq: 3, payload: bytes("again"), keys: [] }]), "invalid");
    await fill(other, { shard: 0, epoch: next, from: 4, count: 2 });
    deepEqual(seqs(await readAll(other, 0, 4)), [4, 5]);
  });

  scene(
    makeStore,
    "archived segments follow one another; recording one twice changes nothing",
    async ({ journal, node }) => {
      const epoch = await own(journal, 0);
      await fill(journal, { shard: 0, epoch, count: 6 });
      deepEqual(await journal.segments(0), []);
      await faults(journal.recordSegment(segment(2, 3), epoch), "invalid");
      await journal.recordSegment(segment(1, 3), epoch);
      await journal.recordSegment(segment(1, 3), epoch);
      await faults(journal.recordSegment(segment(5, 6), epoch), "invalid");
      await faults(journal.recordSegment(segment(4, 9), epoch), "invalid");
      await faults(journal.recordSegment(segment(4, 5), epoch + 1), "stale");
      await journal.recordSegment(segment(4, 5), epoch);
      deepEqual(await (await node()).segments(0), [segment(1, 3), segment(4, 5)]);
    },
  );
}
