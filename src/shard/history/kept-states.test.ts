import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import { memoryStore } from "#journal/memory/memory.ts";
import { own } from "#journal/testing/support.ts";
import { keepState, keptStates, readState, thinned, type KeptState } from "./kept-states.ts";

const stateAt = (seq: number): KeptState => ({ seq, digest: `digest of ${seq}` });

describe("states kept beside the archive", () => {
  test("a snapshot is kept once, as it was, after the journal has a newer one", async () => {
    const clock = new ManualClock();
    const journal = memoryStore(() => clock.wallMs()).connect();
    await journal.open({ clusterId: "test", shards: 1 });
    const blobs = createMemoryBlobs({ clock, sizeBytesMax: 1 << 26 });
    const epoch = await own(journal, 0);
    const keys: [] = [];
    const bytesOf = (seq: number): Buffer => Buffer.alloc(2_500_000, `state at ${seq}; `);
    for (const seq of [1, 2]) {
      await journal.append([{ shard: 0, epoch, seq, payload: Buffer.from(`batch ${seq}`), keys }]);
      const chunks = (async function* () {
        for (let at = 0; at < 2_500_000; at += 100_000) yield bytesOf(seq).subarray(at, at + 100_000);
      })();
      await journal.saveSnapshot(0, { epoch, seq }, chunks);
      for (let times = 0; times < 2; times += 1) await keepState({ journal, blobs, keepMs: 1_000 }, 0);
    }
    const kept = await keptStates(journal, 0);
    deepEqual(
      kept.map(({ seq }) => seq),
      [1, 2],
    );
    for (const one of kept) {
      const bytes = Buffer.concat(await Array.fromAsync(readState(blobs, 0, one)));
      ok(bytes.equals(bytesOf(one.seq)), `state at ${one.seq}`);
    }
    deepEqual(await keptStates(journal, 1), []);
  });

  test("of too many, every second of the older half goes; the newest and the oldest stay", () => {
    const many = Array.from({ length: 9 }, (_, i) => stateAt(i + 1));
    deepEqual(
      thinned(many, 8).map(({ seq }) => seq),
      [1, 3, 5, 6, 7, 8, 9],
    );
    equal(thinned(many, 9).length, 9);
    let states: readonly KeptState[] = [];
    for (let seq = 1; seq <= 10_000; seq += 1) states = thinned([...states, stateAt(seq)], 20);
    ok(states.length <= 20);
    deepEqual([states[0]?.seq, states.at(-1)?.seq], [1, 10_000]);
  });
});
