import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { describe, test } from "node:test";
import { must } from "#base/assert.ts";
import { isFault, type FaultCode } from "#base/fault.ts";
import { defaultLimits } from "#kernel/model/limits.ts";
import type { Grant } from "#kernel/model/model.ts";
import type { HistoryRows } from "#base/history-rows.ts";
import type { Epoch, History, Journal } from "#journal/journal.ts";
import { memoryHistory } from "#journal/memory/memory-history.ts";
import { featuresHere } from "#shard/features.ts";
import { commit, reserve, Rig, submit } from "#shard/testing/host.ts";
import { countRows } from "./projector-rows.ts";
import { rebuildHistory, type RebuildPorts, type RebuildProgress } from "./rebuild-history.ts";

const soon = {
  snapshots: { logBytesMin: 1_500, stateShare: 0, chunkSize: 500 },
  archiver: { segmentBytes: 1_500 },
  projector: { endedKeepMs: 1_000 },
};
const keys: Record<Exclude<keyof HistoryRows, "submissions">, readonly string[]> = {
  jobs: ["job"],
  stages: ["job", "stage"],
  tasks: ["task"],
  attempts: ["task", "token"],
  steps: ["task", "token", "step"],
};

/** Every row that was written, and the last version of each. */
class Tally {
  readonly rows = new Map<string, object>();
  readonly sizes: number[] = [];

  over(history: History): History {
    const record: History["record"] = async (shard, at, rows) => {
      await history.record(shard, at, rows);
      this.sizes.push(countRows(rows as Parameters<typeof countRows>[0]));
      for (const [table, key] of Object.entries(keys) as [keyof typeof keys, readonly string[]][])
        for (const row of rows[table])
          this.rows.set([table, ...key.map((name) => (row as Record<string, unknown>)[name])].join(" "), row);
    };
    return { ...history, record };
  }

  sorted(): unknown {
    return [...this.rows].toSorted(([a], [b]) => (a < b ? -1 : 1));
  }
}

/** A shard with a past: several owners, jobs that ended in every way, most of its log archived and trimmed. */
async function lived() {
  const rig = new Rig();
  const written = new Tally();
  const shared = rig.store.connect().history;
  Object.assign(shared, written.over({ ...shared }));
  for (let life = 0; life < 3; life += 1) {
    const a = await (await rig.node("a", soon)).serving();
    for (let round = 0; round < 4; round += 1) await work(a, rig);
    a.node.kill();
  }
  deepEqual(rig.reports, []);
  const journal = rig.store.connect();
  ok((await journal.segments(0)).length > 3);
  await rejects(Array.fromAsync(journal.read(0, 1)), (error) => isFault(error, "not-found"));
  const acquired = await journal.acquire(0, "a", { leaseMs: 60_000, features: featuresHere });
  if (acquired.kind !== "acquired") throw new Error(acquired.kind);
  const ports: RebuildPorts = {
    journal,
    blobs: rig.blobs,
    limits: defaultLimits,
    clock: { sleep: () => Promise.resolve() },
  };
  return { rig, journal, written, ports, epoch: acquired.epoch };
}

async function work(a: Awaited<ReturnType<Rig["node"]>>, rig: Rig): Promise<void> {
  const { job } = await a.reply<{ job: number }>(submit({ tasks: 4, name: `grüße ${rig.clock.wallMs()}` }));
  await a.reply(submit({ tasks: 2, spec: "x".repeat(8_000) }));
  // Use a new executor each time: one that let its claims expire may be drained.
  const executor = `e${rig.clock.wallMs()}`;
  const reserved = await a.reply<{ grants: readonly Grant[] }>(reserve({ executor, count: 4, nonce: executor }));
  const [first, second, third] = reserved.grants;
  await a.reply(commit(must(first, "grant"), { executor }));
  const { task, token } = must(second, "grant");
  const steps = [{ step: 1, name: "one", status: "started" }] as const;
  await a.reply({ kind: "report", executor, task, token, steps });
  const failed = must(third, "grant");
  await a.reply({
    kind: "fail",
    executor,
    task: failed.task,
    token: failed.token,
    reason: "user-failure",
    message: "no\nluck",
  });
  await a.reply({ kind: "cancel", job, reason: "enough" });
  await rig.clock.advance(2_500);
}

const pages = async ({ history }: Pick<Journal, "history">): Promise<unknown> => {
  const { jobs } = await history.jobs({ limit: 1_000 });
  ok(jobs.length > 10);
  return Promise.all(jobs.map(({ job }) => history.job(0, job)));
};

describe("the history of a shard", () => {
  test("is the same again after it was lost and rebuilt from the archive and the log", async () => {
    const { rig, journal, ports, epoch } = await lived();
    const before = await pages(journal);
    const cursor = await journal.history.cursor(0);
    await journal.history.trim(0, Number.POSITIVE_INFINITY, 1_000_000);
    equal((await journal.history.jobs({ limit: 10 })).jobs.length, 0);
    const told: RebuildProgress[] = [];
    const rebuilt = await rebuildHistory(ports, 0, epoch, { onProgress: (progress) => told.push(progress) });
    const { seq: tailSeq } = await journal.tail(0);
    deepEqual(await pages(journal), before);
    deepEqual([rebuilt.throughSeq, await journal.history.cursor(0)], [tailSeq, tailSeq]);
    ok(cursor <= tailSeq);
    deepEqual(told.at(-1), { shard: 0, doing: "writing", seq: tailSeq, tailSeq, rows: rebuilt.rows });
    await journal.release(0, epoch);

    const b = await (await rig.node("a", soon)).serving();
    await work(b, rig);
    deepEqual(rig.reports, [], "the next owner goes on from there");
    b.node.kill();
  });

  test("is rebuilt row for row, including unfinished jobs, in writes of limited size", async () => {
    const { journal, written, ports, epoch } = await lived();
    const anew = new Tally();
    const history = anew.over(memoryHistory(() => epoch));
    let turns = 0;
    const clock = { sleep: async () => void (turns += 1) };
    await rebuildHistory({ ...ports, clock, journal: { ...journal, history } }, 0, epoch, { rowsMax: 7 });
    deepEqual(anew.sorted(), written.sorted());
    ok(Math.max(...anew.sizes) <= 7);
    ok(turns > 0, "others get their turn");
  });

  test("stays unchanged when a segment is missing, corrupt, cut, or out of order", async () => {
    const { rig, journal, ports, epoch } = await lived();
    const segments = await journal.segments(0);
    const victim = must(segments[2], "segment");
    const before = [await journal.history.cursor(0), await pages(journal)];
    const bytes = Buffer.concat(await Array.fromAsync(rig.blobs.read(victim.digest)));
    const reading = (found: Buffer): RebuildPorts["blobs"] => ({
      read: (digest) => (digest === victim.digest ? only(found) : rig.blobs.read(digest)),
    });
    const flipped = Buffer.from(bytes);
    flipped[100] = (flipped[100] ?? 0) ^ 1;
    const { blobs: none } = new Rig();
    const missing = {
      read: (digest: string) => (digest === victim.digest ? none : rig.blobs).read(digest),
    };
    const stories: [FaultCode, Partial<RebuildPorts>][] = [
      ["not-found", { blobs: missing }],
      ["corrupt", { blobs: reading(flipped) }],
      ["corrupt", { blobs: reading(bytes.subarray(0, -1)) }],
      ["corrupt", { blobs: reading(Buffer.concat([bytes, bytes])) }],
      ["not-found", { journal: { ...journal, segments: async () => segments.toSpliced(1, 1) } }],
    ];
    for (const [code, damaged] of stories) {
      await rejects(rebuildHistory({ ...ports, ...damaged }, 0, epoch), (error) => {
        ok(isFault(error, code), String(error));
        equal(error.facts["digest"], victim.digest, error.message);
        return true;
      });
      deepEqual([await journal.history.cursor(0), await pages(journal)], before);
    }
  });

  test("is not changed by a node that no longer owns the shard", async () => {
    const { journal, ports, epoch } = await lived();
    const cursor = await journal.history.cursor(0);
    await journal.release(0, epoch);
    await rejects(rebuildHistory(ports, 0, epoch), (error) => isFault(error, "stale"));
    equal(await journal.history.cursor(0), cursor);
  });

  test("the rebuild stops when a late write of an earlier owner interferes", async () => {
    const { journal, ports, epoch } = await lived();
    const reset = async (shard: number, at: Epoch): Promise<void> => {
      await journal.history.reset(shard, at);
      await journal.history.record(
        0,
        { epoch, throughSeq: 9 },
        { jobs: [], stages: [], tasks: [], attempts: [], steps: [] },
      );
    };
    const late = { ...journal, history: { ...journal.history, reset } };
    await rejects(rebuildHistory({ ...ports, journal: late }, 0, epoch), (error) => isFault(error, "stale"));
  });

  test("of an unused shard is empty", async () => {
    const rig = new Rig();
    const journal = rig.store.connect();
    await journal.open({ shards: 1, clusterId: "test" });
    await journal.acquire(0, "a", { leaseMs: 1_000, features: featuresHere });
    const ports = { journal, blobs: rig.blobs, limits: defaultLimits, clock: rig.clock };
    deepEqual(await rebuildHistory(ports, 0, 1), { shard: 0, throughSeq: 0, rows: 0 });
  });
});

async function* only(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
