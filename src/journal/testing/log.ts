import { deepEqual, equal, ok } from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { batch, faults, fill, only, own, readAll, scene, seqs, text, type MakeStore } from "./support.ts";
import type { Batch, RequestKey } from "#journal/journal.ts";
import { recordHash } from "#journal/record.ts";

export function exerciseLog(makeStore: MakeStore): void {
  scene(makeStore, "a store keeps the facts it was created with", async ({ journal, node, connect }) => {
    deepEqual(await journal.cluster(), { clusterId: "under-test", shards: 8, featureLevel: 0 });
    const late = await connect();
    equal((await late.open({ shards: 99, clusterId: "other" })).shards, 8);
    await late.close();
    equal((await (await node()).cluster()).clusterId, "under-test");
  });

  scene(
    makeStore,
    "J2 what was appended is read back in order, also through a new connection",
    async ({ journal, node }) => {
      const epoch = await own(journal, 3);
      deepEqual(await journal.tail(3), { epoch: 0, seq: 0, hash: 0 });
      deepEqual(await readAll(journal, 3), []);
      await fill(journal, { shard: 3, epoch, count: 5 });
      const other = await node();
      const records = await readAll(other, 3);
      deepEqual(seqs(records), [1, 2, 3, 4, 5]);
      equal(text(records[4]?.payload ?? new Uint8Array()), `shard 3 seq 5 under ${epoch}`);
      deepEqual(seqs(await readAll(other, 3, 4)), [4, 5]);
      deepEqual(await readAll(other, 3, 6), []);
      deepEqual(await other.tail(3), { epoch, seq: 5, hash: recordHash(batch(3, epoch, 5)) });
      await journal.close();
      deepEqual(seqs(await readAll(other, 3)), [1, 2, 3, 4, 5]);
    },
  );

  scene(makeStore, "payloads of any size and content are read back unchanged", async ({ journal }) => {
    const epoch = await own(journal, 0);
    const payloads = [0, 1, 255, 4096, 70_000, 3_000_000].map((sizeBytes) => new Uint8Array(randomBytes(sizeBytes)));
    for (const [i, payload] of payloads.entries())
      equal(only(await journal.append([{ shard: 0, epoch, seq: i + 1, payload, keys: [] }])), "appended");
    const records = await readAll(journal, 0);
    for (const [i, payload] of payloads.entries())
      ok(Buffer.compare(payload, records[i]?.payload ?? payload.slice(1)) === 0);
  });

  scene(
    makeStore,
    "J1 an append under an outdated epoch is fenced and leaves no trace",
    async ({ journal, node, advance }) => {
      const old = await own(journal, 1, "ada", 1000);
      await fill(journal, { shard: 1, epoch: old, count: 2 });
      advance(1100);
      const other = await node();
      const epoch = await own(other, 1, "grace");
      ok(epoch > old);
      equal(only(await journal.append([batch(1, old, 3)])), "fenced");
      equal((await other.tail(1)).seq, 2);
      equal(only(await other.append([batch(1, epoch, 3)])), "appended");
      equal(only(await journal.append([batch(1, old, 4)])), "fenced");
      deepEqual(
        (await readAll(other, 1)).map((record) => record.epoch),
        [old, old, epoch],
      );
    },
  );

  scene(makeStore, "J1 an append under an epoch that no node has had is fenced too", async ({ journal }) => {
    equal(only(await journal.append([batch(1, 1, 1)])), "fenced");
    equal(only(await journal.append([batch(1, 7, 1)])), "fenced");
    await faults(journal.append([batch(99, 1, 1)]), "not-found");
  });

  scene(makeStore, "J1 a seq that is not the next one is refused, and everything sent with it", async ({ journal }) => {
    const epoch = await own(journal, 1);
    const fine = await own(journal, 3); // in the same database as the other, where there are two
    await fill(journal, { shard: 1, epoch, count: 2 });
    for (const seq of [1, 2, 4, 100])
      await faults(journal.append([batch(1, epoch, seq), batch(3, fine, 1)]), "invalid");
    await faults(journal.append([batch(1, epoch, 3), batch(1, epoch, 4)]), "invalid");
    equal((await journal.tail(1)).seq, 2);
    equal((await journal.tail(3)).seq, 0);
    await fill(journal, { shard: 1, epoch, from: 3, count: 1 });
  });

  scene(
    makeStore,
    "J1 of several shards in one append one is fenced and the others are durable",
    async ({ journal, node }) => {
      const epochs = [await own(journal, 5), await own(journal, 1), await own(journal, 4)];
      const [five = 0, one = 0, four = 0] = epochs;
      await journal.release(1, one);
      const { outcomes, storeNowMs } = await journal.append([batch(5, five, 1), batch(1, one, 1), batch(4, four, 1)]);
      deepEqual(outcomes, ["appended", "fenced", "appended"]);
      ok(storeNowMs > 0);
      const other = await node();
      deepEqual([(await other.tail(5)).seq, (await other.tail(1)).seq, (await other.tail(4)).seq], [1, 0, 1]);
      deepEqual(
        await journal.confirm([
          { shard: 5, epoch: five },
          { shard: 1, epoch: one },
          { shard: 77, epoch: 1 },
        ]),
        [true, false, false],
      );
      deepEqual((await journal.append([])).outcomes, []);
    },
  );

  scene(
    makeStore,
    "J1 appends racing a takeover: accepted before it or fenced, never after it",
    async ({ journal, node, advance }) => {
      for (let round = 1, seq = 1; round <= 10; round += 1) {
        const old = await own(journal, 2, "ada", 1000);
        const other = await node();
        advance(1100);
        const racing: Promise<string>[] = [];
        const stop = (async () => {
          for (let i = 0; i < 3; i += 1) {
            const outcome = journal.append([batch(2, old, seq)]).then(only);
            racing.push(outcome);
            if ((await outcome) === "fenced") return;
            seq += 1;
          }
        })();
        const epoch = await own(other, 2, "grace", 1000);
        const tail = await other.tail(2);
        await stop;
        const accepted = (await Promise.all(racing)).filter((outcome) => outcome === "appended").length;
        equal(
          (await other.tail(2)).seq,
          tail.seq,
          "no append of the old epoch is written after the new owner has read the tail",
        );
        equal(tail.seq, seq - 1, `all ${accepted} accepted appends are there`);
        equal(only(await other.append([batch(2, epoch, seq)])), "appended");
        seq += 1;
        advance(1100);
        await other.close();
      }
      await readAll(journal, 2);
    },
  );

  scene(makeStore, "many concurrent appends of different shards are all written", async ({ journal }) => {
    const epochs = await Promise.all([0, 1, 2, 3, 4, 5, 6, 7].map((shard) => own(journal, shard)));
    const bad = batch(7, epochs[7] ?? 0, 9);
    const results = await Promise.allSettled([
      ...epochs.slice(0, 7).map((epoch, shard) => journal.append([batch(shard, epoch, 1)])),
      journal.append([bad]),
    ]);
    deepEqual(
      results.map(({ status }) => status),
      [...Array<string>(7).fill("fulfilled"), "rejected"],
    );
    for (let shard = 0; shard < 7; shard += 1) equal((await journal.tail(shard)).seq, 1);
    equal((await journal.tail(7)).seq, 0);
  });

  scene(makeStore, "J3 a flipped bit in a record is reported, never skipped", async ({ journal, tamper }) => {
    const epoch = await own(journal, 6);
    await fill(journal, { shard: 6, epoch, count: 5 });
    await tamper.flipRecord(6, 3, 45 * 8 + 3);
    await faults(readAll(journal, 6), "corrupt");
    await faults(readAll(journal, 6, 3), "corrupt");
    deepEqual(seqs(await readAll(journal, 6, 5)), [5]);
    await tamper.flipRecord(6, 5, 8 * 8);
    await faults(journal.tail(6), "corrupt");
  });

  scene(makeStore, "J3 a missing record is reported, never skipped", async ({ journal, tamper }) => {
    const epoch = await own(journal, 6);
    await fill(journal, { shard: 6, epoch, count: 5 });
    await tamper.dropRecord(6, 3);
    await faults(readAll(journal, 6), "corrupt");
    await faults(readAll(journal, 6, 4), "corrupt");
    await faults(readAll(journal, 6, 9), "corrupt");
    deepEqual(seqs(await readAll(journal, 6, 5)), [5]);
  });

  scene(
    makeStore,
    "K1 request keys are durable with their batch and found until their time",
    async ({ journal, node, advance }) => {
      const epoch = await own(journal, 1);
      const now = (await journal.append([])).storeNowMs;
      const key = (name: string, job: number, forMs: number): RequestKey => ({
        key: name,
        job,
        payloadHash: `hash of ${name}`,
        retainedUntilMs: Math.floor(now) + forMs,
      });
      const [short, long, odd] = [
        key("a/ci/short", 1, 5_000),
        key("a/ci/long", 2, 500_000),
        key("ü/\u0000/ key", 3, 500_000),
      ];
      const send = (part: Partial<Batch>): Promise<string> =>
        journal.append([{ ...batch(1, epoch, 1), ...part }]).then(only);
      equal(await send({ keys: [short, long] }), "appended");
      equal(await send({ seq: 2, keys: [odd] }), "appended");
      equal(await send({ epoch: epoch + 1, seq: 3, keys: [key("fenced", 4, 500_000)] }), "fenced");
      const other = await node();
      const find = async (atMs: number, ...names: string[]): Promise<RequestKey[]> =>
        [...(await other.findKeys(1, names, atMs))].sort((a, b) => a.job - b.job);
      deepEqual(await find(now, odd.key, "a/ci/long", "nobody", "a/ci/short", "fenced"), [short, long, odd]);
      deepEqual(await other.findKeys(2, ["a/ci/long"], now), []);
      deepEqual(await other.findKeys(1, [], now), []);
      // However far the store's clock is by then: the shard's own time counts.
      advance(1_000_000);
      equal(await other.trimKeys(1, now, 10), 0);
      deepEqual(await find(now, "a/ci/short", "a/ci/long"), [short, long]);
      deepEqual(await find(now + 6_000, "a/ci/short", "a/ci/long"), [long]);
      equal(await other.trimKeys(1, now + 6_000, 10), 1);
      const again = key("a/ci/short", 9, 900_000);
      equal(await send({ epoch: await own(journal, 1), seq: 3, keys: [again] }), "appended");
      deepEqual(await find(now + 6_000, "a/ci/short"), [again]);
      equal(await other.trimKeys(1, now + 1_000_000, 2), 2);
      equal(await other.trimKeys(1, now + 1_000_000, 2), 1);
    },
  );
}
