import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import type { Command, CommandKind } from "#kernel/model/command.ts";
import { defaultLimits } from "#kernel/model/limits.ts";
import type { Rejection, RejectionKind } from "#kernel/model/rejection.ts";
import { createState, type State } from "#kernel/model/state.ts";
import { step } from "#kernel/step.ts";
import { Transcript } from "#kernel/testing/transcript.ts";
import { digestOf } from "#kernel/testing/commands.ts";
import { checkState } from "#kernel/testing/check.ts";
import { factsOf } from "#kernel/testing/facts.ts";
import { lockOf, stagesOf, templateOf } from "#kernel/testing/parse.ts";

/** A state with one thing of each sort: running, planned, waiting, locked, ended. */
function busy(): Transcript {
  const t = new Transcript();
  for (const line of [
    "tenant acme running=100 queued=1000",
    "submit i key=k merge=m by=ann : a[x,y,z] b[?]<a",
    "submit j lock=l : c[?];lock=n",
    "submit k lock=l : d[w]",
    "submit h : e[v]",
    "reserve ada n=3 start",
    "commit ada x digests=d publish=known",
    "reserve bea n=9",
    "cancel h",
  ])
    t.say(line);
  return t;
}

/** One valid command of each kind, with every field that it can have. */
const valid: { readonly [K in CommandKind]: Extract<Command, { kind: K }> } = {
  submit: {
    kind: "submit",
    tenant: "acme",
    door: "front",
    name: "n",
    requestKey: "q",
    payloadHash: "h",
    mergeKey: "mm",
    joinOnly: false,
    tags: [{ name: "branch", value: "main" }],
    series: "ci",
    notify: [{ shard: 1, job: 2, stage: 0, name: "child" }],
    subscriber: "s",
    leaveGraceMs: 1,
    priority: 1,
    spec: "s",
    stages: stagesOf(["a[x,y@here];lock=p", "b[?]<a;end;on=gpu"]),
    deadlineMs: 1_000,
    lock: lockOf("r:1:1"),
    reuse: [{ stage: "a", key: "x", spec: "do-x", result: { payload: "p", digests: [digestOf("d")] } }],
    reuseEvidence: { digests: [digestOf("d")], pinnedForMs: 1 },
  },
  leave: { kind: "leave", job: 1, subscriber: "ann" },
  cancel: { kind: "cancel", job: 1, reason: "r", tenant: "acme" },
  signal: { kind: "signal", job: 1, stage: 1, signal: { id: "i", name: "n", payload: "p" }, tenant: "acme" },
  reserve: {
    kind: "reserve",
    executor: "cyd",
    offers: ["gpu"],
    prefer: ["here"],
    count: 2,
    start: true,
    nonce: "n",
    tenant: "acme",
  },
  start: { kind: "start", executor: "bea", task: 4, token: 4 },
  renew: { kind: "renew", executor: "ada", claims: [{ task: 2, token: 2 }] },
  report: { kind: "report", executor: "ada", task: 2, token: 2, steps: [{ step: 1, name: "s", status: "started" }] },
  commit: {
    kind: "commit",
    executor: "ada",
    task: 2,
    token: 2,
    result: { payload: "p", digests: [digestOf("e")], publish: "known" },
    evidence: { digests: [digestOf("e")], pinnedForMs: 5 },
  },
  "record-plan": {
    kind: "record-plan",
    executor: "bea",
    task: 4,
    token: 4,
    plan: { kind: "tasks", set: { template: templateOf(new Map()), tasks: [{ key: "k", spec: "s", affinity: "a" }] } },
  },
  fail: { kind: "fail", executor: "ada", task: 2, token: 2, reason: "preempted", message: "m" },
  checkpoint: {
    kind: "checkpoint",
    executor: "ada",
    task: 2,
    token: 2,
    checkpoint: { payload: "p", digests: [digestOf("d")] },
    evidence: { digests: [digestOf("d")], pinnedForMs: 1 },
  },
  release: { kind: "release", executor: "bea", task: 4, token: 4 },
  invalidate: { kind: "invalidate", task: 1, generation: 1, reason: "r" },
  drain: { kind: "drain", executor: "ada", reason: "r" },
  resume: { kind: "resume", executor: "ada" },
  "set-tenant": { kind: "set-tenant", tenant: "acme", weight: 2, runningMax: 50, queuedMax: 0, home: 0 },
  "lend-quota": { kind: "lend-quota", tenant: "acme", borrower: 1, want: 1, running: 0, forMs: 10 },
  "take-quota": { kind: "take-quota", tenant: "acme", slots: 1, forMs: 10 },
  published: { kind: "published", task: 1, generation: 1 },
  "record-manifest": {
    kind: "record-manifest",
    no: 1,
    digest: digestOf("d"),
    evidence: { digests: [], pinnedForMs: 0 },
  },
  notified: { kind: "notified", job: 1, notice: 0, outcome: "delivered" },
  forget: { kind: "forget", jobs: [4] },
  "take-over": { kind: "take-over", epoch: 7, node: "n" },
  tick: { kind: "tick" },
};

const kinds = Object.keys(valid) as CommandKind[];
const text = (state: State): string => factsOf(state).join("\n");

type Path = readonly (string | number)[];

/** Every path in a command where a value can be replaced. */
function pathsOf(value: unknown, path: Path = []): Path[] {
  if (typeof value !== "object" || value === null) return [path];
  const inner = Object.entries(value).flatMap(([name, each]) => pathsOf(each, [...path, name]));
  return path.length === 0 ? inner : [path, ...inner];
}

function withAt(value: unknown, path: Path, junk: unknown): unknown {
  const [first, ...rest] = path;
  if (first === undefined) return junk;
  const copy = (Array.isArray(value) ? [...(value as unknown[])] : { ...(value as object) }) as Record<string, unknown>;
  copy[first] = withAt(copy[first], rest, junk);
  return copy;
}

const junk = fc.oneof(
  fc.constantFrom<unknown>(
    undefined,
    null,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    -1,
    0,
    0.5,
    2 ** 53,
    -(2 ** 60),
    "",
    "\u0000",
    "length",
    "__proto__",
    "constructor",
    "map",
    true,
    false,
    [],
    {},
    [null],
    [[]],
    () => 1,
    Symbol("s"),
    10n,
    new Date(0),
    "x".repeat(300),
    "x".repeat(70_000),
    Array.from({ length: 2_000 }, () => "x"),
  ),
  fc.anything({ maxDepth: 1 }),
);

/** Whether a value survives the log unchanged: a field that is undefined is a field that is not there. */
const survives = (value: unknown): boolean => {
  try {
    deepEqual(JSON.parse(JSON.stringify(value)), defined(value));
    return true;
  } catch {
    return false;
  }
};

const defined = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(defined);
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  return Object.fromEntries(fields.map(([name, field]) => [name, defined(field)]));
};

describe("all input is hostile", () => {
  test("each valid command is accepted, so that the tests below test the junk and nothing else", () => {
    for (const kind of kinds) {
      const t = busy();
      const outcome = t.do(valid[kind]);
      ok(outcome.ok, `${kind}: ${JSON.stringify(outcome)}`);
      t.checkReplay();
    }
  });

  test("K12: one field of junk in any command is refused or harmless, never an exception, never a change", () => {
    let t = busy();
    let refused = 0;
    const cases = fc.constantFrom(...kinds).chain((kind) => {
      const paths = pathsOf(valid[kind]).filter((path) => path.length > 0);
      return fc.tuple(fc.constant(kind), fc.constantFrom(...paths), junk);
    });
    fc.assert(
      fc.property(cases, ([kind, path, value]) => {
        const command = withAt(valid[kind], path, value) as Command;
        const isKind = path[0] === "kind";
        const before = text(t.state);
        const outcome = step(t.state, command, t.nowMs);
        const wrong = checkState(t.state);
        deepEqual(wrong, []);
        if (outcome.ok) {
          ok(
            value === undefined || survives(outcome.events),
            `junk got into the log: ${kind} ${path.join(".")} ${String(value)}`,
          );
          t.events.push(...outcome.events);
          if (t.state.jobs.size < 10) return;
          t.checkReplay();
          t = busy();
          return;
        }
        refused += 1;
        if (outcome.events.length === 0) equal(text(t.state), before);
        ok(!isKind || outcome.rejection.kind === "invalid" || outcome.rejection.kind === "broken");
      }),
      { seed: 1, numRuns: 1_200 },
    );
    ok(refused > 250, `${refused} refused`);
  });

  test("K12: values that are not commands at all are refused", () => {
    const t = busy();
    const before = text(t.state);
    for (const thing of [undefined, null, 1, "submit", [], {}, { kind: 7 }, { kind: "nonsense" }, () => 1]) {
      const outcome = step(t.state, thing as never, t.nowMs);
      equal(outcome.ok, false, typeof thing);
      equal(text(t.state), before);
    }
    ok(t.do({ kind: "tick" }).ok);
  });

  test("K12: a command whose getters throw is refused as broken, the state is untouched, the next one works", () => {
    const t = busy();
    for (const kind of kinds) {
      for (const name of Object.keys(valid[kind])) {
        const command = Object.defineProperty({ ...valid[kind] }, name, {
          get: () => {
            throw new Error("poison");
          },
        });
        const before = text(t.state);
        const outcome = step(t.state, command, t.nowMs);
        deepEqual(
          outcome,
          { ok: false, changes: 0, events: [], rejection: { kind: "broken", why: "poison" } },
          `${kind}.${name}`,
        );
        equal(text(t.state), before);
      }
    }
    equal(t.say("commit ada y"), "committed generation=1; y SUCCEEDED");
  });

  test("K12: a getter that throws only when it is read a second time does no harm", () => {
    const t = busy();
    for (const kind of kinds.filter((each) => each !== "tick"))
      for (const name of Object.keys(valid[kind])) {
        for (let fuse = 1; fuse < 4; fuse += 1) {
          let looks = 0;
          const value = (valid[kind] as unknown as Record<string, unknown>)[name];
          const command = Object.defineProperty({ ...valid[kind] }, name, {
            get: () => {
              looks += 1;
              if (looks > fuse) throw new Error("poison");
              return value;
            },
          });
          step(t.state, command, t.nowMs);
          deepEqual(checkState(t.state), [], `${kind}.${name}`);
        }
      }
  });
});

describe("every kind of rejection can be provoked", () => {
  const seen = new Set<string>();
  const meet = (kind: RejectionKind, lines: string, limits = {}): void => {
    const t = new Transcript({ limits });
    let last = "";
    for (const line of lines.split("\n")) last = t.say(line);
    ok(last.startsWith(`REFUSED ${kind}`), `${kind}: ${last}`);
    seen.add(kind);
  };

  test("each with a short transcript", () => {
    meet("invalid", "submit j :");
    meet("limit", "submit j : a[x*3]", { tasksPerStageMax: 2 });
    meet("cycle", "submit j : a[x]<a");
    meet("job-unknown", "cancel 5");
    meet("stage-unknown", "submit j : a[x]\nsignal j 5 go");
    meet("task-unknown", "start ada #5 token=1");
    meet("job-ended", "submit j : a[x]\ncancel j\nsignal j a go");
    meet("token-stale", "submit j : a[x]\nstart ada x");
    meet("task-phase", "submit j : a[x];outside\nreserve ada start\nrelease ada x");
    meet("key-reused", "submit j key=k : a[x]\nsubmit j key=k hash=other : a[x]");
    meet("nothing-to-join", "join m");
    meet("evidence-missing", "submit j : a[x]\nreserve ada\ncommit ada x digests=d pinned=e");
    meet("evidence-expired", "submit j : a[x]\nreserve ada\ncommit ada x digests=d for=0s");
    meet("generation-stale", "submit j : a[x,y]\nreserve ada\ncommit ada x\ninvalidate x generation=5");
    meet("executor-drained", "drain ada\nreserve ada");
    meet("queue-full", "tenant acme queued=1\nsubmit j : a[x,y]");
    meet("shard-full", "submit j : a[x]", { jobsMax: 0 });
    const broken = step(createState(0, defaultLimits), null as never, 1);
    equal(!broken.ok && broken.rejection.kind, "broken");
    seen.add("broken");
    const all: Record<Rejection["kind"], true> = {
      invalid: true,
      limit: true,
      cycle: true,
      "job-unknown": true,
      "stage-unknown": true,
      "task-unknown": true,
      "job-ended": true,
      "token-stale": true,
      "task-phase": true,
      "key-reused": true,
      "nothing-to-join": true,
      "evidence-missing": true,
      "evidence-expired": true,
      "generation-stale": true,
      "executor-drained": true,
      "queue-full": true,
      "shard-full": true,
      broken: true,
    };
    deepEqual([...seen].toSorted(), Object.keys(all).toSorted());
  });

  test("counts are limited: subscribers, steps", () => {
    meet("limit", "submit j merge=m by=a : a[x]\nsubmit j merge=m by=b : a[x]", { subscribersMax: 1 });
    meet("limit", "submit j : a[x]\nreserve ada\nreport ada x one two\nreport ada x three four five", {
      stepsPerTaskMax: 2,
    });
    meet("limit", "submit j : a[x]\nreserve ada\nreport ada x one two three", { stepsMax: 2 });
    meet("limit", "reserve ada n=2", { reserveCountMax: 1 });
  });
});
