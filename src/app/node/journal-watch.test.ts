import { deepEqual } from "node:assert/strict";
import { test } from "node:test";
import { Fault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { watchJournal } from "./journal-watch.ts";

test("a change of the journal store's guarantees is logged once", async () => {
  const clock = new ManualClock();
  let notes: readonly string[] | undefined = ["fsync=on", "commits wait for a standby"];
  const describe = async () => {
    if (!notes) throw new Fault("unavailable", "describe server");
    return { kind: "postgres", durable: true, notes };
  };
  const lines: string[] = [];
  const watch = watchJournal({ describe }, { clock, log: (line) => lines.push(line) });
  await clock.advance(60_000);
  deepEqual(lines, []);
  notes = undefined; // a fail-over
  await clock.advance(30_000);
  notes = ["fsync=on", "WARNING: none of them synchronous"];
  await clock.advance(60_000);
  deepEqual(lines, ["the journal's store has changed: WARNING: none of them synchronous"]);
  notes = ["fsync=on", "commits wait for a standby"];
  await clock.advance(10_000);
  deepEqual(lines.slice(1), ["the journal's store has changed: commits wait for a standby"]);
  watch[Symbol.dispose]();
  notes = ["nobody hears this"];
  await clock.advance(60_000);
  deepEqual(lines.length, 2);
});
