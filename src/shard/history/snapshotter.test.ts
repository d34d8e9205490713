import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { must } from "#base/assert.ts";
import { settle } from "#base/testing/manual-clock.ts";
import { decodeEvents } from "#shard/codec/codec.ts";
import { decodeLines } from "#shard/codec/segment.ts";
import { commit, Rig, submit } from "#shard/testing/host.ts";

const soon = { snapshots: { logBytesMin: 2_000, stateShare: 0, chunkSize: 500 }, archiver: { segmentBytes: 1_000 } };

describe("snapshots", () => {
  test("are taken when the log has grown; then the log is archived and trimmed", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a", soon)).serving();
    for (let i = 0; i < 40; i += 1) await a.reply(submit({ name: `job ${i}` }));
    await rig.clock.advance(20_000);
    await a.reply(submit({ name: "the last one" }));
    const [grant] = await a.grants(1);
    await rig.clock.advance(1_000);
    const journal = rig.store.connect();
    const snapshot = must(await journal.loadSnapshot(0), "snapshot");
    ok(snapshot.seq > 20);
    const segments = await journal.segments(0);
    ok(segments.length > 1);
    equal(segments[0]?.fromSeq, 1);
    for (const { digest } of segments) deepEqual(await rig.blobs.missing([digest]), []);
    const archived = must(segments.at(-1), "segment").throughSeq;
    await Array.fromAsync(journal.read(0, archived + 1));
    deepEqual(rig.reports, []);

    const segment = must(segments[0], "segment");
    const [first] = decodeLines(Buffer.concat(await Array.fromAsync(rig.blobs.read(segment.digest))), segment);
    equal(first?.seq, 1);
    deepEqual(
      decodeEvents(must(first, "batch").payload).map(({ kind }) => kind),
      ["took-over"],
    );

    a.node.kill();
    const b = await (await rig.node("a", soon)).serving();
    const stats = await b.query({ kind: "stats" });
    ok(stats.kind === "answer" && "jobs" in stats.answer);
    equal(stats.answer.jobs, 41);
    deepEqual(await b.reply(commit(must(grant, "grant"))), { committed: true, generation: 1 });
  });

  test("J5: if the store does not keep a segment, it is not recorded and the log stays", async () => {
    const rig = new Rig();
    Object.assign(rig.blobs, { pin: async (digests: readonly string[]) => ({ missing: digests }) });
    const a = await (await rig.node("a", soon)).serving();
    for (let i = 0; i < 40; i += 1) await a.reply(submit());
    await rig.clock.advance(20_000);
    await a.reply(submit());
    await rig.clock.advance(1_000);
    const journal = rig.store.connect();
    ok((await journal.loadSnapshot(0)) !== undefined);
    deepEqual(await journal.segments(0), []);
    ok((await Array.fromAsync(journal.read(0, 1))).length > 40);
    ok(rig.reports.some((line) => /archive the log of shard 0: .*pin log segment/.test(line)));
  });

  test("are saved when their last batch is durable, and not before", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a", soon)).serving();
    const { state } = must(a.node.host.shards.get(0), "shard");
    for (let i = 0; state.capture === undefined; i += 1) {
      if (i > 1_000) throw new Error("no snapshot was begun");
      a.journal.deliver();
      await settle();
      a.journal.fail("append", "late");
      void a.ask(submit({ tasks: 5 }));
      await settle();
    }
    await rig.clock.advance(1_000);
    equal(a.journal.count("saveSnapshot"), 0);
    a.journal.deliver();
    await rig.clock.advance(1_000);
    equal(a.journal.count("saveSnapshot"), 1);
  });

  test("work goes on while one is written, and it shows the moment it began", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a", soon)).serving();
    const { state } = must(a.node.host.shards.get(0), "shard");
    for (let i = 0; state.capture === undefined; i += 1) {
      await a.reply(submit({ tasks: 5 }));
      if (i > 1_000) throw new Error("no snapshot was begun");
    }
    await a.reply(submit({ tasks: 5 }));
    const grants = await a.grants(5);
    for (const grant of grants) await a.reply(commit(grant));
    await rig.clock.advance(3_000);
    ok((await rig.store.connect().loadSnapshot(0)) !== undefined);
    a.node.kill();
    const b = await (await rig.node("a", soon)).serving();
    for (const grant of grants) deepEqual(await b.reply(commit(grant)), { committed: true, generation: 1 });
    ok((await b.grants(1_000)).length > 0);
  });

  test("a snapshot whose batch never becomes durable is not saved", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a", soon)).serving();
    await a.reply(submit({ tasks: 100 }));
    await rig.store.connect().release(0, 1);
    equal((await a.ask(submit())).kind, "not-owner");
    await rig.clock.advance(100);
    equal(await rig.store.connect().loadSnapshot(0), undefined);
  });

  test("a snapshot that cannot be saved is tried again later, and the shard goes on", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a", soon)).serving();
    a.journal.fail("saveSnapshot", "unavailable");
    for (let i = 0; i < 20; i += 1) {
      await a.reply(submit({ tasks: 10 }));
      await rig.clock.advance(1_000);
    }
    ok((await rig.store.connect().loadSnapshot(0)) !== undefined);
    ok(rig.reports.some((line) => line.includes("snapshot")));
  });
});
