import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import type { Granted } from "#shard/client/executor.ts";
import { Holding } from "./holding.ts";
import { Renewals } from "./renewal.ts";
import { grantedTask } from "./testing/granted.ts";

const granted = (task: number, leaseMs: number): Granted =>
  grantedTask({ task, token: task, leaseMs, taskId: `t0-${task}` });

test("a claim with a short lease is renewed in time, although one with a long lease came first", async () => {
  const clock = new ManualClock();
  const asked: { readonly atMs: number; readonly tasks: readonly string[] }[] = [];
  const stop = new AbortController();
  const renewals = new Renewals(
    {
      clock,
      executor: "e",
      isReserving: () => false,
      log: () => {},
      client: {
        renew: async (_shard, _executor, claims) => {
          asked.push({ atMs: clock.monotonicMs(), tasks: claims.map(({ taskId }) => taskId) });
          const held = claims.map(({ taskId, token }) => ({
            task: token,
            taskId,
            token,
            leaseMs: token === 1 ? 3_600_000 : 3_000,
            started: true,
            cancelling: false,
          }));
          return { held, lost: [] };
        },
        release: async () => true,
        fail: async () => {},
      },
    },
    stop.signal,
  );
  const startMs = clock.monotonicMs();
  const long = new Holding(granted(1, 3_600_000), "e", clock, startMs);
  const short = new Holding(granted(2, 3_000), "e", clock, startMs + 500);
  renewals.add(long);
  await clock.advance(500);
  renewals.add(short);
  for (let i = 0; i < 30; i += 1) await clock.advance(100);
  deepEqual(
    asked.slice(0, 2).map(({ atMs, tasks }) => ({ afterMs: Math.round(atMs - startMs - 500), tasks })),
    [
      { afterMs: 1_000, tasks: ["t0-1", "t0-2"] },
      { afterMs: 2_000, tasks: ["t0-1", "t0-2"] },
    ],
  );
  equal(short.stopped, undefined);
  renewals.remove(short);
  renewals.remove(long);
  stop.abort();
});
