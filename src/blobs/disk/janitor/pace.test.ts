import { deepEqual, equal, ok } from "node:assert/strict";
import { mock, test } from "node:test";
import { digestOf } from "#blobs/hashing.ts";
import type { BlobStore } from "#blobs/store.ts";
import { Pace } from "./pace.ts";
import { diskRig, quietClock } from "#blobs/disk/testing/disk.ts";

const MiB = 1024 * 1024;

function timed() {
  const rests: number[] = [];
  let nowMs = 1_000;
  const rest = (ms: number): Promise<void> => {
    rests.push(ms);
    nowMs += ms;
    return Promise.resolve();
  };
  const pace = new Pace({ nowMs: () => nowMs, rest });
  const work = async (ms: number): Promise<void> => {
    nowMs += ms;
    await pace.giveWay();
  };
  return { pace, rests, work };
}

test("it pauses three times as long as it worked, up to a limit", async () => {
  const { rests, work } = timed();
  await work(1);
  rests.length = 0;
  await work(0.25);
  deepEqual(rests, [], "worked too little to pause");
  await work(0.25);
  await work(2);
  await work(500);
  deepEqual(rests, [1.5, 6, 20]);
});

test("it does not pause while a caller waits", async () => {
  const { pace, rests, work } = timed();
  await work(1);
  rests.length = 0;
  await pace.hurry(async () => {
    await pace.hurry(() => work(10));
    await work(10);
  });
  deepEqual(rests, []);
  await work(1);
  equal(rests.length, 1);
});

test("a write that needs space does not wait for a pausing janitor", async () => {
  let nowMs = 10_000_000;
  // Timers never fire, so the janitor runs only when a write needs it.
  const clock = { ...quietClock, monotonicMs: () => nowMs, wallMs: () => nowMs };
  const rig = await diskRig({ clock, sizeBytesMax: 8 * MiB, promisedMs: 1_000 });
  const { blobs } = rig.store.forTenant("mill");
  const rests = mock.method(globalThis, "setTimeout");
  try {
    for (let i = 0; i < 300; i += 1) {
      await writeOne(blobs, i);
      nowMs += 100;
    }
    const { evictedBlobs } = await rig.store.upkeep.stat();
    ok(evictedBlobs > 100, `${evictedBlobs} were evicted`);
  } finally {
    rests.mock.restore();
    await rig.dispose();
  }
  equal(rests.mock.callCount(), 0);
});

async function writeOne(blobs: BlobStore, number: number): Promise<void> {
  const bytes = Buffer.alloc(60_000, `${number} `);
  await blobs.write(digestOf(bytes), bytes);
}
