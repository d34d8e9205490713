/** Uploads without a digest share a spool: those that say their size wait for each other. */
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { isFault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { clearAway } from "#testing/clear-away.ts";
import { Spool } from "./spool.ts";

const ann = { tenant: "a", principal: "ci" };
const bob = { tenant: "b", principal: "ci" };

async function* bytes(size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < size; at += 10) yield new Uint8Array(Math.min(10, size - at));
}

function rig() {
  const folder = mkdtempSync(join(tmpdir(), "millrace-spool-"));
  // one caller may hold 40 of these bytes, a tenant 50, all of them 75
  const spool = new Spool({ folder, memoryBytesEach: 5, memoryBytesMax: 10, bytesMax: 100 });
  return { spool, clock: new ManualClock(0), [Symbol.dispose]: () => clearAway(folder) };
}

test("an upload that says its size waits until others are done, in turn; another tenant's does not", async () => {
  using at = rig();
  const { spool, clock } = at;
  const done: string[] = [];
  const upload = async (name: string, owner: typeof ann, size: number): Promise<void> => {
    using room = await spool.reserve(owner, size, clock, 1_000);
    await using _ = await spool.take(bytes(size), owner, "sha256", room);
    done.push(name);
  };
  const first = await spool.reserve(ann, 30, clock, 1_000);
  const others = [upload("large", ann, 35), upload("small", ann, 5)];
  await upload("bob's", bob, 40);
  deepEqual(done, ["bob's"], "one behind another of the same caller waits as well");
  first[Symbol.dispose]();
  await Promise.all(others);
  deepEqual(done.toSorted(), ["bob's", "large", "small"]);
  for (let turn = 0; turn < 20; turn += 1) await upload("again", ann, 40);
  equal(done.length, 23, "nothing stays counted");
});

test("an upload waits for its time and no longer, and not at all for room that can never be", async () => {
  using at = rig();
  const { spool, clock } = at;
  await rejects(spool.reserve(ann, 41, clock, 1_000), (error) => isFault(error, "exhausted"));
  using _room = await spool.reserve(ann, 40, clock, 1_000);
  const late = rejects(spool.reserve(ann, 1, clock, 1_000), (error) => isFault(error, "exhausted"));
  await clock.advance(1_000);
  await late;
  await rejects(spool.take(bytes(1), ann), (error) => isFault(error, "exhausted"), "without a size it is refused");
  await using taken = await spool.take(bytes(30), bob);
  ok(taken.digest);
});
