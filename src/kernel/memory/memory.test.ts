import { deepEqual, equal, match, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import type { Command, Submit } from "#kernel/model/command.ts";
import { defaultLimits, type Limits } from "#kernel/model/limits.ts";
import { Memory } from "./memory.ts";
import type { Grant } from "#kernel/model/model.ts";
import type { Rejection } from "#kernel/model/rejection.ts";
import { createState, type State } from "#kernel/model/state.ts";
import { step, type Outcome } from "#kernel/step.ts";
import { checkState } from "#kernel/testing/check.ts";
import { plainTemplate } from "#kernel/testing/template.ts";

const template = plainTemplate;

const stage = { name: "a", needs: [], after: "success", failFast: false, mayFail: false, parallelMax: 0 } as const;

function jobOf(tasks: number, specLength: number, more: Partial<Submit> = {}): Submit {
  const plans = Array.from({ length: tasks }, (_, i) => ({ key: `t${i}`, spec: "s".repeat(specLength) }));
  return {
    kind: "submit",
    tenant: "acme",
    door: "d",
    name: "",
    payloadHash: "",
    priority: 0,
    spec: "",
    stages: [{ ...stage, tasks: { template, tasks: plans } }],
    deadlineMs: 3_600_000,
    ...more,
  };
}

class Bench {
  readonly state: State;
  nowMs = 1;

  constructor(limits: Partial<Limits> = {}) {
    this.state = createState(0, { ...defaultLimits, sleepMs: Number.POSITIVE_INFINITY, ...limits });
  }

  do(command: Command): Outcome {
    this.nowMs += 1;
    const outcome = step(this.state, command, this.nowMs);
    deepEqual(checkState(this.state), []);
    return outcome;
  }

  why(command: Command): Rejection | undefined {
    const outcome = this.do(command);
    return outcome.ok ? undefined : outcome.rejection;
  }

  /** Submits until the shard refuses; returns how many jobs it accepted. */
  fill(make: () => Submit): number {
    for (let taken = 0; ; taken += 1) if (!step(this.state, make(), ++this.nowMs).ok) return taken;
  }

  claim(): Grant {
    const reserve = { kind: "reserve", executor: "ada", offers: [], prefer: [], count: 1, start: true } as const;
    const outcome = this.do({ ...reserve, nonce: String(this.nowMs) });
    ok(outcome.ok);
    return (outcome.reply as { grants: readonly Grant[] }).grants[0]!;
  }

  commit(payloadLength: number): Outcome {
    const { task, token } = this.claim();
    const result = { payload: "p".repeat(payloadLength), digests: [] };
    return this.do({ kind: "commit", executor: "ada", task, token, result, evidence: { digests: [], pinnedForMs: 0 } });
  }
}

const KiB = 1024;

describe("memory is shared fairly", () => {
  test("a tenant may hold at most what is left for all others, so that the next one finds free memory", () => {
    const bench = new Bench({ stateBytesMax: 400 * KiB });
    const counts = ["a", "b", "c", "d"].map((tenant) => bench.fill(() => jobOf(1, 2 * KiB, { tenant })));
    ok(
      counts.every((count, i) => count > 0 && (i === 0 || count < counts[i - 1]!)),
      String(counts),
    );
    const why = bench.why(jobOf(1, 2 * KiB, { tenant: "a" }));
    deepEqual(why, { kind: "shard-full", what: "memory for tenant a", retryAfterMs: 1_000 });
    ok(bench.state.bytes < 400 * KiB);
  });

  test("shards that share a memory are counted together, and freed memory no longer counts", () => {
    const memory = new Memory(200 * KiB);
    const [one, two] = [new Bench(), new Bench()];
    for (const { state } of [one, two]) state.shareMemory(memory);
    ok(one.fill(() => jobOf(1, 2 * KiB)) > 0);
    equal(two.why(jobOf(1, 2 * KiB))?.kind, "shard-full");
    equal(two.why(jobOf(1, 2 * KiB, { tenant: "other" })), undefined);
    equal(memory.bytes, one.state.bytes + two.state.bytes);
    one.state.shareMemory(new Memory(1));
    equal(memory.bytes, two.state.bytes);
    equal(memory.heldBy("acme"), 0);
    equal(two.why(jobOf(1, 2 * KiB)), undefined);
  });

  test("a job larger than one job may be is refused for good, not for later", () => {
    const why = new Bench({ stateBytesMax: 400 * KiB }).why(jobOf(60, 2 * KiB));
    ok(why?.kind === "limit" && why.what === "memory of a job" && why.limit === 100 * KiB && why.got > 120 * KiB);
  });

  test("a repeated request is answered although memory is full (K1)", () => {
    const bench = new Bench({ stateBytesMax: 200 * KiB });
    const first = jobOf(1, 2 * KiB, { requestKey: "r", mergeKey: "m" });
    bench.do(first);
    bench.fill(() => jobOf(1, 2 * KiB));
    deepEqual((bench.do(first) as { reply?: unknown }).reply, { job: 1, created: false, merged: false });
  });

  test("tenantBytesMax bounds a tenant below its share", () => {
    const bench = new Bench({ tenantBytesMax: 10 * KiB });
    equal(
      bench.fill(() => jobOf(1, 2 * KiB)),
      3,
    );
    equal(bench.why(jobOf(1, 2 * KiB, { tenant: "other" })), undefined);
  });

  test("signals and subscribers are refused like new work", () => {
    const bench = new Bench({ stateBytesMax: 200 * KiB });
    bench.do(jobOf(1, 10, { mergeKey: "m", subscriber: "first" }));
    bench.fill(() => jobOf(1, 1_000));
    const signal = { id: "i", name: "go", payload: "p".repeat(4 * KiB) };
    equal(bench.why({ kind: "signal", job: 1, stage: 0, signal })?.kind, "shard-full");
    let joined = 0;
    const joins = (): Submit => jobOf(1, 10, { mergeKey: "m", subscriber: `${(joined += 1)}`.padEnd(250, "x") });
    ok(bench.fill(joins) < 20);
    equal(bench.why(joins())?.kind, "shard-full");
  });
});

describe("accepted work goes on when memory is full", () => {
  test("results may exceed the limit for new work, and small results are always accepted", () => {
    const bench = new Bench({ stateBytesMax: 400 * KiB });
    bench.fill(() => jobOf(1, 2 * KiB));
    const taken = bench.commit(8 * KiB);
    ok(taken.ok && (taken.reply as { committed: boolean }).committed);
    for (let refused = false; !refused;) refused = !bench.commit(30 * KiB).ok;
    bench.state.memory.bytes += 400 * KiB; // used by a shard that was just taken over
    ok(!bench.commit(2 * KiB).ok);
    const small = bench.commit(500);
    ok(small.ok && (small.reply as { committed: boolean }).committed);
  });

  test("a job whose results need more memory than one job may use fails, and says why", () => {
    const bench = new Bench({ stateBytesMax: 400 * KiB });
    bench.do(jobOf(100, 10));
    let outcome = bench.commit(30 * KiB);
    while (outcome.ok && (outcome.reply as { committed: boolean }).committed) outcome = bench.commit(30 * KiB);
    ok(outcome.ok);
    const job = bench.state.job(1);
    equal(job.phase, "FAILED");
    match(job.reason, /more memory than one job may use/);
    bench.do({ kind: "forget", jobs: [1] });
    equal(bench.state.tenant("acme").bytes, 0);
  });

  test("steps and executors are refused at the hard limit", () => {
    const bench = new Bench({ stateBytesMax: 100 * KiB, executorsAlways: 2 });
    bench.do(jobOf(1, 10));
    const { task, token } = bench.claim();
    bench.state.memory.bytes += 150 * KiB; // used by another shard
    const steps = [{ step: 1, name: "one", status: "started" as const }];
    const reserve = { kind: "reserve", offers: [], prefer: [], count: 1, start: true, nonce: "n" } as const;
    const why = (command: Command): Rejection | undefined => {
      const outcome = step(bench.state, command, bench.nowMs);
      return outcome.ok ? undefined : outcome.rejection;
    };
    equal(why({ kind: "report", executor: "ada", task, token, steps })?.kind, "shard-full");
    equal(why({ ...reserve, executor: "second" }), undefined);
    deepEqual(why({ ...reserve, executor: "new" }), { kind: "shard-full", what: "memory", retryAfterMs: 1_000 });
    equal(why({ ...reserve, executor: "ada" }), undefined);
  });
});

describe("limits that hold without any setting", () => {
  test("a tenant is forgotten with its last job, unless something was set for it", () => {
    const bench = new Bench({ tenantsMax: 2 });
    bench.do({ kind: "set-tenant", tenant: "set", weight: 2, runningMax: 0, queuedMax: 0, home: 0 });
    for (let i = 1; i <= 20; i += 1) {
      equal(bench.why(jobOf(1, 10, { tenant: `t${i}` })), undefined);
      equal(bench.why(jobOf(1, 10, { tenant: "too-many" }))?.kind, "shard-full");
      bench.do({ kind: "cancel", job: i, reason: "" });
      bench.do({ kind: "forget", jobs: [i] });
    }
    deepEqual([...bench.state.tenants.keys()], ["set"]);
    equal(bench.state.memory.tenants, 1);
  });

  test("a tenant has a default queue limit, and its own setting replaces it", () => {
    const bench = new Bench({ queuedMax: 2 });
    const full = { kind: "queue-full", tenant: "acme", queuedMax: 2, retryAfterMs: 1_000 };
    deepEqual(bench.why(jobOf(3, 0)), full);
    equal(bench.why(jobOf(2, 0)), undefined);
    deepEqual(bench.why(jobOf(1, 0)), full);
    const set = { kind: "set-tenant", tenant: "acme", weight: 2, runningMax: 0, home: 0 } as const;
    bench.do({ ...set, queuedMax: 0 });
    deepEqual(bench.why(jobOf(1, 0)), full);
    bench.do({ ...set, queuedMax: 3 });
    equal(bench.why(jobOf(1, 0)), undefined);
    equal(new Bench({ queuedMax: 0 }).why(jobOf(1_000, 0)), undefined);
  });

  test("a failure's message is cut, a reason given by a caller is refused when it is too long", () => {
    const bench = new Bench();
    bench.do(jobOf(1, 0));
    const { task, token } = bench.claim();
    const failed = { kind: "fail", executor: "ada", task, token, reason: "user-failure" } as const;
    bench.do({ ...failed, message: "m".repeat(50 * KiB) });
    const message = bench.state.task(task).last?.message ?? "";
    equal(message.length, 4 * KiB);
    ok(message.endsWith("m..."));
    equal(bench.why({ kind: "cancel", job: 1, reason: "r".repeat(4 * KiB + 1) })?.kind, "limit");
  });

  test("labels and hints are bounded one by one and in total", () => {
    const bench = new Bench();
    const reserve = { kind: "reserve", executor: "ada", count: 1, start: true, nonce: "n" } as const;
    const labels = Array.from({ length: 20 }, (_, i) => `${String(i).padStart(2, "0")}${"l".repeat(250)}`);
    equal(bench.why({ ...reserve, offers: labels, prefer: [] })?.kind, "limit");
    equal(bench.why({ ...reserve, offers: [], prefer: labels })?.kind, "limit");
    equal(bench.why({ ...reserve, offers: [], prefer: ["p".repeat(1_000_000)] })?.kind, "limit");
    equal(bench.why({ ...reserve, offers: labels.slice(0, 16), prefer: labels.slice(0, 16) }), undefined);
  });

  test("request keys leave memory by their bytes too; the journal still has them", () => {
    const bench = new Bench({ keyBytesInMemoryMax: 2 * KiB });
    for (let i = 0; i < 10; i += 1) bench.do(jobOf(1, 0, { requestKey: `${i}`.padEnd(250, "k") }));
    bench.do({ kind: "tick" });
    ok(bench.state.keys.size < 5 && bench.state.keyBytes <= 2 * KiB);
    ok(bench.state.keysElsewhereUntilMs > bench.nowMs);
  });
});

test("a caller's text that looks like a reference to the store is refused, the host's own is not", () => {
  const bench = new Bench();
  const reference = `@blob:${"a".repeat(64)}/100000`;
  const [first] = jobOf(1, 0).stages;
  const tasks = { template, tasks: [{ key: "t", spec: reference }] };
  const wrong = [jobOf(1, 0, { spec: reference }), jobOf(1, 0, { stages: [{ ...first!, tasks }] })];
  for (const submit of wrong) {
    const why = bench.why(submit);
    ok(why?.kind === "invalid" && /must not begin with @blob:/.test(why.why));
    equal(bench.why({ ...submit, textsKept: true }), undefined);
  }
  // The referenced text is on disk, but still counts for a part.
  ok(bench.state.job(1).bytes > 100_000 / 16);
  const signal = { id: "i", name: "n", payload: reference };
  equal(bench.why({ kind: "signal", job: 1, stage: 0, signal })?.kind, "invalid");
  equal(bench.why({ kind: "signal", job: 1, stage: 0, signal, textsKept: true }), undefined);
});
