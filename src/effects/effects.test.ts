import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { memoryRecords } from "#records/memory.ts";
import { watchedRecords } from "#records/watch.ts";
import { Effects } from "./effects.ts";
import { EffectsKeeper } from "./keeper.ts";
import type { Holder } from "./ledger.ts";

const by = (token: number, task = "t"): Holder => ({ job: "j", task, token });

function ledger() {
  const clock = new ManualClock();
  const live = new Set<string>();
  const records = watchedRecords(
    memoryRecords(() => clock.wallMs()),
    clock,
  );
  const effects = new Effects({ records, clock, isLive: async (_, { task, token }) => live.has(`${task} ${token}`) });
  return { effects, live, clock };
}

const dayMs = 24 * 3_600_000;

describe("effects as records", () => {
  test("of many that begin at once, one may go", async () => {
    const { effects, live } = ledger();
    const tasks = Array.from({ length: 8 }, (_, at) => `t${at}`);
    for (const task of tasks) live.add(`${task} 1`);
    const answers = await Promise.all(
      tasks.map((task) => effects.change("acme", "pay", { kind: "begin", holder: by(1, task) })),
    );
    deepEqual(answers.map(({ kind }) => kind).toSorted(), [...Array<string>(7).fill("busy"), "go"]);
  });

  test("a holder whose claim has ended leaves an unknown effect", async () => {
    const { effects, live } = ledger();
    live.add("a 1");
    await effects.change("acme", "pay", { kind: "begin", holder: by(1, "a") });
    equal((await effects.change("acme", "pay", { kind: "begin", holder: by(1, "b") })).kind, "busy");
    live.clear();
    equal((await effects.change("acme", "pay", { kind: "begin", holder: by(1, "b") })).kind, "unknown");
    equal((await effects.change("acme", "pay", { kind: "commit", holder: by(1, "a"), result: "" })).kind, "stale");
  });

  test("EF4 those of jobs go when nothing remembers the job, or could not say so", async () => {
    const { effects, clock } = ledger();
    for (const job of ["gone", "known", "doubted"])
      await effects.change("acme", `job/${job}/pay`, { kind: "begin", holder: by(1) });
    await effects.change("acme", "shared/pay", { kind: "begin", holder: by(1) });
    const asked: string[] = [];
    await using keeper = new EffectsKeeper({
      effects,
      isRemembered: async (tenant, job) => {
        asked.push(`${tenant} ${job}`);
        if (job === "doubted") throw new Error("the shard does not answer");
        return job === "known";
      },
      isMine: () => false, // it does nothing by itself
      clock,
      log: () => {},
    });
    equal(await keeper.sweep(), 0);
    equal(asked.length, 0, "all are too young");
    await clock.advance(2 * dayMs);
    await effects.change("globex", "job/gone/pay", { kind: "begin", holder: by(1) });
    equal(await keeper.sweep(), 1);
    deepEqual(
      [...new Set(asked)].toSorted((a, b) => (a < b ? -1 : 1)),
      ["acme doubted", "acme gone", "acme known"],
    );
    deepEqual(
      (await effects.list({ limit: 10 })).records.map(({ tenant, name }) => `${tenant} ${name}`),
      ["acme job/doubted/pay", "acme job/known/pay", "acme shared/pay", "globex job/gone/pay"],
    );
  });

  test("tenants have ledgers of their own", async () => {
    const { effects } = ledger();
    await effects.change("acme", "pay", { kind: "begin", holder: by(1) });
    equal((await effects.change("globex", "pay", { kind: "begin", holder: by(1) })).kind, "go");
    equal((await effects.list({ tenant: "acme", limit: 10 })).records.length, 1);
  });
});
