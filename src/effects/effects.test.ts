import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { memoryRecords } from "#records/memory.ts";
import { watchedRecords } from "#records/watch.ts";
import { Effects } from "./effects.ts";
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
  return { effects, live };
}

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

  test("tenants have ledgers of their own", async () => {
    const { effects } = ledger();
    await effects.change("acme", "pay", { kind: "begin", holder: by(1) });
    equal((await effects.change("globex", "pay", { kind: "begin", holder: by(1) })).kind, "go");
    equal((await effects.list({ tenant: "acme", limit: 10 })).records.length, 1);
  });
});
