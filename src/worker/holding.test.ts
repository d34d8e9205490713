import { equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { bootClock } from "#base/boot-clock.ts";
import type { Clock } from "#base/clock.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { ManualMachine } from "#base/testing/manual-machine.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import type { ExecutorClient, Granted } from "#shard/client/executor.ts";
import { KernelClock, StoreClock } from "#shard/host/kernel-clock.ts";
import { endingOf, type AttemptPorts } from "./attempt.ts";
import { Holding } from "./holding.ts";
import { Renewals } from "./renewal.ts";
import { grantedTask } from "./testing/granted.ts";

const granted = (more: Partial<Granted>): Granted =>
  grantedTask({ attemptMs: 36_000_000, effects: "outside", ...more });

function portsOf(
  clock: Clock,
  run: (signal: AbortSignal) => Promise<void>,
  beforeAnswer = () => Promise.resolve(),
): AttemptPorts {
  const client: Partial<ExecutorClient> = {
    start: async () => {
      await beforeAnswer();
      return { leaseMs: 30_000 };
    },
  };
  return {
    client: client as ExecutorClient,
    blobs: createMemoryBlobs({ clock, sizeBytesMax: 1_000 }),
    clock,
    runners: {
      k: async ({ signal }) => {
        await run(signal);
        return { kind: "failed", reason: "user-failure", message: "enough" };
      },
    },
    planners: {},
    log: () => {},
    stopMsMax: 1_000,
    tellMsMax: 1_000,
    signal: new AbortController().signal,
  };
}

describe("W1: an attempt with outside effects", () => {
  // The lease is never renewed: its owner cannot be reached.
  for (const leaseMs of [100, 2_000, 10_000, 30_000, 600_000])
    test(`is stopped before a shard whose time runs fast ends its lease of ${leaseMs} ms`, async () => {
      const clock = new ManualClock();
      const store = new StoreClock(clock);
      const kernel = new KernelClock(clock, store, 0);
      // The store's clock jumped ahead: kernel time catches up as fast as it may.
      store.observe(clock.wallMs() + 86_400_000, clock.monotonicMs());
      const expiresAtMs = kernel.nowMs() + leaseMs;
      const holding = new Holding(granted({ leaseMs }), "e", clock, clock.monotonicMs());
      await clock.advance(holding.leftMs);
      equal(holding.stopped, "lease-ran-out");
      // Killing takes time, and clocks of two machines drift.
      const leftMs = expiresAtMs - kernel.nowMs();
      const neededMs = Math.min(500, leaseMs / 40);
      ok(leftMs >= neededMs, `stopped ${leftMs} ms before its lease ended at the owner, not ${neededMs}`);
    });
});

test("W1: an attempt without outside effects continues through its grace", async () => {
  const clock = new ManualClock();
  const holding = new Holding(granted({ effects: "pure", graceMs: 60_000 }), "e", clock, clock.monotonicMs());
  await clock.advance(69_999);
  equal(holding.stopped, undefined);
  await clock.advance(1);
  equal(holding.stopped, "lease-ran-out");
});

describe("when the machine sleeps past the lease", () => {
  test("W1: an attempt with outside effects is stopped when the machine wakes", async () => {
    const machine = new ManualMachine();
    const holding = new Holding(granted({}), "e", bootClock(machine), machine.awakeMs());
    await machine.awake.advance(1_000);
    machine.sleptMs += 600_000;
    ok(holding.leftMs < 0, "known at once");
    await machine.awake.advance(100);
    equal(holding.stopped, "lease-ran-out");
  });

  test("one without continues, and has the rest of lease and grace to hear from its shard", async () => {
    const machine = new ManualMachine();
    const pure = granted({ effects: "pure", graceMs: 60_000 });
    const holding = new Holding(pure, "e", bootClock(machine), machine.awakeMs());
    await machine.awake.advance(1_000);
    machine.sleptMs += 600_000;
    await machine.awake.advance(68_000);
    equal(holding.stopped, undefined);
    await machine.awake.advance(1_000);
    equal(holding.stopped, "lease-ran-out");
  });

  test("time asleep does not count as the attempt's time", async () => {
    const machine = new ManualMachine();
    const clock = bootClock(machine);
    const pure = granted({ effects: "pure", graceMs: 60_000, attemptMs: 30_000 });
    const holding = new Holding(pure, "e", clock, clock.monotonicMs());
    const ending = endingOf(
      holding,
      portsOf(clock, (signal) => clock.sleep(3_600_000, signal)),
    );
    await machine.awake.advance(10_000);
    machine.sleptMs += 600_000;
    await machine.awake.advance(19_000);
    equal(holding.stopped, undefined);
    await machine.awake.advance(1_000);
    equal(holding.stopped, "timed-out");
    await ending;
    holding[Symbol.dispose]();
  });
});

describe("a lease counts from the request, not from the answer", () => {
  const answerMs = 3_000;
  /** How much shorter a lease is for a request sent so long ago. */
  const early = (leftMs: number, leaseMs: number): number =>
    new Holding(granted({ leaseMs }), "e", new ManualClock(), new ManualClock().monotonicMs()).leftMs - leftMs;

  test("when it is renewed", async () => {
    const clock = new ManualClock();
    const stop = new AbortController();
    const client = {
      renew: async (_shard: number, _executor: string, claims: readonly { taskId: string; token: number }[]) => {
        await clock.sleep(answerMs);
        const held = claims.map((claim) => ({
          ...claim,
          task: 1,
          leaseMs: 30_000,
          started: true,
          cancelling: false,
        }));
        return { held, lost: [] };
      },
      release: async () => true,
      fail: async () => {},
    };
    const renewals = new Renewals(
      { clock, executor: "e", isReserving: () => false, log: () => {}, client },
      stop.signal,
    );
    const holding = new Holding(granted({ leaseMs: 30_000 }), "e", clock, clock.monotonicMs());
    renewals.add(holding);
    await clock.advance(10_000 + answerMs);
    equal(early(holding.leftMs, 30_000), answerMs);
    renewals.remove(holding);
    stop.abort();
  });

  test("when it is started", async () => {
    const clock = new ManualClock();
    // Spare claims wait before they are started, so this lease has nearly expired.
    const holding = new Holding(granted({ leaseMs: 30_000 }), "e", clock, clock.monotonicMs() - 20_000);
    let leftMs = 0;
    const ports = portsOf(
      clock,
      async () => void (leftMs = holding.leftMs),
      () => clock.sleep(answerMs),
    );
    const ending = endingOf(holding, ports);
    await clock.advance(answerMs);
    await ending;
    equal(early(leftMs, 30_000), answerMs);
    holding[Symbol.dispose]();
  });
});
