import { equal, ok } from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import type { ExecutorClient, Granted } from "#shard/client/executor.ts";
import { endingOf } from "#worker/attempt.ts";
import { Holding } from "#worker/holding.ts";
import { BoundedOutput } from "#worker/printed/output.ts";
import type { ProcessRequest } from "#worker/process.ts";
import { kinds } from "./plan.ts";
import { shellRunners } from "./run.ts";
import { grantedTask } from "#worker/testing/granted.ts";

const granted = (effects: Granted["effects"]): Granted => {
  const spec = JSON.stringify({ do: "command", run: ["true"], env: {} });
  return grantedTask({ door: "shell", kind: kinds.command, spec, effects });
};

async function askedFor(effects: Granted["effects"], clock: ManualClock, holding: Holding): Promise<ProcessRequest> {
  let asked: ProcessRequest | undefined;
  const runners = shellRunners({
    scratch: async () => ({ path: "/", [Symbol.asyncDispose]: async () => {} }),
    processes: async (request) => {
      asked = request;
      return { exitCode: 1, killedBy: undefined, output: new BoundedOutput(1_000) };
    },
    env: {},
    printedBytesMax: 1_000_000,
  });
  const client: Partial<ExecutorClient> = {
    start: async () => ({ leaseMs: 10_000 }),
    report: async () => {},
  };
  await endingOf(holding, {
    client: client as ExecutorClient,
    blobs: createMemoryBlobs({ clock, sizeBytesMax: 1_000 }),
    clock,
    runners,
    planners: {},
    log: () => {},
    stopMsMax: 1_000,
    tellMsMax: 1_000,
    signal: new AbortController().signal,
  });
  ok(asked, effects);
  return asked;
}

test("a command with outside effects is run for as long as its claim is good, one without for a lease", async () => {
  const clock = new ManualClock();
  using outside = new Holding(granted("outside"), "e", clock, clock.monotonicMs());
  const asked = await askedFor("outside", clock, outside);
  await clock.advance(1_000);
  equal(asked.leases?.leftMs?.(), outside.leftMs);
  const leftMs = outside.leftMs;
  outside.renewed(clock.monotonicMs(), 10_000);
  equal(asked.leases?.leftMs?.(), leftMs + 1_000);
  equal(asked.leases?.orphanMs, 0);
  using pure = new Holding(granted("pure"), "e", clock, clock.monotonicMs());
  const other = await askedFor("pure", clock, pure);
  equal(other.leases?.leftMs, undefined);
  equal(other.leases?.orphanMs, 10_000);
});
