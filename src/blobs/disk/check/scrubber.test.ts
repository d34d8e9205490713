import { deepEqual, equal, ok } from "node:assert/strict";
import { readFileSync, writeFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { put, text } from "#blobs/testing/exercise.ts";
import { diskRig, type DiskRig } from "#blobs/disk/testing/disk.ts";
import { until } from "#testing/until.ts";

const dayMs = 24 * 3_600_000;

function flip(path: string, needle: string): void {
  const bytes = readFileSync(path);
  const at = bytes.indexOf(needle);
  ok(at > 0, "the bytes to be damaged");
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  writeFileSync(path, bytes);
}

const fileOf = (rig: DiskRig, folder: string, n = 0): string =>
  readdirSync(join(rig.root, folder), { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .map((one) => join(one.parentPath, one.name))
    .toSorted()[n] ?? "";

/** Lets time pass until the scrubber has ended a pass. */
async function pass(rig: DiskRig, clock: ManualClock): Promise<void> {
  const before = rig.store.upkeep.figures().scrub.endedAtMs;
  await until("the pass has ended", async () => {
    await clock.advance(1_000);
    return rig.store.upkeep.figures().scrub.endedAtMs > before;
  });
}

test("the scrubber drops what is damaged on the disk, blobs and names, and nothing else", async (t) => {
  const clock = new ManualClock(10 * dayMs);
  const rig = await diskRig({ clock, scrub: { everyMs: 60_000, rate: 1024 * 1024 } });
  t.after(() => rig.dispose());
  const { blobs } = rig.store.forTenant("mill");
  const small = await put(blobs, "a needle in the stack");
  const right = await put(blobs, "another straw");
  const large = await put(blobs, "flour ".repeat(50_000));
  const whole = await put(blobs, "grain ".repeat(50_000));
  const key = { tenant: "mill", space: "ac", name: "act-with-a-thread" };
  await rig.store.index.put(key, { digest: right, principal: "p", atMs: 1 });
  await pass(rig, clock);
  const first = rig.store.upkeep.figures();
  deepEqual([first.scrub.wrong, first.scrub.blobs, first.damagedBlobs], [0, 5, 0]);
  flip(fileOf(rig, "log"), "needle");
  flip(fileOf(rig, "log"), "thread");
  const path = [0, 1].map((n) => fileOf(rig, "files", n)).find((one) => readFileSync(one).includes("flour")) ?? "";
  flip(path, " flour");
  await clock.advance(60_000);
  await pass(rig, clock);
  const second = rig.store.upkeep.figures();
  deepEqual([second.scrub.wrong, second.damagedBlobs], [2, 3], "and the name");
  deepEqual(await blobs.missing([small, right, large, whole]), [small, large]);
  equal((await rig.store.upkeep.stat()).entries, 0);
  ok((await rig.store.upkeep.stat()).scrubbedAtMs);
});

test("the scrubber keeps to its rate, and continues where it was after a restart", async (t) => {
  const clock = new ManualClock(10 * dayMs);
  const rig = await diskRig({ clock, scrub: { everyMs: dayMs, rate: 100_000 } });
  t.after(() => rig.dispose());
  const blobs = () => rig.store.forTenant("mill").blobs;
  for (let i = 0; i < 10; i += 1) await put(blobs(), `${i} `.repeat(50_000));
  await until("it has begun", async () => {
    await clock.advance(1_000);
    return rig.store.upkeep.figures().scrub.bytes > 200_000;
  });
  const { scrub } = rig.store.upkeep.figures();
  ok(scrub.position > 0 && scrub.position < 10, `at ${scrub.position}`);
  ok(clock.wallMs() - scrub.beganAtMs >= (scrub.bytes - 100_000) / 100, "no faster than its rate");
  await rig.reopen();
  deepEqual(rig.store.upkeep.figures().scrub.beganAtMs, scrub.beganAtMs, "the same pass");
  ok(rig.store.upkeep.figures().scrub.position >= scrub.position);
  await pass(rig, clock);
  deepEqual(rig.store.upkeep.figures().scrub.blobs, 10);
  await rig.store.close();
  writeFileSync(join(rig.root, "scrub"), "rubbish");
  await rig.reopen();
  equal(rig.store.upkeep.figures().scrub.endedAtMs, 0, "a damaged position begins anew");
  equal((await text(blobs().read(await put(blobs(), "x")))).length, 1);
});
