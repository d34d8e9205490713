import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { must } from "#base/assert.ts";
import { Fault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import type { History } from "#journal/journal.ts";
import { defaultRetentionSettings, HistoryRetention, type RetentionSettings } from "./retention.ts";
import { commit, Rig, submit, type TestNode } from "#shard/testing/host.ts";

const day = 86_400_000;
const aheadMs = 365 * day;

/** A history with this many old jobs in each shard, and the calls made to it. */
function scene(old: readonly number[], settings: Partial<RetentionSettings>) {
  const clock = new ManualClock();
  const left = [...old];
  const served = new Set(old.keys());
  const calls: string[] = [];
  const reports: string[] = [];
  let sizeMax = Number.POSITIVE_INFINITY;
  const trim: History["trim"] = async (shard, endedBeforeMs, limit) => {
    calls.push(`${shard}:${limit}`);
    const lateMs = clock.wallMs() + aheadMs - 90 * day - endedBeforeMs;
    ok(lateMs >= 0 && lateMs < 60_000, "by the store's clock");
    if (limit > sizeMax) throw new Fault("unavailable", "trim history");
    const gone = Math.min(left[shard] ?? 0, limit);
    left[shard] = (left[shard] ?? 0) - gone;
    return gone;
  };
  const retention = new HistoryRetention({
    clock,
    journal: { history: { trim } as History },
    settings: { ...defaultRetentionSettings, keepMs: 90 * day, everyMs: 60_000, pauseMs: 100, ...settings },
    storeNowMs: () => clock.wallMs() + aheadMs,
    shards: () => [...served],
    report: (doing) => reports.push(doing),
  });
  retention.start();
  return { clock, left, served, calls, reports, retention, swallows: (jobs: number) => (sizeMax = jobs) };
}

describe("history that has been kept long enough", () => {
  test("is deleted a slice at a time, shard after shard, periodically", async () => {
    const { clock, left, calls, retention } = scene([25, 0, 10], { jobsPerSlice: 10 });
    await clock.advance(59_999);
    deepEqual(calls, []);
    await clock.advance(1);
    deepEqual(calls, ["0:10"], "the next one after a pause");
    await clock.advance(1_000);
    deepEqual(calls, ["0:10", "0:10", "0:10", "1:10", "2:10", "2:10"]);
    deepEqual(left, [0, 0, 0]);
    left[1] = 1;
    await clock.advance(60_000);
    deepEqual([left[1], calls.length], [0, 9]);
    retention.kill();
    equal(clock.pending, 0);
  });

  test("is left to the next owner when the shard has moved, and stays when the node has stopped", async () => {
    const { clock, left, served, retention } = scene([100, 100], { jobsPerSlice: 10 });
    await clock.advance(60_150);
    served.delete(0);
    await clock.advance(250);
    deepEqual(left, [80, 70]);
    retention.kill();
    equal(clock.pending, 0);
    await clock.advance(600_000);
    deepEqual(left, [80, 70]);
  });

  test("is deleted in smaller slices when the store fails on a large one", async () => {
    const { clock, left, calls, reports, swallows } = scene([6], { jobsPerSlice: 8 });
    swallows(3);
    await clock.advance(60_000 * 4);
    deepEqual(calls.slice(0, 3), ["0:8", "0:4", "0:2"]);
    ok(reports.length >= 2);
    await clock.advance(60_000 * 20);
    equal(left[0], 0);
  });

  test("stays for ever by default", () => {
    equal(defaultRetentionSettings.keepMs, undefined);
    equal(scene([1], { keepMs: undefined }).clock.pending, 0);
  });

  test("is deleted from a node's store when configured, and newer history stays", async () => {
    const rig = new Rig();
    const retention = { keepMs: 20_000, everyMs: 2_000 };
    const a = await (await rig.node("a", { retention })).serving();
    const old = await finishOne(a);
    await rig.clock.advance(12_000);
    const young = await finishOne(a);
    const { history } = rig.store.connect();
    await rig.clock.advance(6_000);
    ok((await history.job(0, old)) && (await history.job(0, young)));
    await rig.clock.advance(5_000);
    equal(await history.job(0, old), undefined);
    ok(await history.job(0, young));
    deepEqual(rig.reports, []);
    a.node.kill();
    equal(rig.clock.pending, 0);
  });
});

async function finishOne(node: TestNode): Promise<number> {
  const { job } = await node.reply<{ job: number }>(submit());
  await node.reply(commit(must((await node.grants())[0], "grant")));
  return job;
}
